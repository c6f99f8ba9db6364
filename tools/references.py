"""What the site is made of besides its pages: references written from the source, and a picture.

``docs/conf.py`` calls these when Sphinx begins; what they write is not kept in the repository.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

import rooms

#: Rooms that users have no business in.
INSIDE = ("_support", "cli", "compute", "descriptor")
#: What the names of modules end in that are no interface of anybody's.
COMPILED = ("_numba", "_triton")
DOCS = Path(__file__).resolve().parents[1] / "docs"
#: What the names of the front door are for, by the rooms that they come from.
FRONT = {
    "Photographs": ("features", "geometry", "matching"),
    "Collections of photographs": ("retrieval",),
    "Patches and models": ("descriptor", "models"),
    "Kernels": ("kernels", "visual"),
    "Learning": ("learn", "heads"),
}


def write_command_line(path: Path) -> None:
    """The reference of the command line, by typer, from the program itself."""
    command = [
        sys.executable,
        "-m",
        "typer",
        str(Path(__file__).with_name("all_commands.py")),
        "utils",
        "docs",
        "--name",
        "mkdesc",
    ]
    text = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    _write(path, text.replace("# `mkdesc`", "# Command line", 1))


def write_wheel(folder: Path) -> None:
    """The package itself, for who has nothing but the site."""
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ["--quiet", "--no-deps", "--wheel-dir", str(folder)]
    repository = str(rooms.PACKAGE.parents[1])
    subprocess.run([sys.executable, "-m", "pip", "wheel", *quiet, repository], check=True)


def write_export(path: Path) -> None:
    """The explorer as one file, for the gallery."""
    from mkdesc.explorer.page import export_page

    path.parent.mkdir(parents=True, exist_ok=True)
    export_page(path)


def without_dead_links(body: str) -> str:
    """A page of Sphinx's `viewcode` without links that lead nowhere.

    Those from the source back to its description miss what is described under a shorter name. The
    list of modules names those of decorators, too (`torch`, where it is not installed, and
    `builtins`), which have no page here.
    """
    back = r'<a class="viewcode-back".*?</a>'
    others = r'<li><a href="(?!mkdesc[./])[^"]*">.*?</li>'
    return re.sub(f"{back}|{others}", "", body)


def write_api(folder: Path, listing: Path) -> None:
    """The reference of Python: a page per name that people import, and lists of them.

    What `import mkdesc` gives comes first, grouped by what it is for; then a page per room, with
    its names and, below, what else its modules have. Every name is documented once. The listing
    has a line for each room, for the page above the folder.
    """
    shutil.rmtree(folder, ignore_errors=True)
    modules = rooms.modules()
    pages: dict[tuple[str, str], str] = {}

    def name_pages(module: str) -> dict[str, str]:
        """The page of each public name of a module; those that have none yet get one."""
        found = {}
        for name in _public(modules[module]):
            home = _home(module, name, modules)
            if home not in pages:
                pages[home] = f"{module}.{name}"
                page = _name_page(module, name, home, modules)
                _write(folder / "names" / f"{module}.{name}.md", page)
            found[name] = pages[home]
        return found

    front = name_pages("mkdesc")
    homes = {name: _home("mkdesc", name, modules)[0] for name in front}
    listed = {
        title: {name: page for name, page in front.items() if rooms.room_of(homes[name]) in some}
        for title, some in FRONT.items()
    }
    lines = ["# What `import mkdesc` gives", ""]
    for title, names in listed.items():
        lines += [f"## {title}", "", *_table(names, "mkdesc", modules), ""]
    _write(folder / "mkdesc.md", "\n".join([*lines, *_hidden(front.values(), "mkdesc")]))
    shown = ["| room | what is in it |", "|---|---|"]
    # PyTorch's front door comes before the rooms that it shows things of.
    for room in sorted({*rooms.allowed()} - {*INSIDE}, key=lambda room: (room != "torch", room)):
        name = f"mkdesc.{room}"
        own = name_pages(name)
        said = ast.get_docstring(ast.parse(modules[name].read_text(encoding="utf-8"))) or ""
        words = " ".join(said.partition("\n\n")[0].split()).replace("``", "`")
        shown.append(f"| [`{name}`]({folder.name}/{room}.md) | {words} |")
        lines = [f"# {name}", "", "```{eval-rst}", f".. automodule:: {name}", "```", ""]
        lines += [*_table(own, name, modules), "", *_hidden(own.values(), name)]
        for module, path in modules.items():
            if rooms.room_of(module) == room and not module.endswith(COMPILED) and module != name:
                homes = {inner: _home(module, inner, modules) for inner in _public(path)}
                fresh = [inner for inner, home in homes.items() if home not in pages]
                pages |= {homes[inner]: module for inner in fresh}
                if fresh:
                    lines += ["", f"## {module}", "", "```{eval-rst}"]
                    lines += [f".. automodule:: {module}", f"   :members: {', '.join(fresh)}"]
                    lines += ["```"]
        _write(folder / f"{room}.md", "\n".join(lines) + "\n")
    _write(listing, "\n".join([*shown[:2], *sorted(shown[2:])]) + "\n")


def _table(names: dict[str, str], module: str, modules: dict[str, Path]) -> list[str]:
    """Names, each a link to its page, and what they are in a line."""
    lines = ["| name | what it is |", "|---|---|"]
    for name, page in names.items():
        words = _words(*_home(module, name, modules), modules)
        lines.append(f"| [`{name}`](names/{page}.md) | {words} |")
    return lines if names else []


def _hidden(pages: Iterable[str], module: str) -> list[str]:
    """A list of the pages that belong to a module, for the navigation."""
    own = [page for page in pages if page.rpartition(".")[0] == module]
    return (
        ["```{toctree}", ":hidden:", "", *(f"names/{page}" for page in own), "```"] if own else []
    )


def _name_page(module: str, name: str, home: tuple[str, str], modules: dict[str, Path]) -> str:
    """The page of one name: how it is called, what it does, an example, and where it is used."""
    node = _node(*home, modules)
    title = f"{module}.{name}".removeprefix("mkdesc.")
    if isinstance(node, ast.FunctionDef):
        words, directive = [], [f".. autofunction:: {module}.{name}"]
    elif isinstance(node, ast.ClassDef):
        words, directive = [], [f".. autoclass:: {module}.{name}", "   :members:"]
    else:  # autodoc would tell of the constant's class
        words, directive = [_words(*home, modules), ""], [f".. py:data:: {name}"]
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            directive.append(f"   :value: {ast.unparse(node.value)}")
    lines = [f"# {title}", "", *words, "```{eval-rst}", f".. currentmodule:: {module}", ""]
    lines += [*directive, "```", ""]
    if seen := _seen_in(module, name):
        lines += ["## Where it is used", "", *(f"* [{title}]({page})" for title, page in seen), ""]
    return "\n".join(lines)


def _seen_in(module: str, name: str) -> list[tuple[str, str]]:
    """Titles and addresses of the pages whose text or code has a name."""
    # A word, and what the front door has, too, are looked for with their module before them.
    alike = module != "mkdesc" and name in _public(rooms.modules()["mkdesc"])
    whole = alike or (name.islower() and "_" not in name)
    called = rf"\b{module}\.{name}\b" if whole else rf"\b{name}\b"
    found = []
    for path in sorted(DOCS.glob("*.md")) + sorted((DOCS / "tutorials").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path.stem != "index" and re.search(called, text):
            title = text.partition("\n")[0].removeprefix("# ")
            found.append((title, f"../../../{path.relative_to(DOCS).as_posix()}"))
    return found


def _words(home: str, name: str, modules: dict[str, Path]) -> str:
    """The first sentence about a name, as Markdown; of a constant, the comment above it."""
    node = _node(home, name, modules)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    else:
        lines = modules[home].read_text(encoding="utf-8").splitlines()
        above = lines[: node.lineno - 1] if node is not None else []
        text = "\n".join(takewhile(lambda line: line.startswith("#:"), reversed(above)))
        text = " ".join(line.removeprefix("#: ") for line in reversed(text.splitlines()))
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`").replace("|", "\\|")


def _node(home: str, name: str, modules: dict[str, Path]) -> ast.stmt | None:
    """What defines a name in a module."""
    for node in ast.parse(modules[home].read_text(encoding="utf-8")).body:
        if getattr(node, "name", None) == name:
            return node
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if ast.unparse(target) == name:
                return node
    return None


def _public(path: Path) -> list[str]:
    """What a package imports for type checkers or ``__all__`` names; of other modules functions,
    classes, and constants that others cite.
    """
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assigned = [node for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    named = {ast.unparse(getattr(one, "target", None) or one.targets[0]): one for one in assigned}
    if "__all__" in named and isinstance(named["__all__"].value, ast.List):
        return list(ast.literal_eval(named["__all__"].value))
    if path.name == "__init__.py":
        blocks = [node.body for node in body if isinstance(node, ast.If)]
        imported = [one for block in blocks for one in block if isinstance(one, ast.ImportFrom)]
        return sorted(
            alias.name for one in imported if one.module != "mkdesc" for alias in one.names
        )
    found = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sorted(name for name in (*(named.keys() & _cited()), *found) if name[0] != "_")


@cache
def _cited() -> set[str]:
    """Constants that docstrings refer to."""
    texts = (path.read_text(encoding="utf-8") for path in rooms.PACKAGE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r":data:`(?:[^`]*\.)?(\w+)`", text)}


def _home(module: str, name: str, modules: dict[str, Path]) -> tuple[str, str]:
    """The module that a name is defined in, wherever it is imported from, and its name there."""
    for node in ast.walk(ast.parse(modules[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                if (alias.asname or alias.name) == name and f"{node.module}.{name}" not in modules:
                    return _home(node.module, alias.name, modules)
    return module, name


def _write(path: Path, text: str) -> None:
    """Write what has changed alone, so that Sphinx need not read the rest again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_notebook(page: Path, path: Path) -> None:
    """A tutorial as a notebook: its text, its Python, its commands after a ``!``, and pictures.

    It is read where no other page is beside it: of links to them the words are left.
    """
    cells = [_cell("code", "%env TERM=dumb")]  # progress bars would be kept, frame by frame
    text = page.read_text(encoding="utf-8")
    code = r"^(```(?:python|console)\n.*?^```$)"
    for part in re.split(code, text, flags=re.MULTILINE | re.DOTALL):
        if found := re.match(r"```(python|console)\n(.*)```$", part, re.DOTALL):
            cells.append(_cell("code", _as_cell(found[1], found[2])))
            for picture in re.findall(r"^\$ .*-o (\S+\.jpg)", found[2], re.MULTILINE):
                show = f'from IPython.display import Image\n\nImage("{picture}")'
                cells.append(_cell("code", show))
        elif part.strip():
            plain = re.sub(r"<!--.*?-->", "", part).strip()
            alone = re.sub(r"!?\[([^]]*)\]\((?!https?:)\S+\)", r"\1", plain)
            cells.append(_cell("markdown", alone))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    whole = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    _write(path, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def _as_cell(kind: str, text: str) -> str:
    if kind == "python":
        return text.strip()
    lines = [line for line in text.splitlines() if line.startswith("$ ")]
    return "\n".join("!" + line.removeprefix("$ ") for line in lines)


def _cell(kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def svg_of_graph(mermaid: str) -> str:
    """The picture of a Mermaid graph of plain arrows, as SVG: nothing has to be fetched for it."""
    arrows = [
        tuple(line.split(" --> "))
        for line in map(str.strip, mermaid.splitlines())
        if "-->" in line
    ]
    level: dict[str, int] = {}
    for _ in arrows:  # as often as the longest way may be long
        for start, end in arrows:
            level[end] = max(level.get(end, 0), level.setdefault(start, 0) + 1)
    columns = [
        [name for name in level if level[name] == k] for k in range(max(level.values()) + 1)
    ]
    place = dict(_places(columns))
    height = 60 * max(map(len, columns))
    lines = [f'<svg viewBox="0 0 {150 * len(columns)} {height}" role="img" class="graph">']
    lines.append(f"<title>{', '.join(f'{end} uses {start}' for start, end in arrows)}</title>")
    for start, end in arrows:
        (x, y), (u, v) = place[start], place[end]
        x, u = x + 55, u - 55
        lines.append(f'<path d="M{x} {y} C{x + 30} {y} {u - 30} {v} {u - 4} {v}"/>')
        lines.append(f'<path d="M{u - 9} {v - 4} L{u - 1} {v} L{u - 9} {v + 4} Z" class="tip"/>')
    for name, (x, y) in place.items():
        lines.append(f'<rect x="{x - 55}" y="{y - 15}" width="110" height="30" rx="5"/>')
        lines.append(f'<text x="{x}" y="{y + 5}">{name}</text>')
    return "\n".join([*lines, "</svg>"])


def _places(columns: list[list[str]]) -> Iterator[tuple[str, tuple[int, int]]]:
    tallest = max(map(len, columns))
    for k, column in enumerate(columns):
        for row, name in enumerate(column):
            yield name, (75 + 150 * k, 30 + 30 * (tallest - len(column)) + 60 * row)
