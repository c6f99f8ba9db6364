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
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rooms

#: Rooms that users have no business in.
INSIDE = ("_support", "cli", "compute", "descriptor")
#: What the names of modules end in that are no interface of anybody's.
COMPILED = ("_numba", "_triton")


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


def write_api(folder: Path) -> None:
    """A page for the front door and one per room: every public name, once."""
    shutil.rmtree(folder, ignore_errors=True)
    modules = rooms.modules()
    seen: set[tuple[str, str]] = set()

    def fresh(module: str) -> list[str]:
        """Public names of a module that no earlier page has, under whatever name."""
        homes = {name: (_home(module, name, modules), name) for name in _public(modules[module])}
        found = [name for name, home in homes.items() if home not in seen]
        seen.update(homes.values())
        return found

    _write(folder / "mkdesc.md", _page("What `import mkdesc` gives", {"mkdesc": fresh("mkdesc")}))
    # PyTorch's front door comes before the rooms that it shows things of.
    for room in sorted({*rooms.allowed()} - {*INSIDE}, key=lambda room: (room != "torch", room)):
        own = [module for module in modules if rooms.room_of(module) == room]
        documented = {module: fresh(module) for module in own if not module.endswith(COMPILED)}
        kept = {name: names for name, names in documented.items() if names or name == own[0]}
        _write(folder / f"{room}.md", _page(f"mkdesc.{room}", kept))


def _page(title: str, documented: dict[str, list[str]]) -> str:
    lines = [f"# {title}", ""]
    for module, names in documented.items():
        if len(documented) > 1:
            lines += [f"## {module}", ""]
        lines += ["```{eval-rst}", f".. automodule:: {module}"]
        lines += [f"   :members: {', '.join(names)}"] if names else []
        lines += ["```", ""]
    return "\n".join(lines)


def _public(path: Path) -> list[str]:
    """What a package imports for type checkers or ``__all__`` names; of other modules functions,
    classes, and constants that others cite.
    """
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if path.name == "__init__.py":
        blocks = [node.body for node in body if isinstance(node, ast.If)]
        imported = [one for block in blocks for one in block if isinstance(one, ast.ImportFrom)]
        return sorted(
            alias.name for one in imported if one.module != "mkdesc" for alias in one.names
        )
    assigned = [node for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    named = {ast.unparse(getattr(one, "target", None) or one.targets[0]): one for one in assigned}
    if "__all__" in named:
        return list(ast.literal_eval(named["__all__"].value))
    found = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sorted(name for name in (*(named.keys() & _cited()), *found) if name[0] != "_")


@cache
def _cited() -> set[str]:
    """Constants that docstrings refer to."""
    texts = (path.read_text(encoding="utf-8") for path in rooms.PACKAGE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r":data:`(?:[^`]*\.)?(\w+)`", text)}


def _home(module: str, name: str, modules: dict[str, Path]) -> str:
    """The module that a name is defined in, wherever it is imported from."""
    for node in ast.walk(ast.parse(modules[module].read_text(encoding="utf-8"))):
        found = isinstance(node, ast.ImportFrom) and node.module in modules
        if found and any(alias.name == name for alias in node.names):
            return _home(node.module, name, modules)
    return module


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
