"""What an earlier run has left in a database, and how much of it still holds.

Which pairs COLMAP verifies depends on chance, and on what it knows of the cameras, which are
shared afterwards. So a database that is not of the same photographs, pairs, settings and seed to
the end is made anew: only matches are kept, and all of them are verified. A run is then as good as
the first one in an empty folder.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.retrieval.pairs import NamePair
from mkdesc.sfm.grown_pairs import KEPT, TABLE, make_table


def is_verified(base: Path, made_of: dict[str, Any]) -> bool:
    """Whether a database has all verified pairs of what :func:`say_verified` was told."""
    if not base.exists():
        return False
    with closing(sqlite3.connect(base)) as file:
        return _state(file) == _text(file, made_of)


def say_verified(base: Path, made_of: dict[str, Any]) -> None:
    """Write into a database what its verified pairs are made of."""
    with closing(sqlite3.connect(base)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS mkdesc_verified (made_of TEXT)")
        file.execute("DELETE FROM mkdesc_verified")
        file.execute("INSERT INTO mkdesc_verified VALUES (?)", (_text(file, made_of),))


def is_ours(base: Path) -> bool:
    """Whether a file is a database that says that mkdesc wrote it."""
    query = "SELECT 1 FROM sqlite_master WHERE name LIKE 'mkdesc%'"
    try:
        with closing(sqlite3.connect(f"{base.resolve().as_uri()}?mode=ro", uri=True)) as file:
            return file.execute(query).fetchone() is not None
    except sqlite3.Error:
        return False


def say_copied(file: sqlite3.Connection) -> None:
    """Write into the copy of anybody's database that it is one.

    What an earlier mkdesc has said of the original does not hold: somebody may have changed it.
    """
    for table in ("mkdesc", "mkdesc_images", "mkdesc_verified", TABLE):
        file.execute(f"DROP TABLE IF EXISTS {table}")
    file.execute("CREATE TABLE IF NOT EXISTS mkdesc_copied (what TEXT)")
    file.commit()


def copy_matches(old: Path, new: Path, pairs: Iterable[NamePair], same: Collection[str]) -> None:
    """Copy matches from one database to another one that has none.

    Parameters
    ----------
    old, new
        The databases; the old one need not exist.
    pairs
        Names of images.
    same
        Images whose keypoints are the same in both.
    """
    if not old.exists():
        return
    to_number = pycolmap_module().image_pair_to_pair_id
    with closing(sqlite3.connect(new)) as file:
        file.execute("ATTACH ? AS old", (str(old),))
        make_table(file)
        query = "SELECT 1 FROM old.sqlite_master WHERE name = ?"
        if file.execute(query, (TABLE,)).fetchone() is None:
            return
        was = {
            name: image for image, name in file.execute("SELECT image_id, name FROM old.images")
        }
        now = {
            name: image for image, name in file.execute("SELECT image_id, name FROM main.images")
        }
        numbers = [
            (to_number(now[a], now[b]), to_number(was[a], was[b]))
            for a, b in pairs
            if a in same and b in same and (was[a] < was[b]) == (now[a] < now[b])
        ]
        with file:
            for table, columns in (("matches", "rows, cols, data"), (TABLE, KEPT)):
                query = f"SELECT ?, {columns} FROM old.{table} WHERE pair_id = ?"
                file.executemany(f"INSERT INTO main.{table} (pair_id, {columns}) {query}", numbers)


def _state(file: sqlite3.Connection) -> str | None:
    """What was said last; None if nothing was."""
    query = "SELECT name FROM sqlite_master WHERE name = 'mkdesc_verified'"
    if file.execute(query).fetchone() is None:
        return None
    found = file.execute("SELECT made_of FROM mkdesc_verified").fetchone()
    return None if found is None else str(found[0])


def _text(file: sqlite3.Connection, made_of: dict[str, Any]) -> str:
    """What verified pairs depend on, and how many there are."""
    tables = ("matches", "two_view_geometries")
    query = "SELECT COUNT(*), SUM(rows) FROM "
    counts = [file.execute(query + table).fetchone() for table in tables]
    settings = {
        key: made_of["settings"][key] for key in made_of["settings"].keys() - {"refine_centres"}
    }
    return json.dumps([{**made_of, "settings": settings}, counts], sort_keys=True)
