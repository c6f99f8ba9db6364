"""Learning from whatever one owns: one function per source, all with the same options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.npy import BROKEN, read_archive
from mkdesc._support.progress import Progress
from mkdesc.datasets.colmap import read_observations
from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.datasets.patch_files import open_patches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import Whitening
from mkdesc.images.frames import SIDE
from mkdesc.learn.colmap import colmap_blocks
from mkdesc.learn.learner import Learned, TrainingBlock, learn_model
from mkdesc.learn.photos import FreshPhotos, Recipe, list_photos, photo_blocks
from mkdesc.learn.trained import TrainedHead

__all__ = [
    "learn_colmap",
    "learn_hpatches",
    "learn_patches",
    "learn_photos",
    "learn_phototourism",
]


def _counted(
    blocks: Iterable[TrainingBlock], total: int, progress: Progress | None, by_block: bool = False
) -> Iterator[TrainingBlock]:
    """The blocks, with the progress reported after each; in patches, or block by block."""
    done = 0
    for block in blocks:
        yield block
        done += 1 if by_block else len(block.patches)
        if progress is not None:
            progress("learning", done, total)


def learn_patches(
    path: str | Path,
    mkd: MKD | None = None,
    whitening: Whitening | None = None,
    progress: Progress | None = None,
    trained: TrainedHead | None = None,
) -> Learned:
    """Learn from labelled patches in a .npz with arrays ``patches`` and ``labels``.

    Parameters
    ----------
    path
        The file; patches (N, W, W) of equal labels (N,) match.
    mkd
        The descriptor, without whitening; default: the paper's, for patches of this size.
    whitening
        What to learn; default: ``Whitening("gda", power=0.75)``, as the bundled models have it.
    progress
        Told of every block of patches, and of every step of training.
    trained
        How to train a head further with PyTorch, which begins as the whitening; default: it is not
        trained.
    """
    source = open_patches(path)
    labels = _labels(path, source.count)
    mkd = MKD(patch_size=source.size) if mkd is None else mkd

    def blocks() -> Iterator[TrainingBlock]:
        done = 0
        for patches in source.blocks():
            yield TrainingBlock(patches, labels[done : done + len(patches)])
            done += len(patches)

    learned = learn_model(
        _counted(blocks(), source.count, progress), mkd, whitening, None, trained, progress
    )
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
    whitening: Whitening | None = None,
    progress: Progress | None = None,
    pairs: int | None = None,
    trained: TrainedHead | None = None,
) -> Learned:
    """Learn from a subset in the Phototourism layout.

    Parameters
    ----------
    folder
        Sheets, info.txt and m50 files.
    mkd, whitening, progress
        As in :func:`learn_patches`.
    pairs
        Which m50 file: its number of pairs; default: the largest. Without any, all pairs of
        patches of one 3-D point.
    trained
        As in :func:`learn_patches`.
    """
    subset = Subset(folder)
    labels = subset.labels()
    chosen = None
    if subset.pair_files() or pairs is not None:
        listed = subset.pairs(max(subset.pair_files()) if pairs is None else pairs)
        chosen = (listed.first[listed.matching], listed.second[listed.matching])
    blocks = (TrainingBlock(patches, labels[index]) for index, patches in subset.blocks())
    learned = learn_model(
        _counted(blocks, len(subset), progress), mkd, whitening, chosen, trained, progress
    )
    return learned.with_source(f"Phototourism {subset.name}")


def learn_hpatches(
    root: str | Path,
    mkd: MKD | None = None,
    whitening: Whitening | None = None,
    progress: Progress | None = None,
    split: str | None = None,
    splits_file: str | Path | None = None,
    trained: TrainedHead | None = None,
) -> Learned:
    """Learn from HPatches strips: row k shows the same surface in all strips of a sequence.

    Parameters
    ----------
    root
        Folder of sequences.
    mkd, whitening, progress
        As in :func:`learn_patches`; the patches are resized to those of ``mkd``.
    split, splits_file
        Learn from the training sequences of a split (``a``, ``b`` or ``c`` of splits.json);
        default: from all sequences.
    trained
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

    def blocks() -> Iterator[TrainingBlock]:
        first = 0
        for name in names:
            sequence = dataset[name]
            labels = np.arange(first, first + len(sequence))
            for _, patches in sequence.images():
                yield TrainingBlock(patches, labels)
            first += len(sequence)

    total = 16 * sum(dataset.counts(names).values())
    learned = learn_model(
        _counted(blocks(), total, progress), mkd, whitening, None, trained, progress
    )
    return learned.with_source("HPatches strips", sequences=len(names), split=split or "all")


def learn_colmap(
    model: str | Path,
    images: str | Path,
    mkd: MKD | None = None,
    whitening: Whitening | None = None,
    progress: Progress | None = None,
    side: float = SIDE,
    trained: TrainedHead | None = None,
) -> Learned:
    """Learn from a sparse COLMAP model and its photographs; needs OpenCV and pycolmap.

    Parameters
    ----------
    model, images
        Folder of the model (text or binary), and of the photographs.
    mkd, whitening
        As in :func:`learn_patches`.
    progress
        Told of every photograph.
    side
        Side of a patch in units of the keypoint's sigma.
    trained
        As in :func:`learn_patches`.
    """
    observations = read_observations(model)
    mkd = MKD() if mkd is None else mkd
    blocks = colmap_blocks(observations, images, mkd.patch_size, side)
    counted = _counted(blocks, len(observations), progress, by_block=True)
    learned = learn_model(counted, mkd, whitening, None, trained, progress)
    return learned.with_source("a COLMAP model", images=len(observations), side=side)


def learn_photos(
    photos: str | Path | Iterable[str | Path],
    mkd: MKD | None = None,
    whitening: Whitening | None = None,
    progress: Progress | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    trained: TrainedHead | None = None,
) -> Learned:
    """Learn from plain photographs, with no labels at all; needs OpenCV.

    Around each keypoint several patches are cut from randomly warped and changed copies of the
    photograph; they match.

    Parameters
    ----------
    photos
        A folder (photographs of folders in it too), or files.
    mkd, whitening
        As in :func:`learn_patches`.
    progress
        Told of every photograph.
    recipe
        How patches are made; default: :class:`~mkdesc.learn.photos.Recipe` with the patch size
        of ``mkd``.
    seed
        The same seed gives the same model.
    trained
        As in :func:`learn_patches`; views are then made anew while it trains.
    """
    files = list_photos(photos)
    mkd = MKD() if mkd is None else mkd
    recipe = Recipe(patch_size=mkd.patch_size) if recipe is None else recipe
    fresh = FreshPhotos(files, recipe, seed)

    def blocks() -> Iterator[TrainingBlock]:
        for block in photo_blocks(files, recipe, seed, mkd.n_threads):
            fresh.frames[block.index] = block.frames
            yield TrainingBlock(block.patches, block.labels)

    counted = _counted(blocks(), len(files), progress, by_block=True)
    learned = learn_model(counted, mkd, whitening, None, trained, progress, fresh)
    return learned.with_source(
        "plain photographs",
        photographs=len(files),
        views=" ".join(map(str, recipe.views)),
        side=recipe.side,
        seed=seed,
    )
