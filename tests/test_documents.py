"""What the README and the site show must run.

Python runs in the order of a page, in a folder with the demo's photographs; so do lines that begin
with ``$ mkdesc``. What is shown of what they print, below a command or in the comment behind a
``print``, must be printed, to the last digit; ``...`` stands for anything, and seconds differ.
Where other numbers do, the block comes after ``<!-- numbers differ: why -->``. A block after
``<!-- not run: why -->`` is only checked: Python for its names, commands for their options.
"""

import ast
import doctest
import importlib
import json
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import mkdesc
from mkdesc.cli.app import make_app
from mkdesc.images.demo import write_demo

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import checks
import references

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
GENERATED = (
    DOCS / "_generated",
    DOCS / "gallery",
    DOCS / "reference" / "api",
    DOCS / "reference" / "api" / "names",
    DOCS / "reference" / "command-line.md",
)
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if not {path, path.parent} & {*GENERATED}),
]
EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
FENCE = re.compile(
    r"(?:^<!-- (?P<but>not run|numbers differ): [^\n]* -->\n)?"
    r"^ *```(?P<kind>[\w{}-]*)[^\n`]*\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
#: A number, and whether it counts seconds.
NUMBER = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<seconds> m?s\b)?")
#: How far numbers may be off that differ from run to run.
SHARE = 0.1


#: What pages need besides the package and OpenCV, and how to tell that they do.
NEEDS = {
    "torch": r"import torch|TrainedHead\(",
    "kornia": r"import kornia",
    "sklearn": r"from sklearn",
    "h5py": r"import h5py",
    "pycolmap": r"import pycolmap",
    "matplotlib": r"\$ mkdesc inspect",
}


@dataclass
class Block:
    """A block of code of a page; ``but``: how it is not as others are."""

    kind: str
    text: str
    but: str | None

    @property
    def is_run(self) -> bool:
        return self.but != "not run"


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [Block(m["kind"], m["text"], m["but"]) for m in FENCE.finditer(text)]


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


pages = pytest.mark.parametrize("path", PAGES, ids=name_of)


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return folder


@pytest.fixture
def place(tmp_path, photographs, monkeypatch):
    """An empty folder but for photographs under the names that pages use."""
    monkeypatch.chdir(tmp_path)
    for name, source in {"a.jpg": "photo.png", "b.jpg": "warped.png"}.items():
        shutil.copy(photographs / source, tmp_path / name)
    (tmp_path / "images").mkdir()
    for k in range(2):
        shutil.copy(photographs / "views" / f"{k}.png", tmp_path / "images" / f"{k:04d}.jpg")
    return tmp_path


def skip_unless_installed(path: Path) -> None:
    for module, sign in NEEDS.items():
        if re.search(sign, path.read_text(encoding="utf-8")):
            pytest.importorskip(module)


@pytest.mark.long
@pages
def test_code_runs_as_shown(path, place, run, capsys):
    skip_unless_installed(path)
    names = {"__name__": path.stem}
    for block in blocks(path):
        if block.kind == "python" and ">>>" not in block.text:
            code = compile(block.text, path.name, "exec")
            if block.is_run:
                capsys.readouterr()
                exec(code, names)
                check_printed(comments(block.text), capsys.readouterr().out, block)
            else:
                check_names(block.text)
        elif block.kind in ("console", "sh"):
            for command, shown in commands(block):
                check_command(command)
                if block.is_run and command[0] == "mkdesc":
                    done = run(*command[1:])
                    fails = any(
                        line.startswith("error:") or "none verified" in line for line in shown
                    )
                    assert (done.returncode != 0) == fails, done.stderr
                    check_printed(shown, done.stdout + done.stderr, block)


