"""A copy of a database of anybody's, with nothing in it on which COLMAP would fail, or end us."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkdesc._support.files import saying_what_failed
from mkdesc._support.text import shorten
from mkdesc.datasets.colmap import camera_parameters, pycolmap_module
from mkdesc.sfm.earlier_matches import say_copied

#: By which COLMAP multiplies the number of the first image of a pair: the number of a pair.
_IMAGES = 2**31 - 1
#: Bytes of a number of each table of arrays.
_BYTES = {"keypoints": 4, "descriptors": 1, "matches": 4, "two_view_geometries": 4}
#: How many numbers the rows of some of them may have.
_COLUMNS = {"keypoints": (2, 4, 6), "matches": (2,), "two_view_geometries": (2,)}
#: Bytes of matrices and vectors that need not be there.
_MATRICES = {
    "two_view_geometries": {"F": 72, "E": 72, "H": 72, "qvec": 32, "tvec": 24},
    "pose_priors": {"position": 24, "position_covariance": 72, "gravity": 24},
}
#: Columns, and where what they hold must be: SQLite does not look.
_REFERENCES = (
    ("images.camera_id", "cameras.camera_id"),
    ("keypoints.image_id", "images.image_id"),
    ("descriptors.image_id", "images.image_id"),
    ("rig_sensors.rig_id", "rigs.rig_id"),
    ("frames.rig_id", "rigs.rig_id"),
    ("frame_data.frame_id", "frames.frame_id"),
)
#: Those that are computed with here; priors that are not known are NaN.
_FINITE = ("F", "E", "H")
#: Queries for images that are in no frame, or in one of a rig that has not their camera.
_FRAMES = {
    """
    SELECT image_id FROM images WHERE image_id NOT IN
        (SELECT image_id FROM images JOIN frame_data ON data_id = image_id
         WHERE sensor_id = camera_id AND sensor_type = 0)
    """: "in no frame",
    """
    SELECT data_id FROM frame_data JOIN frames USING (frame_id)
    WHERE NOT EXISTS (SELECT 1 FROM rigs WHERE rigs.rig_id = frames.rig_id
            AND ref_sensor_id = sensor_id AND ref_sensor_type = sensor_type)
        AND NOT EXISTS (SELECT 1 FROM rig_sensors AS more WHERE more.rig_id = frames.rig_id
            AND more.sensor_id = frame_data.sensor_id
            AND more.sensor_type = frame_data.sensor_type)
    """: "its rig has not its camera",
}
#: Sides of images that COLMAP can count.
_LONGEST = 2**31 - 1


class Counts(NamedTuple):
    """What a database has: images, pairs of them with matches, and verified ones."""

    images: int
    matched: int
    verified: int


def copy_database(existing: Path, partial: Path, base: Path) -> Counts:
    """Copy a database, with what another process has written beside it so far, and check it.

    Parameters
    ----------
    existing
        Somebody's database. It is not changed. ValueError, which names it, if it cannot be mapped.
    partial
        The copy, in COLMAP's newest layout.
    base
        What an error calls the copy, if there is no room for it.
    """
    try:
        _copy(existing.resolve(), partial, base)
        with pycolmap_module().Database.open(partial) as file:
            matched, verified = file.num_matched_image_pairs(), file.num_verified_image_pairs()
            counts = Counts(file.num_images(), matched, verified)
        with closing(sqlite3.connect(partial)) as copy:
            fault = next(_faults(copy), None)
    except OSError:
        raise
    except Exception as error:  # pycolmap raises whatever sqlite does
        raise ValueError(f"{existing}: not a COLMAP database ({shorten(str(error))})") from None
    if fault is not None:
        raise ValueError(
            f"{existing}: not a COLMAP database that can be mapped ({shorten(fault)})"
        )
    if not matched and not verified:
        raise ValueError(f"{existing}: no matches in this database")
    return counts


def _copy(existing: Path, partial: Path, base: Path) -> None:
    beside = [existing.with_name(existing.name + ending) for ending in ("-wal", "-journal")]
    # As it lies there, nothing is written beside it: its folder may be read-only.
    mode = "mode=ro" if any(file.exists() for file in beside) else "immutable=1"
    address = f"{existing.as_uri()}?{mode}"
    with closing(sqlite3.connect(address, uri=True)) as source:
        source.execute("SELECT * FROM sqlite_master").fetchone()  # whether it can be read
        with (
            saying_what_failed(base, sqlite3.OperationalError),
            closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)
            say_copied(copy)


def _faults(file: sqlite3.Connection) -> Iterator[str]:
    """What is wrong, in words."""
    for number, *camera in file.execute(
        "SELECT camera_id, model, width, height, params FROM cameras"
    ):
        if (fault := _fault_of_camera(*camera)) is not None:
            yield f"camera {number}: {fault}"
    for image, name in file.execute("SELECT image_id, name FROM images"):
        if not isinstance(name, str):
            yield f"image {image}: its name is no text"
    for reference, target in _REFERENCES:
        (table, column), (other, key) = reference.split("."), target.split(".")
        query = f"SELECT {column} FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {other})"
        if (lost := file.execute(query).fetchone()) is not None:
            yield f"{table}: {column} {lost[0]} is not in {other}"
    if file.execute("SELECT 1 FROM frames").fetchone() is not None:  # older ones have none
        for query, what in _FRAMES.items():
            if (lost := file.execute(query).fetchone()) is not None:
                yield f"image {lost[0]}: {what}"
    for table in _BYTES:
        yield from _faults_of_arrays(file, table)
    for table, arrays in _MATRICES.items():
        for row in file.execute(f"SELECT {', '.join(arrays)} FROM {table}"):
            for data, (name, size) in zip(row, arrays.items(), strict=True):
                if data and len(data) != size:
                    yield f"{table}: expected {size // 8} numbers as {name}"
                elif data and name in _FINITE and not np.isfinite(np.frombuffer(data)).all():
                    yield f"{table}: a number of {name} is not finite"
    yield from _faults_of_pairs(file)


def _fault_of_camera(model: object, width: object, height: object, params: object) -> str | None:
    known = camera_parameters()
    if not isinstance(model, int) or model not in known:
        return f"no camera model {model!r}"
    if not all(isinstance(side, int) and 0 < side <= _LONGEST for side in (width, height)):
        return f"{width!r} x {height!r} px"
    if not isinstance(params, bytes) or len(params) != 8 * known[model]:
        return f"expected {known[model]} parameters"
    return None if np.isfinite(np.frombuffer(params)).all() else "a parameter is not finite"


def _faults_of_arrays(file: sqlite3.Connection, table: str) -> Iterator[str]:
    key = "image_id" if table in ("keypoints", "descriptors") else "pair_id"
    for number, rows, cols, data in file.execute(f"SELECT {key}, rows, cols, data FROM {table}"):
        counted = isinstance(rows, int) and isinstance(cols, int) and rows >= 0 <= cols
        held = len(data) if isinstance(data, bytes) else 0
        if not counted or rows * cols * _BYTES[table] != held:
            yield f"{table}: {key} {number} has {rows} x {cols} numbers in {held} bytes"
        elif rows and cols not in _COLUMNS.get(table, (cols,)):
            yield f"{table}: {key} {number} has rows of {cols} numbers"
        elif table == "keypoints" and not np.isfinite(np.frombuffer(data, np.float32)).all():
            yield f"{table}: {key} {number} has numbers that are not finite"


def _faults_of_pairs(file: sqlite3.Connection) -> Iterator[str]:
    counts = dict(file.execute("SELECT image_id, 0 FROM images"))
    counts |= dict(file.execute("SELECT image_id, rows FROM keypoints"))
    for table in ("matches", "two_view_geometries"):
        for pair, data in file.execute(f"SELECT pair_id, data FROM {table}"):
            one, other = divmod(pair, _IMAGES)
            if not (one in counts and other in counts and one < other):
                yield f"{table}: pair_id {pair} is of no two images"
            elif (
                data
                and not (
                    np.frombuffer(data, np.uint32).reshape(-1, 2).max(0)
                    < (counts[one], counts[other])
                ).all()
            ):
                yield f"{table}: pair_id {pair} has keypoints that its images have not"
