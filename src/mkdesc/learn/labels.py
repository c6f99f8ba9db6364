"""Labelled patches in a file: ``patches`` and ``labels`` of a .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.sources import PatchSource, open_patches
from mkdesc.learn.learner import TrainingBlock

__all__ = ["labelled_blocks", "open_labelled"]


def open_labelled(path: str | Path) -> tuple[PatchSource, NDArray[np.integer]]:
    """Open a .npz with arrays ``patches`` (N, W, W) and ``labels`` (N,)."""
    source = open_patches(path)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            labels = arrays["labels"]
    except (KeyError, AttributeError, TypeError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{path}: expected a .npz with arrays 'patches' and 'labels'") from None
    if labels.shape != (source.count,) or labels.dtype.kind not in "iuSU":
        raise ValueError(
            f"{path}: labels: expected {source.count} integers or names, one per patch, got "
            f"{labels.dtype} {labels.shape}"
        )
    return source, labels


def labelled_blocks(source: PatchSource, labels: NDArray[np.integer]) -> Iterator[TrainingBlock]:
    """Go through the patches with their labels."""
    done = 0
    for patches in source.blocks():
        yield TrainingBlock(patches, labels[done : done + len(patches)])
        done += len(patches)
