"""A cache of descriptors filled by others: each worker describes a part of the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers, in_order
from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.cache import DescriptorCache
from mkdesc.evaluation.contenders.base import CsvDescriptor, Descriptor, PatchDescriptor, base_of
from mkdesc.evaluation.contenders.registry import get_descriptor
from mkdesc.evaluation.training import sequence_rows, subset_rows


def fill_cache(
    cache: DescriptorCache,
    descriptors: Iterable[Descriptor],
    data: Path,
    sequences: Sequence[str | None],
    workers: Workers,
    progress: Progress = no_progress,
) -> None:
    """Have parts of the data described into a cache that all workers see.

    Descriptors travel by their names; those that have none are left to whoever needs them.

    Parameters
    ----------
    cache
        Where descriptors are put.
    descriptors
        All that are evaluated; what several are based on is described once.
    data
        Folder of sequences, or a subset.
    sequences
        Those to describe; None in it: the subset.
    workers
        An executor or a Dask client.
    progress
        Told of every part.
    """
    names = dict.fromkeys(name for one in descriptors if (name := _name(one)) is not None)
    fill = partial(_fill, cache.folder.absolute(), data.absolute())
    pieces = [(name, part) for part in sequences for name in names]
    for done, _ in enumerate(in_order(fill, pieces, workers), 1):
        progress("describing", done, len(pieces))


def _name(descriptor: Descriptor) -> str | None:
    """The name of what is kept on disk of a descriptor, if it can be had by a name."""
    base = base_of(descriptor)
    if isinstance(base, CsvDescriptor):
        return None
    whole = base if base.whole is None else base.whole
    try:
        known = base_of(get_descriptor(whole.name))
    except ValueError:
        return None
    same = isinstance(known, PatchDescriptor) and known.identity == whole.identity
    return whole.name if same else None


def _fill(folder: Path, data: Path, piece: tuple[str, str | None]) -> None:
    """Describe a sequence of a folder, or a subset (no sequence)."""
    name, sequence = piece
    cache, base = DescriptorCache(folder), base_of(get_descriptor(name))
    if sequence is None:
        subset_rows(cache, base, Subset(data))
    else:
        sequence_rows(cache, base, HPatches(data), sequence)
