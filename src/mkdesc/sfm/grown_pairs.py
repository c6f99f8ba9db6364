"""What a database keeps of each pair that was matched: the verdict, and how its matches shift.

COLMAP's table of matches has numbers of keypoints alone. A table of ours has, row by row, where
the gray values put the second keypoint of a match, given the first: tracks are refined by that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc.belief.checks import AMBIGUOUS, VERIFIED
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.retrieval.pairs import NamePair

#: Its name, and what it has of a pair, besides COLMAP's number.
TABLE, KEPT = "mkdesc_grown", "verdict, reason, shifts"


class PairMatches(NamedTuple):
    """The matches of two images, at keypoints of both.

    Attributes
    ----------
    pairs
        (M, 2) uint32: numbers of the keypoints.
    shifts
        (M, 6) float32: a vector t and a map A, row by row. If the first keypoint moves by d, the
        second one fits it where it moves by t + A d.
    verdict, reason
        Whether the images are believed to show the same, and why; see :mod:`mkdesc.belief`.
    """

    pairs: NDArray[np.uint32]
    shifts: NDArray[np.float32]
    verdict: str
    reason: str

    def turned(self) -> PairMatches:
        """The same with the images the other way round."""
        maps = np.linalg.inv(self.shifts[:, 2:].reshape(-1, 2, 2).astype(np.float64))
        back = -np.einsum("nij,nj->ni", maps, self.shifts[:, :2])
        shifts = np.column_stack([back, maps.reshape(-1, 4)]).astype(np.float32)
        return self._replace(pairs=np.ascontiguousarray(self.pairs[:, ::-1]), shifts=shifts)


class RefusedPair(NamedTuple):
    """Two images that are not used together, and why."""

    a: str
    b: str
    reason: str


def make_table(file: sqlite3.Connection) -> None:
    """Make the table, unless it is there."""
    file.execute(
        f"CREATE TABLE IF NOT EXISTS {TABLE} "
        "(pair_id INTEGER PRIMARY KEY, verdict TEXT, reason TEXT, shifts BLOB)"
    )


def matched_pairs(file: sqlite3.Connection) -> set[int]:
    """COLMAP's numbers of the pairs that are there."""
    query = f"SELECT pair_id FROM {TABLE} JOIN matches USING (pair_id)"
    return {number for (number,) in file.execute(query)}


def write_pair(file: sqlite3.Connection, images: tuple[int, int], found: PairMatches) -> None:
    """Write the matches of two images, for COLMAP and for us, both or neither."""
    if images[0] > images[1]:
        images, found = images[::-1], found.turned()
    number = pycolmap_module().image_pair_to_pair_id(*images)
    data, rows = found.pairs.astype(np.uint32).tobytes(), len(found.pairs)
    with file:
        file.execute("INSERT OR REPLACE INTO matches VALUES (?, ?, 2, ?)", (number, rows, data))
        shifts = found.shifts.astype(np.float32).tobytes()
        row = (number, found.verdict, found.reason, shifts)
        file.execute(f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?, ?)", row)


def read_pairs(file: sqlite3.Connection) -> Iterator[tuple[tuple[int, int], PairMatches]]:
    """The images and the matches of all pairs that have any."""
    query = (
        f"SELECT pair_id, data, {KEPT} FROM {TABLE} JOIN matches USING (pair_id) "
        "WHERE matches.rows > 0 ORDER BY pair_id"
    )
    for number, data, verdict, reason, shifts in file.execute(query):
        found = PairMatches(
            np.frombuffer(data, np.uint32).reshape(-1, 2),
            np.frombuffer(shifts, np.float32).reshape(-1, 6),
            verdict,
            reason,
        )
        yield pycolmap_module().pair_id_to_image_pair(number), found


def believed_pairs(base: Path) -> set[int] | None:
    """COLMAP's numbers of the pairs that are believed; None if we did not match them."""
    with closing(sqlite3.connect(base)) as file:
        if not _has_table(file):
            return None
        query = f"SELECT pair_id FROM {TABLE} WHERE verdict = ?"
        return {number for (number,) in file.execute(query, (VERIFIED,))}


def refused_pairs(base: Path) -> list[RefusedPair]:
    """Pairs of images, by name, whose matches are wrong or may be."""
    with closing(sqlite3.connect(base)) as file:
        if not _has_table(file):
            return []
        names = dict(file.execute("SELECT image_id, name FROM images"))
        query = f"SELECT pair_id, reason FROM {TABLE} WHERE verdict = ?"
        rows = file.execute(query, (AMBIGUOUS,)).fetchall()
    to_images = pycolmap_module().pair_id_to_image_pair
    pairs = [(*to_images(number), reason) for number, reason in rows]
    return sorted(RefusedPair(names[a], names[b], reason) for a, b, reason in pairs)


def _has_table(file: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return file.execute(query, (TABLE,)).fetchone() is not None


def name_pair(pair: NamePair) -> str:
    """Two names as text."""
    return " and ".join(pair)
