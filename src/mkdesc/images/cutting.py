"""Cutting patches out of images: anti-aliased, exact to a fraction of a pixel, in any frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_integer
from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import array_type
from mkdesc._support.threads import checked_threads, in_threads
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.frames import SIDE, affine_frames, square_frames
from mkdesc.images.gray import as_gray

#: Patches per unit of work.
BLOCK = 64
#: Samples per pixel along one axis, at most: beyond it a coarser level is taken.
MOST_SAMPLES = 4
#: Pixels repeated beyond a level's upper and left borders; one more beyond the other two.
PAD = 1

INTERPOLATIONS = ("cubic", "linear")


class Pyramid(NamedTuple):
    """An image at several resolutions, laid out for the compiled loops."""

    pixels: NDArray[np.float32]
    levels: NDArray[np.int64]


@locked_cache
def compile_for(dtype: str) -> Callable[..., None]:
    """The compiled loop for patches of ``"uint8"`` or ``"float32"``, from the cache if there."""
    arguments = (
        array_type("float32", 1),
        array_type("int64", 2),
        array_type("float64", 3),
        array_type("int64", 2),
        "bool",
        "float32",
        array_type(dtype, 3, written=True),
    )
    return compile_loop("mkdesc.images.cutting_numba:cut_block", arguments)


@locked_cache
def compile_halving() -> Callable[..., None]:
    """The compiled loop that makes a level of a pyramid, from the cache if there."""
    arguments = (
        array_type("float32", 1),
        array_type("int64", 1),
        array_type("float32", 2, written=True),
    )
    return compile_loop("mkdesc.images.cutting_numba:halve", arguments)


def cut_patches(
    image: ArrayLike,
    frames: Keypoints | ArrayLike | Sequence[Any],
    patch_size: int = 64,
    side: float | Sequence[float] = SIDE,
    *,
    interpolation: str = "cubic",
    rgb: bool = False,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Cut patches out of an image.

    Parameters
    ----------
    image
        Gray (H, W) or colour (H, W, 3 or 4), which is turned to gray; uint8, uint16 or floats.
    frames
        Where: keypoints (ours or ``cv2.KeyPoint`` objects), points (N, 4) of x, y, sigma, angle,
        affine frames (N, 2, 3) or projective ones (N, 3, 3); see :mod:`mkdesc.images.frames`.
    patch_size
        Side W of the patches in pixels.
    side
        Side of the square in units of sigma, for keypoints and points. Several: as many squares
        of each, cut in one pass; of frames the first square is given, and the others have its
        centre and shape.
    interpolation
        For patches finer than the image: ``"cubic"`` or ``"linear"``, which is faster and all
        that descriptors need, because they smooth patches first.
    rgb
        Whether red is the first of the colours; OpenCV's own order has blue first.
    n_threads
        Number of threads; None: one per core.

    Returns
    -------
    ndarray of shape (N, W, W); with several sides, k, (N, k, W, W)
        Of the type of the image; float32 for all floats. Integers are rounded.

    Notes
    -----
    Patches finer than the image are interpolated; cubic: by Catmull-Rom splines. Coarser ones are
    taken from that level of a pyramid (binomial filter, factors of two) on which their pixel
    is one to two pixels long in the direction in which it is shorter, and each pixel is the mean
    of up to 4 x 4 bilinear samples, as many along either axis as it takes to leave no gap. A
    slanted frame therefore is neither blurred along its short axis nor aliased along the long
    one. Beyond the border of the image the nearest point of the border goes on.

    Examples
    --------
    >>> image = np.arange(100, dtype=np.uint8).reshape(10, 10)
    >>> cut_patches(image, [[[2, 0, 4.5], [0, 2, 5.5]]], patch_size=4)[0]
    array([[43, 44, 45, 46],
           [53, 54, 55, 56],
           [63, 64, 65, 66],
           [73, 74, 75, 76]], dtype=uint8)
    """
    check_integer("patch_size", patch_size)
    threads = checked_threads(n_threads)
    check_choice("interpolation", interpolation, INTERPOLATIONS)
    gray = as_gray(image, rgb)
    squares = square_frames(frames, side)
    placed, chosen = choose_levels(squares.reshape(-1, 3, 3), int(patch_size), gray.shape)
    limit = np.float32(0 if gray.dtype.kind == "f" else np.iinfo(gray.dtype).max)
    dtype = "uint8" if gray.dtype == np.uint8 else "float32"
    out = np.empty((len(placed), patch_size, patch_size), dtype)
    if len(placed):
        pyramid = _build_pyramid(gray, int(chosen[:, 0].max()))
        cut = compile_for(dtype)

        def run(start: int) -> None:
            part = slice(start, start + BLOCK)
            cut(*pyramid, placed[part], chosen[part], interpolation == "cubic", limit, out[part])

        in_threads(run, range(0, len(placed), BLOCK), threads)
    if isinstance(side, Sequence):
        out = out.reshape(*squares.shape[:2], patch_size, patch_size)
    return out.astype(np.uint16) if gray.dtype == np.uint16 else out


