"""What is kept of work that was interrupted: parts of descriptors, parts of learning."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from targets.target import Target, rng

__all__ = ["BATCHES"]

#: Patches, and how many make a part.
_COUNT, _ROWS = 10, 4
_OUTPUTS = ("out.npy", "out.zarr", "out.parquet")


def _describe(folder: Path, output: Path, most: int = _COUNT) -> tuple[int, int]:
    """Describe patches in small parts, up to so many."""
    from mkdesc.batches import describing

    describing.ROWS = _ROWS

    def tell(_: str, done: int, __: int) -> None:
        if done > most:
            raise KeyboardInterrupt

    source = folder / "patches.npy"
    return describing.describe_file(source, output, raw="theta(8,2)", workers=1, progress=tell)


def _interrupted(folder: Path) -> None:
    np.save(folder / "patches.npy", rng().integers(0, 256, (_COUNT, 12, 12), np.uint8))
    (folder / "half").mkdir()
    for name in _OUTPUTS:
        try:
            _describe(folder, folder / "half" / name, _ROWS)
        except KeyboardInterrupt:
            continue
        raise RuntimeError(f"{name}: was not interrupted")


def _go_on(folder: Path) -> None:
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "half", copy)
    for name in _OUTPUTS:
        found = _describe(folder, copy / name)
        if name == "out.npy" and np.load(copy / name).shape != found:
            raise RuntimeError(f"descriptors of other shapes than {found}")


def _part(folder: Path) -> None:
    from mkdesc import Statistics
    from mkdesc.learn.shards import Part

    raw, labels = rng().normal(size=(20, 5)).astype(np.float32), np.repeat(np.arange(10), 2)
    sums = Statistics(5, 1.0).update(raw, labels)
    Part(20, 10, sums, raw[:4], labels[:4], ("a.png: too small",)).save(folder / "p.safetensors")


def _read_part(folder: Path) -> None:
    from mkdesc.learn.shards import Part

    part = Part.load(folder / "p.safetensors", 1.0)
    with np.errstate(all="ignore"):  # numbers may be any
        _ = (part.statistics + part.statistics).covariance, part.patches + part.points
    for reason in part.skipped:
        reason.splitlines()
    if part.raw.shape != (len(part.labels), part.statistics.dims):
        raise RuntimeError(f"descriptors {part.raw.shape} with labels {part.labels.shape}")


#: All of them.
BATCHES = (
    Target(
        "parts",
        _interrupted,
        (
            *("half/out.npy.parts/mkdesc.json", "half/out.npy.parts/part-000000.npy"),
            *("half/out.parquet.mkdesc.json", "half/out.parquet/part-000000.parquet"),
            "half/out.zarr.mkdesc.json",
            *(f"half/out.zarr/{file}" for file in ("zarr.json", "descriptors/zarr.json")),
            "half/out.zarr/descriptors/c/0/0",
        ),
        _go_on,
        share=0.3,
    ),
    Target("learn-parts", _part, ("p.safetensors",), _read_part),
)