@pages
def test_examples_run(path, place):
    skip_unless_installed(path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testfile(str(path), module_relative=False, optionflags=flags).failed == 0


@pages
def test_nothing_else_is_shown(path):
    kinds = {"python", "console", "sh", "mermaid", "", "{toctree}", "{include}", "{raw}"}
    assert {block.kind for block in blocks(path)} <= kinds
    assert path.read_text(encoding="utf-8").count("```") == 2 * len(blocks(path))


@pages
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_promises_are_held_by_tests_that_exist():
    text = (REPOSITORY / "docs" / "safety.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) > 30
    for file, test in named:
        assert f"def {test}(" in (REPOSITORY / file).read_text(encoding="utf-8"), (file, test)


def test_the_table_of_checks_is_the_one_that_decides():
    text = (DOCS / "matching.md").read_text(encoding="utf-8")
    assert checks.table_of(text) == checks.table()  # python tools/checks.py writes it


@pytest.mark.parametrize("name", ["match", "retrain", "reconstruct"])
def test_notebooks_do_what_the_pages_do(name, tmp_path):
    page = DOCS / "tutorials" / f"{name}.md"
    references.write_notebook(page, tmp_path / "page.ipynb")
    notebook = json.loads((tmp_path / "page.ipynb").read_text(encoding="utf-8"))
    first, *cells = (cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert first == "%env TERM=dumb"  # no frames of progress bars are kept in the notebook
    pictures = [cell for cell in cells if cell.startswith("from IPython")]
    shows = [f'Image("{name}")' for name in re.findall(r"-o (\S+\.jpg)", "\n".join(cells))]
    assert [cell.splitlines()[-1] for cell in pictures] == shows
    cells = [cell for cell in cells if cell not in pictures]
    texts = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    assert not re.search(r"\]\((?!https?:)", "".join(texts))  # there is no page beside it
    shown = [block for block in blocks(page) if block.kind in ("python", "console")]
    assert len(cells) == len(shown) > 1
    for cell, block in zip(cells, shown, strict=True):
        if block.kind == "python":
            assert cell == block.text.strip()
        else:
            lines = [shlex.split(line.removeprefix("!")) for line in cell.splitlines()]
            assert lines == [words for words, _ in commands(block)]


def commands(block: Block) -> list[tuple[list[str], list[str]]]:
    """Words of each command of a block, and the lines shown below it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.kind == "sh" or line.startswith("$ "):
            for command in line.removeprefix("$ ").split(" && "):
                if words := shlex.split(command, comments=True):
                    found.append((words, []))
        elif found:
            found[-1][1].append(line)
    return found


@cache
def every_command() -> Any:
    return typer.main.get_command(make_app())


def check_command(words: list[str]) -> None:
    """What a command names must be there: options, extras, targets, files."""
    if words[0].endswith("mkdesc"):
        command, rest = every_command(), words[1:]
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(command.name, rest)
    elif "install" in words:
        for named in re.findall(r"(?:mkdesc|\.|\.whl)\[([\w,]+)\]", " ".join(words)):
            assert {*named.split(",")} <= {*EXTRAS}
    elif words[0] == "make":
        makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
    elif words[0] == "python":
        assert (REPOSITORY / words[1]).is_file()
    else:
        assert words[0] in ("git", "cd", "tar", "python3", "dask"), words


def comments(code: str) -> list[str]:
    """What the comments behind calls of print say."""
    return re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)


def check_printed(shown: list[str], printed: str, block: Block) -> None:
    """Each line that is shown must be among those that were printed."""
    share = SHARE if block.but == "numbers differ" else 0.0
    lines = [line.strip() for line in printed.splitlines()]
    for line in (line.strip() for line in shown):
        if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" not in line and line not in ("...", ""):
            assert any(is_as_shown(one, line, share) for one in lines), (line, lines)


def is_as_shown(printed: str, shown: str, share: float = 0.0) -> bool:
    """Whether two lines are the same, but for seconds, and for numbers up to a share of them."""
    if NUMBER.sub("#", printed) != NUMBER.sub("#", shown):
        return False
    pairs = zip(NUMBER.finditer(printed), NUMBER.finditer(shown), strict=True)
    for one, other in pairs:
        a, b = (float(match["number"].replace(",", "")) for match in (one, other))
        if not other["seconds"] and abs(a - b) > share * b:
            return False
    return True


def test_stale_outputs_are_noticed():
    shown = "25,600 patches, FPR95 1.48% learned, 15.3 s"
    assert is_as_shown("25,600 patches, FPR95 1.48% learned, 9 s", shown)
    assert not is_as_shown("25,601 patches, FPR95 1.48% learned, 15.3 s", shown)
    assert not is_as_shown("25,600 patches, FPR95 1.49% learned, 15.3 s", shown)
    assert is_as_shown("26,000 patches, FPR95 1.5% learned, 15.3 s", shown, share=0.1)
    assert not is_as_shown("29,000 patches, FPR95 1.5% learned, 15.3 s", shown, share=0.1)
    assert comments("print(2)  # 2\nx = 3  # three\n") == ["2"]


def check_names(code: str) -> None:
    """Whatever a block takes of this package must be there."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mkdesc"):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mkdesc":
            assert hasattr(mkdesc, node.attr)
