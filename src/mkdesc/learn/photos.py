"""Matching patches from plain photographs, with no labels: every keypoint, seen several times.

Around each keypoint one patch is cut as it is, and others with a random change of the frame from
randomly changed copies of the photograph (:mod:`mkdesc.images.jitter`). Those of one keypoint
match. What a whitening learns from them is what detectors, cameras and light do to a patch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.work import in_order
from mkdesc.images.cutting import cut_patches
from mkdesc.images.detectors.registry import make_detector
from mkdesc.images.frames import SIDE, inside, to_frames
from mkdesc.images.jitter import (
    Jitter,
    Photometric,
    as_jitter,
    change_image,
    jitter_frames,
)
from mkdesc.images.listing import find_images
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import reduced
from mkdesc.learn.shards import TrainingBlock

#: The views of a keypoint: how strongly each is changed.
VIEWS = ("plain", "easy", "easy", "hard", "hard", "tough", "tough", "stronger")


@dataclass(frozen=True)
class Recipe:
    """How patches are made from photographs.

    Attributes
    ----------
    views
        Strength of each view of a keypoint: names out of :data:`mkdesc.images.jitter.LEVELS` or
        :class:`~mkdesc.images.Jitter`; a ``"plain"`` one is cut from the photograph
        itself.
    keypoints_per_photo
        How many to use of each photograph, at most: the strongest whose squares are inside.
    side
        Side of a patch in units of sigma.
    patch_size
        Side of a patch in pixels.
    perspective
        Whether changes of the frame include mild perspective.
    scales_per_side
        Side of a patch in the units of the shifts; fewer: stronger shifts. (HPatches has 10;
        shifts twice as strong teach more, on its own kind of strips too.)
    photometric
        Bounds of the changes of the photograph.
    max_size
        Larger photographs are first reduced to this many pixels; None: they are not.
    detector
        What finds the keypoints, a name out of :data:`mkdesc.images.detectors.registry.DETECTORS`.

    Examples
    --------
    >>> Recipe(views=("plain", "easy", Jitter(rotation=5, shift=0.1, scale=0.1, anisotropy=0)))
    Recipe(views=('plain', 'easy', Jitter(...)), keypoints_per_photo=400, ...)
    """

    views: Sequence[str | Jitter] = VIEWS
    keypoints_per_photo: int = 400
    side: float = SIDE
    patch_size: int = 64
    perspective: bool = True
    scales_per_side: float = 5.0
    photometric: Photometric = field(default_factory=Photometric)
    max_size: int | None = 1600
    detector: str = "sift"

    def __post_init__(self) -> None:
        if len(self.views) < 2:
            raise ValueError(f"views: expected at least two (a pair), got {len(self.views)}")
        for view in self.views:
            as_jitter(view)
        check_integer("keypoints_per_photo", self.keypoints_per_photo)
        check_integer("max_size", self.max_size, least=32, optional=True)


@dataclass(frozen=True)
class PhotoBlock:
    """The patches of one photograph.

    Attributes
    ----------
    patches
        (n * views, W, W) uint8; the views of a keypoint follow each other.
    labels
        (n * views,) int64: equal for the views of one keypoint, and for nothing else.
    path, index
        The photograph, and its number in the list (skipped ones count).
    frames
        (n, 3, 3) float64: the squares of the keypoints.
    """

    patches: NDArray[np.uint8]
    labels: NDArray[np.int64]
    path: Path
    index: int
    frames: NDArray[np.float64]


def list_photos(photos: str | Path | Iterable[str | Path]) -> list[Path]:
    """The photographs of a folder (and of those in it), sorted; or those of a list, as they are.

    Examples
    --------
    >>> [path.name for path in list_photos(["b.jpg", "a.png"])]
    ['b.jpg', 'a.png']
    """
    if isinstance(photos, (str, Path)):
        return list(find_images([photos]).values())
    found = [Path(photo) for photo in photos]
    if not found:
        raise ValueError("photos: expected a folder or at least one file, got an empty list")
    return found


def photo_blocks(
    photos: str | Path | Iterable[str | Path],
    recipe: Recipe | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> Iterator[PhotoBlock]:
    """Go through photographs and make matching patches of each.

    Parameters
    ----------
    photos
        A folder (those of folders in it too), or a list of files.
    recipe
        How; None: the default :class:`Recipe`.
    seed
        The same seed gives the same patches, whatever the number of threads; those of a
        photograph depend only on the seed and its place in the list.
    n_threads
        Photographs that are worked on at a time; None: one per core. A few more wait in memory.

    Yields
    ------
    PhotoBlock
        In the order of the photographs. Unreadable ones and those without a keypoint are skipped
        with a warning; if none is left, a ValueError is raised.

    Examples
    --------
    >>> import tempfile, cv2
    >>> folder = Path(tempfile.mkdtemp())
    >>> noise = np.random.default_rng(0).integers(0, 256, (160, 160), np.uint8)
    >>> _ = cv2.imwrite(str(folder / "noise.png"), cv2.GaussianBlur(noise, (0, 0), 2))
    >>> block, = photo_blocks(folder, Recipe(keypoints_per_photo=10, patch_size=32))
    >>> block.patches.shape, block.labels.tolist()[:9]
    ((80, 32, 32), [0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    how = Recipe() if recipe is None else recipe
    files = list_photos(photos)

    def make(index: int) -> PhotoBlock | str:
        return photo_block(files[index], index, how, seed)

    used = False
    reasons = []
    for made in in_order(make, range(len(files)), n_threads):
        if isinstance(made, str):
            reasons.append(made)
            warnings.warn(f"skipped: {made}", RuntimeWarning, stacklevel=2)
            continue
        used = True
        yield made
    if not used:
        raise ValueError(f"photos: none of {len(files)} could be used; the first: {reasons[0]}")


def photo_block(file: Path, index: int, how: Recipe, seed: int) -> PhotoBlock | str:
    """The patches of one photograph, or why there are none.

    Parameters
    ----------
    file, index
        The photograph, and its number in the list.
    how, seed
        As for :func:`photo_blocks`.
    """
    try:
        image = reduced(read_gray(file), how.max_size)
        frames = _frames(image, how)
        patches = _cut(_views(image, frames, how, np.random.default_rng([seed, index])), how)
    except (ValueError, OSError) as error:
        return str(error) if str(file) in str(error) else f"{file}: {error}"
    first = index << 32  # labels must not depend on what other photographs have
    labels = np.repeat(np.arange(first, first + len(frames)), len(how.views))
    return PhotoBlock(patches, labels, file, index, frames)


@dataclass
class PhotoShard:
    """Some photographs to learn from.

    Attributes
    ----------
    files
        Numbers in the list of all, and files.
    recipe, seed
        As for :func:`photo_blocks`.
    skipped
        Those that could not be used, and why.
    """

    files: tuple[tuple[int, Path], ...]
    recipe: Recipe
    seed: int
    skipped: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[Path]:
        """The photographs."""
        return [file for _, file in self.files]

    @property
    def size(self) -> int:
        """How many photographs."""
        return len(self.files)

    def blocks(self) -> Iterator[TrainingBlock]:
        """A block for each photograph."""
        self.skipped.clear()
        for index, file in self.files:
            made = photo_block(file, index, self.recipe, self.seed)
            if isinstance(made, str):
                self.skipped.append(made)
            else:
                yield TrainingBlock(made.patches, made.labels)


class ChangedPhoto(NamedTuple):
    """A changed photograph (H, W), and the moved squares (n, 3, 3) to look at in it."""

    image: NDArray[np.uint8]
    frames: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FreshPhotos:
    """Views of photographs made anew, as often as one likes.

    Attributes
    ----------
    files, recipe, seed
        As for :func:`photo_blocks`.
    frames
        What its blocks had, by the index of the photograph, in their order.
    """

    files: Sequence[Path]
    recipe: Recipe
    seed: int
    frames: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def views(self, number: int) -> tuple[int, Iterator[ChangedPhoto]]:
        """Views of a photograph: photographs come in rounds, each in another order.

        Returns
        -------
        first : int
            The number, among the patches of all blocks, of the first that these stand for.
        views : iterator of ChangedPhoto
        """
        around, place = divmod(number, len(self.frames))
        order = np.random.default_rng([self.seed, around, 1]).permutation(len(self.frames))
        index = list(self.frames)[order[place]]
        before = sum(map(len, list(self.frames.values())[: order[place]]))
        image = reduced(read_gray(self.files[index]), self.recipe.max_size)
        rng = np.random.default_rng([self.seed, index, around, 2])
        first = before * len(self.recipe.views)
        return first, _views(image, self.frames[index], self.recipe, rng)

    def patches(self, number: int) -> tuple[int, NDArray[np.uint8]]:
        """The patches (n * views, W, W) of these views, those of a square together."""
        first, views = self.views(number)
        return first, _cut(views, self.recipe)


def _frames(image: NDArray[np.uint8], how: Recipe) -> NDArray[np.float64]:
    """The squares (n, 3, 3) of the keypoints of a photograph."""
    # What lies beyond the border is no picture to learn from.
    found = make_detector(how.detector, n_threads=1).detect(image)
    frames = to_frames(found.strongest(), how.side)
    frames = frames[inside(frames, image.shape)][: how.keypoints_per_photo]
    if not len(frames):
        raise ValueError("no keypoint whose patch is inside the photograph")
    return frames


def _views(
    image: NDArray[np.uint8],
    frames: NDArray[np.float64],
    how: Recipe,
    rng: np.random.Generator,
) -> Iterator[ChangedPhoto]:
    """All views of squares of a photograph."""
    for level in how.views:
        if level == "plain":
            yield ChangedPhoto(image, frames)
        else:
            moved = jitter_frames(frames, level, rng, how.perspective, how.scales_per_side)
            yield ChangedPhoto(change_image(image, how.photometric, rng), moved)


def _cut(views: Iterable[ChangedPhoto], how: Recipe) -> NDArray[np.uint8]:
    """Patches (n * views, W, W) of views, those of a square together."""
    cut = [cut_patches(*view, how.patch_size, n_threads=1) for view in views]
    return np.stack(cut, axis=1).reshape(-1, how.patch_size, how.patch_size)