def choose_levels(
    frames: NDArray[np.float64], size: int, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Frames from pixel indices of the patch to pixels of a level; which, and how many samples.

    Returns
    -------
    placed : (N, 3, 3) float64
    chosen : (N, 3) int64
        Level, samples per pixel along x, along y.
    """
    # Image pixels per patch pixel, at the centre, along the x and the y axis of the patch.
    steps = np.linalg.norm(affine_frames(frames)[:, :, :2], axis=1) * 2 / size
    # Frames are exact in many cases (a pixel to a pixel); rounding must not make them coarser.
    steps *= 1 - 1e-9
    most = int(np.log2(min(shape[:2])))  # the smaller side is at least one pixel on this level
    finest = np.ceil(np.log2(steps.max(axis=1) / MOST_SAMPLES)).clip(0, most)
    level = np.clip(np.floor(np.log2(steps.min(axis=1))), finest, most)
    factor = 2.0**level
    # Coarser levels have no frequencies left to alias before their pixels are so much longer;
    # a single sharp sample there makes up for the blur of the pyramid.
    longest = np.where(level > 0, 2**0.5, 1)
    samples = np.clip(np.ceil(steps / (factor * longest)[:, None]), 1, MOST_SAMPLES)
    centres = np.array([[2 / size, 0, 1 / size - 1], [0, 2 / size, 1 / size - 1], [0, 0, 1]])
    placed = frames @ centres
    placed[:, :2] /= factor[:, None, None]
    return placed, np.column_stack([level, samples]).astype(np.int64)


def _build_pyramid(gray: NDArray[Any], last: int) -> Pyramid:
    """The first levels of the pyramid; pixel i of a level is pixel 2 i of the finer one."""
    shapes = [gray.shape]
    while len(shapes) <= last:
        shapes.append(tuple((n + 1) // 2 for n in shapes[-1]))
    # Positions end at the last pixel, and an interpolation there looks two further.
    before, after = PAD, PAD + 1
    levels = np.zeros((len(shapes), 4), np.int64)
    ends = np.cumsum([0, *((h + before + after) * (w + before + after) for h, w in shapes)])
    pixels = np.empty(ends[-1], np.float32)
    for index, (height, width) in enumerate(shapes):
        stride = width + before + after
        whole = pixels[ends[index] : ends[index + 1]].reshape(-1, stride)
        inner = whole[before:-after, before:-after]
        if index == 0:
            inner[:] = gray
        else:
            compile_halving()(pixels, levels[index - 1], whole)
        whole[before:-after, :before] = inner[:, :1]
        whole[before:-after, -after:] = inner[:, -1:]
        whole[:before] = whole[before]
        whole[-after:] = whole[-after - 1]
        levels[index] = ends[index], stride, height, width
    return Pyramid(pixels, levels)
