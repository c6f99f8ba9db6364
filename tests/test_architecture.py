"""The rooms of the package: what each may use, held against every import there is."""

from __future__ import annotations

import importlib.util
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

_spec = importlib.util.spec_from_file_location("rooms", REPOSITORY / "tools" / "rooms.py")
assert _spec is not None
assert _spec.loader is not None
rooms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)


@pytest.fixture(scope="module")
def imports():
    return rooms.imports()


def test_no_module_imports_in_a_circle(imports):
    graph = {name: sorted(targets) for name, targets in imports.items()}
    assert len(graph) > 100  # the graph is really drawn
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_rooms_do_not_allow_circles():
    assert rooms.order()[0] == "_support"
    assert rooms.order()[-1] == "cli"


@pytest.mark.parametrize("room", rooms.allowed())
def test_rooms_use_only_what_they_say(room, imports):
    allowed = rooms.allowed()[room]
    against = [
        f"{module} -> {target}"
        for module, targets in imports.items()
        for target in targets
        if rooms.room_of(module) == room and rooms.room_of(target) not in {room, *allowed}
    ]
    assert not against


def test_only_the_front_door_stands_above_the_rooms(imports):
    for module, targets in imports.items():
        assert not targets & {*rooms.FRONT_DOOR} or module == "mkdesc.__main__"


def test_the_document_shows_this_picture():
    assert rooms.picture() in (REPOSITORY / "docs" / "architecture.md").read_text()


def test_the_document_names_every_room():
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    assert [room for room in rooms.allowed() if f"`{room}" not in text] == []


def test_the_files_that_the_document_walks_through_exist():
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", text))
    assert len(named) > 10
    places = (rooms.PACKAGE, REPOSITORY)
    missing = [name for name in named if not any((place / name).is_file() for place in places)]
    assert missing == []


def test_imports_inside_functions_count(tmp_path, monkeypatch):
    package = tmp_path / "mkdesc"
    (package / "a").mkdir(parents=True)
    (package / "b").mkdir()
    (package / "__init__.py").write_text("")
    (package / "a" / "__init__.py").write_text('"""A. May use: b."""')
    (package / "b" / "__init__.py").write_text('"""B. May use: no other room."""')
    (package / "b" / "late.py").write_text("def f():\n    from mkdesc.a import x\n")
    monkeypatch.setattr(rooms, "PACKAGE", package)
    assert rooms.imports()["mkdesc.b.late"] == {"mkdesc.a"}
    assert rooms.arrows()["b"] == {"a"}
