"""What the benchmarks learn from their training parts: statistics, and a projection from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.hpatches.csv_files import read_csv
from mkdesc.datasets.hpatches.layout import IMAGES, HPatches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.cache import DescriptorCache
from mkdesc.evaluation.contenders.base import CsvDescriptor, LearnedDescriptor, PatchDescriptor
from mkdesc.heads.head import Head
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import METHODS, learn_head, linear_head
from mkdesc.measures.descriptors import as_descriptors

#: Share of the variance whose eigenvalues ``zca`` clips; what the HPatches authors found best for
#: SIFT and RootSIFT (for others they chose from 0.05 to 0.40 on the training part).
CLIPPED = 0.25

Base = PatchDescriptor | CsvDescriptor
Vectors = NDArray[np.float32]


def subset_rows(cache: DescriptorCache, base: Base, subset: Subset) -> Vectors:
    """Descriptors (N, D) of all patches of a Phototourism subset."""
    if isinstance(base, CsvDescriptor):
        raise ValueError(f"{base.name}: CSV files are for HPatches, not for Phototourism")

    def blocks() -> Iterator[NDArray[np.uint8]]:
        return (patches for _, patches in subset.blocks())

    return cache.rows(base, subset.name, len(subset), blocks)


def sequence_rows(
    cache: DescriptorCache, base: Base, dataset: HPatches, name: str, image: str | None = None
) -> Vectors:
    """Descriptors of a sequence, image after image (16 N, D), or of one of its images (N, D)."""
    sequence = dataset[name]
    count = len(sequence)
    if isinstance(base, CsvDescriptor):
        folder = base.folder

        def files() -> Iterator[Vectors]:
            for image in IMAGES:
                file = f"{folder / name / image}.csv"
                yield as_descriptors(read_csv(folder, name, image), count, file)

        rows = cache.keep(base, name, len(IMAGES) * count, files)
    else:

        def strips() -> Iterator[NDArray[np.uint8]]:
            return (patches for _, patches in sequence.images())

        rows = cache.rows(base, name, len(IMAGES) * count, strips)
    if image is None:
        return rows
    number = IMAGES.index(image)
    return rows[number * count : (number + 1) * count]


def subset_statistics(cache: DescriptorCache, base: Base, subset: Subset) -> Statistics:
    """Statistics of a subset: all its patches, and the matching ones of its largest pair file."""

    def gather(descriptor: Base) -> Statistics:
        rows = subset_rows(cache, descriptor, subset)
        files = subset.pair_files()
        if not files:
            raise ValueError(f"{subset.folder}: no files of pairs (m50_N_N_0.txt) to learn from")
        pairs = subset.pairs(max(files))
        statistics = Statistics(rows.shape[1]).update(rows)
        return statistics.update_pairs(
            rows, pairs.first[pairs.matching], pairs.second[pairs.matching]
        )

    return cache.statistics(base, f"{subset.name}.subset", gather)


def sequence_statistics(
    cache: DescriptorCache, base: Base, dataset: HPatches, split: str, names: Sequence[str]
) -> Statistics:
    """Statistics of HPatches sequences: equal rows of the 16 images of a sequence match."""

    def gather(descriptor: Base) -> Statistics:
        total: Statistics | None = None
        for name in names:
            rows = sequence_rows(cache, descriptor, dataset, name)
            if total is None:
                total = Statistics(rows.shape[1])
            total.update(rows, np.tile(np.arange(len(dataset[name])), len(IMAGES)))
        if total is None:
            raise ValueError(f"split {split!r}: there are no sequences to learn from")
        return total

    return cache.statistics(base, f"{split}.train", gather)


def learn(descriptor: LearnedDescriptor, statistics: Statistics) -> Head:
    """The head that a learned descriptor applies, given the statistics of its base."""
    if descriptor.method not in METHODS:
        return zca(statistics)
    return learn_head(statistics, descriptor.method, min(descriptor.dims, statistics.dims))


def zca(statistics: Statistics, clipped: float = CLIPPED) -> Head:
    """The "+" of the HPatches article: ZCA with clipped eigenvalues, square root, l2.

    Parameters
    ----------
    statistics
        Of the training part.
    clipped
        The smallest eigenvalues, up to this share of the sum of all, are raised to the first one
        beyond it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 4)) * [5, 2, 1, 1]
    >>> white = (X - X.mean(axis=0)) @ zca(Statistics(4).update(X), 0.0).linear().matrix
    >>> bool(np.allclose(white.T @ white / 500, np.eye(4), atol=1e-4))
    True
    """
    values, vectors = np.linalg.eigh(statistics.covariance)
    values = np.maximum(values, 0)
    if clipped:
        share = np.cumsum(values) / values.sum()
        values = np.maximum(values, values[int((share > clipped).argmax())])
    matrix = vectors / np.sqrt(values + 1e-6 * values.max()) @ vectors.T
    return linear_head(statistics.mean, matrix, square_root=True)
