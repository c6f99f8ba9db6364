"""Help: grouped, wrapped once, without types of flags; and completion in shells."""

import re
from itertools import pairwise
from typing import get_type_hints

import pytest
import typer
from typer.models import OptionInfo

from mkdesc import bundled_models
from mkdesc.cli.app import COMMANDS, PANELS, make_app
from mkdesc.cli.models import USES
from mkdesc.models import DEFAULT_MODEL

COMMAND = typer.main.get_command(make_app())


def every(command=COMMAND, words=()):
    """Every command and group, as the words that call it."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from every(inner, (*words, name))


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


@pytest.mark.parametrize("words", [*every()], ids=" ".join)
def test_help_of_every_command(words, narrow, run):
    shown = run(*words, "--help").stdout
    assert "<bool>" not in shown
    assert "list[" not in shown.partition("Options")[2]
    # Text outside of the frames fills its lines: the next word would not have fitted.
    lines = [line.strip() for line in shown.splitlines() if line[:1] not in ("╭", "│", "╰")]
    for line, following in pairwise(lines):
        if line and following:
            assert len(line) + 1 + len(following.split()[0]) > 78, line


def test_options_shown_by_their_own_name_say_that_name():
    """Typer 0.27 calls an option --DEVICE whose metavar is DEVICE, unless it is named itself."""
    app = make_app()
    registered = [*app.registered_commands]
    registered += [
        inner
        for group in app.registered_groups
        for inner in group.typer_instance.registered_commands
    ]
    for command in registered:
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            for option in getattr(hint, "__metadata__", ()):
                if isinstance(option, OptionInfo) and option.metavar == name.upper():
                    said = (option.default, *option.param_decls)  # the first is called default
                    assert f"--{name}" in said, command.name


def test_commands_are_listed_in_groups(narrow, run):
    shown = run("--help").stdout
    titles = re.findall("╭─ (.*?) ─", shown)
    assert titles == ["Options", *PANELS]
    listed = re.findall(r"^│ ([a-z-]+) ", shown.partition("╭─ Everyday")[2], re.MULTILINE)
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)


def test_one_line_says_what_each_model_is_for(run):
    assert set(USES) == set(bundled_models())
    assert "Features" in USES[DEFAULT_MODEL]
    lines = run("models").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(USES)
    assert all(len(line) <= 80 for line in lines)
    assert "theta" not in "".join(lines)
    assert "relative_theta" in run("models", "--verbose").stdout


@pytest.fixture
def complete(run, monkeypatch):
    """What bash would offer for the last word."""

    def offered(*words):
        with monkeypatch.context() as asked:
            asked.setenv("_MKDESC_COMPLETE", "complete_bash")
            asked.setenv("COMP_WORDS", " ".join(words))
            asked.setenv("COMP_CWORD", str(len(words) - 1))
            return run().stdout.split()

    return offered


def test_shells_complete_commands_options_and_names(complete):
    assert complete("mkdesc", "ma") == ["match", "make-hpatches"]
    assert complete("mkdesc", "match", "--ke") == ["--keypoints"]
    assert complete("mkdesc", "match", "--model", "photo") == [
        "photo",
        "photo-64",
        "photo-bits",
        "photo-net",
    ]
    assert complete("mkdesc", "match", "--detector", "do") == ["dog"]


def test_completion_is_installed(tmp_path, run, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = run("--show-completion", "bash").stdout
    assert "_MKDESC_COMPLETE=complete_bash" in shown
    assert run("--install-completion", "bash").returncode == 0
    (script,) = tmp_path.glob(".bash_completions/*")
    assert script.read_text().strip() == shown.strip()
    assert str(script) in (tmp_path / ".bashrc").read_text()
