"""The rooms of the package and the arrows between them, read from the source.

Every room (a folder, or a lone module) says in its docstring which rooms it may use::

    May use: _support, kernels.

``python tools/rooms.py`` prints the picture of ``docs/architecture.md``; the tests hold the code
to what the rooms say, imports inside functions included.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "mkdesc"

#: Modules that stand for the whole and may import anything.
FRONT_DOOR = ("mkdesc", "mkdesc.__main__")
EVERY = "every other room"


def modules() -> dict[str, Path]:
    """All modules by their dotted names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _targets(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module in known:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in known else node.module


def imports() -> dict[str, set[str]]:
    """Which modules each module imports, anywhere in it; a package's own parts not counted."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        if name in FRONT_DOOR:
            continue
        found = {
            t
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for t in _targets(node, known)
        }
        graph[name] = found - {name}
    return graph


def room_of(module: str) -> str:
    """The room that a module is in; the package itself is ``mkdesc``."""
    return module.split(".")[1] if "." in module else module


def allowed() -> dict[str, set[str]]:
    """Which rooms each room says it may use."""
    known = modules()
    rooms = [room_of(name) for name in known if name.count(".") == 1 and name not in FRONT_DOOR]
    said: dict[str, set[str]] = {}
    for room in rooms:
        doc = (
            ast.get_docstring(ast.parse(known[f"mkdesc.{room}"].read_text(encoding="utf-8"))) or ""
        )
        found = re.search(r"May use: ([^.]*)\.", doc)
        if found is None:
            raise ValueError(f"{room}: does not say which rooms it may use")
        names = " ".join(found[1].split())
        if names == EVERY:
            said[room] = {*rooms} - {room}
        else:
            said[room] = set() if names == "no other room" else set(names.split(", "))
    return said


def arrows() -> dict[str, set[str]]:
    """Which rooms each room really uses."""
    used: dict[str, set[str]] = {room: set() for room in allowed()}
    for module, targets in imports().items():
        used[room_of(module)] |= {room_of(t) for t in targets} - {room_of(module)}
    return used


def order() -> list[str]:
    """The rooms, each after those that it uses."""
    sorter = TopologicalSorter({room: sorted(uses) for room, uses in sorted(allowed().items())})
    return list(sorter.static_order())


def picture() -> str:
    """The rooms and their arrows as a Mermaid graph, without those that follow from others.

    ``_support`` is left out: everybody may use it. So is ``cli``, which uses everybody.
    """
    used = arrows()
    hidden = ("_support", "cli")
    rooms = [room for room in order() if room not in hidden]

    def reachable(room: str) -> set[str]:
        return used[room].union(*(reachable(other) for other in used[room]))

    lines = ["graph LR"]
    for room in rooms:
        direct = used[room] - {*hidden}
        implied = set().union(*(reachable(other) for other in direct))
        lines += [f"  {other} --> {room}" for other in sorted(direct - implied)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(picture())
