"""What the packages say about themselves, and what must hold on every system."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mkdesc

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (REPOSITORY / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == mkdesc.__version__
    assert re.search(r'set version = "(.*)"', recipe)[1] == mkdesc.__version__


def test_one_address_everywhere():
    """Nothing is published yet: the day it is, one line of pyproject.toml may change."""
    files = [REPOSITORY / name for name in ("README.md", "CITATION.cff", "conda/meta.yaml")]
    files += [*(REPOSITORY / "docs").rglob("*.md")]
    found = set()
    for file in files:
        text = file.read_text(encoding="utf-8")
        found |= {*re.findall(r"https://github\.com/[\w-]*mkdesc[\w-]*/[\w-]+", text)}
    assert found == {PROJECT["urls"]["Repository"]}


def test_the_recipe_needs_what_the_package_needs():
    recipe = (REPOSITORY / "conda" / "meta.yaml").read_text(encoding="utf-8")
    needed = re.search(r"  run:\n    - python.*\n((?:    - .*\n)*)", recipe)[1]
    named = re.findall(r"- (.*)", needed)
    # The recipe is for any machine: it can have no markers.
    wanted = [need.partition(";")[0] for need in PROJECT["dependencies"]]
    assert [name.replace(" ", "") for name in named] == wanted


def test_one_extra_brings_opencv():
    """Over an OpenCV that is there pip would put another one, with fewer parts."""
    extras = PROJECT["optional-dependencies"]
    bring = {name for name, needs in extras.items() if any("opencv" in need for need in needs)}
    assert bring == {"images", "test", "bench", "docs"}  # the last three are for developers
    assert not any("opencv" in need for need in PROJECT["dependencies"])


def _text_calls(path):
    """Calls that read or write text without saying its encoding, by line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        said = any(keyword.arg == "encoding" for keyword in node.keywords)
        if node.func.attr in ("read_text", "write_text") and not said:
            yield f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("folder", ["src", "tools", "examples"])
def test_text_files_are_utf_8_on_every_system(folder):
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    assert files
    assert [call for path in files for call in _text_calls(path)] == []


def test_what_a_console_cannot_show_is_no_error(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mkdesc",
        "demo",
        str(tmp_path / "\N{GREEK SMALL LETTER KAPPA}"),
    ]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert "\\u03ba" in done.stdout


def test_a_package_index_shows_the_readme_with_absolute_links():
    tool = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for change in tool["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert len(targets) > 10
    address = PROJECT["urls"]["Repository"].removeprefix("https://github.com/")
    assert all(target.startswith("https://") and address in target for target in targets)
    assert text.count("](https://raw.githubusercontent.com/") == 1  # the picture


def _returned(module):
    """What the public functions and methods of a module say that they return, by name."""
    for name in module.__all__:
        found = getattr(module, name)
        inner = vars(found).items() if isinstance(found, type) else [("", found)]
        for own, function in inner:
            if inspect.isfunction(function) and not own.startswith("_"):
                yield f"{name}.{own}", str(inspect.signature(function).return_annotation)


@pytest.mark.parametrize("name", ["", ".learn", ".models", ".matching", ".features"])
def test_public_results_have_types(name):
    returned = dict(_returned(importlib.import_module(f"mkdesc{name}")))
    assert returned
    bare = re.compile(r"Any|(?:list|tuple)\[Any(?:, \.\.\.)?\]")
    assert [own for own, type_ in returned.items() if bare.fullmatch(type_.strip("'"))] == []
