"""Learning from whatever one owns: one function per source, all with the same options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.locations import as_location
from mkdesc._support.npy import BROKEN, read_archive
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import share_memory
from mkdesc.datasets.colmap import read_observations
from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.datasets.patch_files import open_patches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.descriptor import MKD
from mkdesc.images.frames import SIDE
from mkdesc.learn.colmap import colmap_blocks, point_shards
from mkdesc.learn.file_shards import (
    RowShard,
    SequenceShard,
    SubsetShard,
    pairs_among,
    whole_points,
)
from mkdesc.learn.holding_out import hold_out as held_out_photos
from mkdesc.learn.holding_out import names_of
from mkdesc.learn.learner import LearnOptions, learn_model
from mkdesc.learn.photos import FreshPhotos, PhotoShard, Recipe, list_photos, photo_blocks
from mkdesc.learn.ratio import RATIO_PHOTOS, calibrated_ratio
from mkdesc.learn.report import Learned
from mkdesc.learn.shards import PairRows, Shard, TrainingBlock

T = TypeVar("T")

#: Patches of a shard, about.
SHARD = 16_384


def _batched(items: Iterable[T], n: int) -> Iterator[tuple[T, ...]]:
    """Items in groups of ``n``: itertools.batched, which Python 3.11 lacks."""
    rest = iter(items)
    while part := tuple(islice(rest, n)):
        yield part


@dataclass
class _Source:
    """Training data: one shard for this process, or cut into several for others.

    Attributes
    ----------
    read
        All blocks, each file read once. A label may be in several of them.
    cut
        The same data in shards.
    patches
        How many there are, about.
    size
        What the progress counts to: blocks; by default, patches.
    pairs, fresh
        See :class:`~mkdesc.learn.Shard`.
    """

    read: Callable[[], Iterator[TrainingBlock]]
    cut: Callable[[], Sequence[Shard]]
    patches: int
    size: int = 0
    pairs: PairRows | None = None
    fresh: FreshPhotos | None = None
    progress: Progress = no_progress

    def learn(self, mkd: MKD, how: LearnOptions) -> Learned:
        """Learn from it here, or in other processes."""
        self.progress, self.size = how.get("progress", no_progress), self.size or self.patches
        shards = [self] if share_memory(how.get("workers")) else self.cut()
        return learn_model(shards, mkd, expected=self.patches, **how)

    def blocks(self) -> Iterator[TrainingBlock]:
        """The blocks, with the progress reported after each."""
        done = 0
        for block in self.read():
            yield block
            done += len(block.patches) if self.size == self.patches else 1
            self.progress("learning", done, self.size)


def learn_patches(
    path: str | Path,
    mkd: MKD | None = None,
    **how: Unpack[LearnOptions],
) -> Learned:
    """Learn from labelled patches in a .npz with arrays ``patches`` and ``labels``.

    Parameters
    ----------
    path
        The file; patches (N, W, W) of equal labels (N,) match.
    mkd
        The descriptor, without whitening; default: the paper's, for patches of this size.
    **how
        ``whitening``, ``trained``, ``workers``, ``parts``, ``progress``: as for
        :func:`~mkdesc.learn.learn_model`.
    """
    source = open_patches(path)
    labels = _labels(path, source.count)
    mkd = MKD(patch_size=source.size) if mkd is None else mkd

    def blocks() -> Iterator[TrainingBlock]:
        done = 0
        for patches in source.blocks():
            yield TrainingBlock(patches, labels[done : done + len(patches)])
            done += len(patches)

    def shards() -> list[Shard]:
        cut = whole_points(labels, SHARD)
        return [RowShard(as_location(path), rows, labels[rows]) for rows in cut]

    data = _Source(blocks, shards, source.count)
    learned = data.learn(mkd, how)
    return learned.with_source(f"labelled patches {Path(path).name}")


def _labels(path: str | Path, count: int) -> NDArray[np.integer]:
    try:
        (labels,) = read_archive(path, ("labels",))
    except BROKEN:
        raise ValueError(f"{path}: expected a .npz with arrays 'patches' and 'labels'") from None
    if labels.shape != (count,) or labels.dtype.kind not in "iuSU":
        raise ValueError(
            f"{path}: labels: expected {count} integers or names, one per patch, got "
            f"{labels.dtype} {labels.shape}"
        )
    return np.unique(labels, return_inverse=True)[1]


def learn_phototourism(
    folder: str | Path,
    mkd: MKD | None = None,
    *,
    pairs: int | None = None,
    **how: Unpack[LearnOptions],
) -> Learned:
    """Learn from a subset in the Phototourism layout.

    Parameters
    ----------
    folder
        Sheets, info.txt and m50 files.
    mkd
        As in :func:`learn_patches`.
    pairs
        Which m50 file: its number of pairs; default: the largest. Without any, all pairs of
        patches of one 3-D point.
    **how
        As in :func:`learn_patches`.
    """
    subset = Subset(folder)
    labels = subset.labels()
    chosen = None
    if subset.pair_files() or pairs is not None:
        listed = subset.pairs(max(subset.pair_files()) if pairs is None else pairs)
        chosen = (listed.first[listed.matching], listed.second[listed.matching])

    def blocks() -> Iterator[TrainingBlock]:
        return (TrainingBlock(patches, labels[index]) for index, patches in subset.blocks())

    def shards() -> list[Shard]:
        absolute = Path(folder).absolute()
        return [
            SubsetShard(absolute, rows, labels[rows], chosen and pairs_among(chosen, rows))
            for rows in whole_points(labels, SHARD)
        ]

    data = _Source(blocks, shards, len(subset), pairs=chosen)
    learned = data.learn(MKD() if mkd is None else mkd, how)
    return learned.with_source(f"Phototourism {subset.name}")


def learn_hpatches(
    root: str | Path,
    mkd: MKD | None = None,
    *,
    split: str | None = None,
    splits_file: str | Path | None = None,
    **how: Unpack[LearnOptions],
) -> Learned:
    """Learn from HPatches strips: row k shows the same surface in all strips of a sequence.

    Parameters
    ----------
    root
        Folder of sequences.
    mkd
        As in :func:`learn_patches`; the patches are resized to those of ``mkd``.
    split, splits_file
        Learn from the training sequences of a split (``a``, ``b`` or ``c`` of splits.json);
        default: from all sequences.
    **how
        As in :func:`learn_patches`.
    """
    dataset = HPatches(root)
    names = tuple(dataset.names)
    if split is not None:
        names = dataset.split(split, splits_file).train
        if not names:
            raise ValueError(f"split: {split!r} has no training sequences")
    # A copy: the caller's stays as it is.
    mkd = MKD(**((MKD() if mkd is None else mkd).get_params(deep=False) | {"resize": True}))

    counts = dataset.counts(names)
    firsts = [0, *accumulate(counts[name] for name in names)]
    absolute = Path(root).absolute()
    shards = [SequenceShard(absolute, *one) for one in zip(names, firsts, strict=False)]

    def blocks() -> Iterator[TrainingBlock]:
        return chain.from_iterable(shard.blocks() for shard in shards)

    data = _Source(blocks, lambda: shards, 16 * sum(counts.values()))
    learned = data.learn(mkd, how)
    return learned.with_source("HPatches strips", sequences=len(names), split=split or "all")


def learn_colmap(
    model: str | Path,
    images: str | Path,
    *,
    mkd: MKD | None = None,
    side: float = SIDE,
    **how: Unpack[LearnOptions],
) -> Learned:
    """Learn from a sparse COLMAP model and its photographs; needs OpenCV and pycolmap.

    Parameters
    ----------
    model, images
        Folder of the model (text or binary), and of the photographs.
    mkd
        As in :func:`learn_patches`.
    side
        Side of a patch in units of the keypoint's sigma.
    **how
        As in :func:`learn_patches`. With ``workers``, a photograph is read once for every part of
        the points that it shows.
    """
    observations = read_observations(model)
    mkd = MKD() if mkd is None else mkd
    cut = (mkd.patch_size, side)
    data = _Source(
        lambda: colmap_blocks(observations, images, *cut),
        lambda: point_shards(observations, Path(images).absolute(), *cut, SHARD),
        sum(len(points) for _, points in observations.values()),
        size=len(observations),
    )
    learned = data.learn(mkd, how)
    return learned.with_source("a COLMAP model", images=len(observations), side=side)


def learn_photos(
    photos: str | Path | Iterable[str | Path],
    mkd: MKD | None = None,
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
    hold_out: bool = False,
    **how: Unpack[LearnOptions],
) -> Learned:
    """Learn from plain photographs, with no labels at all; needs OpenCV.

    Around each keypoint several patches are cut from randomly warped and changed copies of the
    photograph; they match. The ratio of the model's card is that of :func:`calibrated_ratio` on
    some of the photographs.

    Parameters
    ----------
    photos
        A folder (photographs of folders in it too), or files.
    mkd
        As in :func:`learn_patches`.
    recipe
        How patches are made; default: :class:`~mkdesc.learn.Recipe` with the patch size
        of ``mkd``.
    seed
        The same seed gives the same model.
    hold_out
        Whether to learn from nine in ten only, so that the model can be compared with others on
        the rest: the result's ``held_out``.
    **how
        As in :func:`learn_patches`; with ``trained``, views are made anew while it trains.
    """
    files = list_photos(photos)
    kept: list[str] = []
    if hold_out:
        names, kept = held_out_photos([str(file) for file in files], seed)
        files = [Path(name) for name in names]
    mkd = MKD() if mkd is None else mkd
    recipe = Recipe(patch_size=mkd.patch_size) if recipe is None else recipe
    fresh = FreshPhotos(files, recipe, seed)

    def blocks() -> Iterator[TrainingBlock]:
        for block in photo_blocks(files, recipe, seed, mkd.n_threads):
            fresh.frames[block.index] = block.frames
            yield TrainingBlock(block.patches, block.labels)

    def shards() -> list[Shard]:
        some = _batched(enumerate(file.absolute() for file in files), max(1, SHARD // each))
        return [PhotoShard(tuple(part), recipe, seed) for part in some]

    each = recipe.keypoints_per_photo * len(recipe.views)
    data = _Source(blocks, shards, each * len(files), size=len(files), fresh=fresh)
    learned = data.learn(mkd, how)
    ratio = calibrated_ratio(learned.mkd, files[:: -(-len(files) // RATIO_PHOTOS)], seed=seed)
    learned.mkd.set_params(ratio=None if ratio is None else ratio.ratio)
    learned = replace(learned, held_out=kept)
    return learned.with_source(
        "plain photographs",
        photographs=len(files),
        held_out=names_of(kept),
        keypoints=recipe.keypoints_per_photo,
        views=" ".join(map(str, recipe.views)),
        side=float(recipe.side),
        seed=seed,
    )
