"""Indexes of photographs: every file of theirs, looked up and brought up to date."""

from __future__ import annotations

import shutil
from pathlib import Path

from targets.target import Change, Target, as_it_is, encoded, in_archive, settings, without_notes

__all__ = ["RETRIEVAL"]

_SEGMENT = "index/segment-000001"
_VICTIMS = (
    *("index/index.json", "index/words-000000.npy", "index/features/a.png.npz"),
    *(f"{_SEGMENT}/{name}" for name in ("images.json", "starts.npy", "rows.npy", "codes.npy")),
)


def _index(folder: Path) -> None:
    from mkdesc import build_index

    (folder / "photos").mkdir()
    for name, colour in (("a.png", False), ("b.png", True)):
        (folder / "photos" / name).write_bytes(encoded(".png", colour))
    build_index(folder / "photos", folder / "index", settings(), workers=1)


def _find(folder: Path) -> None:
    from mkdesc import Index

    index = Index(folder / "index")
    for name in index.names:
        index.image_path(name, folder / "photos")
    index.find_features(index.features("b.png"), 2, verify=2)


def _update(folder: Path) -> None:
    """Bring a copy up to date: what is damaged is made again, or refused."""
    from mkdesc import Index, build_index

    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "index", copy)
    with without_notes():
        build_index(folder / "photos", copy, workers=1)
    if sorted(Index(copy).names) != ["a.png", "b.png"]:
        raise RuntimeError(f"images {Index(copy).names}")


def _damage(name: str, data: bytes, change: Change) -> bytes:
    return (in_archive if name.endswith("z") else as_it_is)(name, data, change)


#: All of them.
RETRIEVAL = (
    Target("index", _index, _VICTIMS, _find, _damage),
    Target("index-update", _index, _VICTIMS, _update, _damage, share=0.3),
)
