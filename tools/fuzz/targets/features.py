"""Features of photographs, and stores of other programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from targets.target import (
    Target,
    as_it_is,
    encoded,
    in_archive,
    settings,
)

__all__ = ["FEATURES"]


def _features(*names: str) -> Callable[[Path], None]:
    """Features of two photographs, in outputs of these names."""

    def prepare(folder: Path) -> None:
        from mkdesc.features.extraction import extract_to

        (folder / "photos").mkdir()
        for name in ("a.png", "b.png"):
            (folder / "photos" / name).write_bytes(encoded(".png"))
        for name in names:
            extract_to([folder / "photos"], folder / name, settings=settings(), workers=1)

    return prepare


def _read_features(folder: Path) -> None:
    from mkdesc.features.folder import work_folder
    from mkdesc.features.image_features import load_features

    work_folder(folder / "out").open(json.loads(settings().to_json()))
    load_features(folder / "out", "a.png")


def _forked(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    """What ``subprocess.run`` does for the reader of HDF5, by a fork: a tenth of the time."""
    from mkdesc.features.stores.hloc import h5py_module, print_contents

    h5py_module()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.dup2(writing, 1)
            sys.argv = command[-3:]
            print_contents()
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        found = answer.read()
    return subprocess.CompletedProcess(command, os.waitpid(child, 0)[1], found)


def _read_hdf5(folder: Path) -> None:
    from mkdesc.features.stores.hloc import stored_images

    with patch("mkdesc.features.stores.hloc.subprocess.run", _forked):
        stored_images(folder / "out.h5", settings().to_json())


def _read_database(folder: Path) -> None:
    from mkdesc.features.stores.colmap_database import stored_images

    stored_images(folder / "out.db", settings().to_json())


def _matched(folder: Path) -> None:
    from mkdesc.sfm.options import SfmOptions
    from mkdesc.sfm.pipeline import match_images

    _features()(folder)
    matched = match_images(folder / "photos", folder / "out", SfmOptions(settings()))
    (folder / "theirs.db").write_bytes(matched.database.read_bytes())


def _read_theirs(folder: Path) -> None:
    from mkdesc.sfm.others_database import copy_database

    (folder / "copy.db").unlink(missing_ok=True)
    copy_database(folder / "theirs.db", folder / "copy.db", folder / "copy.db")


def _report(folder: Path) -> None:
    (folder / "report.json").write_text(
        json.dumps({"mkdesc": "0.1.0", "settings": {"seed": 1}}), encoding="utf-8"
    )


def _read_report(folder: Path) -> None:
    from mkdesc.sfm.report import read_report

    read_report(folder / "report.json")


def _pairs(folder: Path) -> None:
    (folder / "pairs.txt").write_text("# pairs\na.png b.png\nb.png c.png\n", encoding="utf-8")


def _read_pairs(folder: Path) -> None:
    from mkdesc.retrieval.pairs import read_pairs

    read_pairs(folder / "pairs.txt", ["a.png", "b.png", "c.png"])


#: All of them.
FEATURES = (
    Target(
        "features",
        _features("out"),
        ("out/a.png.npz", "out/features.json"),
        _read_features,
        lambda name, data, change: (in_archive if name.endswith("z") else as_it_is)(
            name, data, change
        ),
    ),
    Target("hdf5", _features("out.h5"), ("out.h5",), _read_hdf5),
    Target("databases", _features("out.db"), ("out.db",), _read_database),
    Target("databases-of-others", _matched, ("theirs.db",), _read_theirs),
    Target("reports", _report, ("report.json",), _read_report),
    Target("pairs", _pairs, ("pairs.txt",), _read_pairs),
)
