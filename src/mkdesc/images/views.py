"""A photograph as it would look from elsewhere: views tilted and turned, and the way back.

Looked at from aside, a flat thing is compressed along one direction: by the *tilt*, 1 / cosine of
the angle between the line of sight and the upright. Keypoints and descriptors bear tilts of about
two; beyond that, a photograph compressed on purpose may look like the other one (Morel and Yu,
ASIFT, 2009).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.images.frames import affine_frames
from mkdesc.images.reading import opencv

#: Degrees between two turns at tilt 1; at tilt t a t-th of it.
STEP = 72.0

#: Standard deviation, in units of sqrt(t^2 - 1) pixels, of the blur along the direction that is
#: compressed by t: leaves nothing to alias, and the blur of a camera that stood there.
BLUR = 0.8

Floats = NDArray[np.float64]


class View(NamedTuple):
    """What a photograph looks like from elsewhere.

    Attributes
    ----------
    image
        Gray (H, W), of the photograph's type. Where the photograph has ended its border goes on.
    matrix
        (2, 3) or (3, 3): from pixels of the photograph to pixels of the view.
    """

    image: NDArray[Any]
    matrix: Floats


def turns_for(tilt: float) -> list[float]:
    """Directions to compress along, in degrees: the more the stronger the tilt is.

    Half a turn has them all: compressed along the opposite direction it is the same view, upside
    down.

    Examples
    --------
    >>> turns_for(1), turns_for(2)
    ([0.0], [0.0, 36.0, 72.0, 108.0, 144.0])
    """
    if tilt == 1:
        return [0.0]
    count = max(round(180 * tilt / STEP), 1)
    return [180 * i / count for i in range(count)]


def synthesise(gray: NDArray[Any], tilt: float, turn: float) -> View:
    """A view of a photograph: turned, blurred along x as much as it takes, compressed along x.

    Parameters
    ----------
    gray
        (H, W).
    tilt
        How much shorter the view is along the direction that is compressed, >= 1.
    turn
        That direction in the photograph, degrees, clockwise as seen (y points down).

    Examples
    --------
    >>> view = synthesise(np.zeros((100, 200), np.uint8), tilt=4, turn=0)
    >>> view.image.shape, view.matrix.tolist()
    ((100, 50), [[0.25, 0.0, -0.375], [0.0, 1.0, 0.0]])
    """
    if not (tilt >= 1 and np.isfinite([tilt, turn]).all()):
        raise ValueError(f"tilt and turn: expected tilt >= 1, both finite, got {tilt!r}, {turn!r}")
    if tilt == 1 and turn == 0:
        return View(gray, np.eye(2, 3))
    cv2 = opencv()
    height, width = gray.shape
    c, s = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
    rotation = np.array([[c, s], [-s, c]])
    # The outline of the photograph, half a pixel beyond the centres of its outer pixels.
    left, top, right, bottom = -0.5, -0.5, width - 0.5, height - 0.5
    outline = rotation @ [[left, right, right, left], [top, top, bottom, bottom]]
    low, high = outline.min(axis=1), outline.max(axis=1)
    size = np.maximum(np.ceil(high - low - 1e-6), 1).astype(int)
    turned = np.column_stack([rotation, -low - 0.5])
    out = gray
    if turn:
        border = cv2.BORDER_REPLICATE
        out = cv2.warpAffine(
            gray, turned, size.tolist(), flags=cv2.INTER_LINEAR, borderMode=border
        )
    if tilt == 1:
        return View(out, turned)
    sigma = BLUR * np.sqrt(tilt**2 - 1)
    taps = 2 * int(np.ceil(3 * sigma)) + 1
    out = cv2.sepFilter2D(
        out,
        -1,
        cv2.getGaussianKernel(taps, sigma),
        np.ones(1),
        borderType=cv2.BORDER_REPLICATE,
    )
    # Outline to outline: the first pixel of the view is the middle of `tilt` pixels.
    squeeze = np.array([[1 / tilt, 0, 0.5 / tilt - 0.5], [0, 1, 0]])
    length = max(int(np.ceil(size[0] / tilt - 1e-6)), 1)
    out = cv2.warpAffine(
        out,
        squeeze,
        (length, int(size[1])),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return View(out, squeeze[:, :2] @ turned + [[0, 0, squeeze[0, 2]], [0, 0, 0]])


def seen_through(
    gray: NDArray[Any], matrix: ArrayLike, shape: tuple[int, int], at: ArrayLike
) -> View:
    """A photograph as a homography shows it, blurred as much as its compression takes.

    Parameters
    ----------
    gray
        (H, W).
    matrix
        (3, 3): from pixels of the photograph to pixels of the view.
    shape
        (height, width) of the view.
    at
        Where in the photograph (x, y) the compression is taken from.

    Examples
    --------
    >>> half = np.diag([0.5, 0.5, 1])
    >>> seen_through(np.full((40, 60), 9, np.uint8), half, (20, 30), (30, 20)).image.shape
    (20, 30)
    """
    cv2 = opencv()
    whole = np.asarray(matrix, np.float64)
    slope = slopes(whole, np.asarray(at, np.float64)[None])[0]
    _, lengths, axes = np.linalg.svd(slope)
    sigmas = BLUR * np.sqrt(np.maximum(lengths.clip(1e-3) ** -2.0 - 1, 0))
    out = gray
    if sigmas.max() > 0.2:
        # An ellipse of blur: the kernel in the plane, as it need not lie along the axes.
        reach = int(np.ceil(3 * sigmas.max()))
        grid = np.arange(-reach, reach + 1.0)
        along = np.tensordot(axes, np.stack(np.meshgrid(grid, grid)), 1)
        exponent = sum((u / max(sigma, 0.2)) ** 2 for u, sigma in zip(along, sigmas, strict=True))
        kernel = np.exp(-0.5 * exponent)
        out = cv2.filter2D(out, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REPLICATE)
    size = (shape[1], shape[0])
    border = cv2.BORDER_REPLICATE
    out = cv2.warpPerspective(out, whole, size, flags=cv2.INTER_LINEAR, borderMode=border)
    return View(out, whole)


def slopes(matrix: Floats, xy: Floats) -> Floats:
    """Derivatives (N, 2, 2) of a homography (3, 3) at positions (N, 2).

    Examples
    --------
    >>> slopes(np.diag([2.0, 3.0, 1.0]), np.zeros((1, 2)))[0].tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    depth = xy @ matrix[2, :2] + matrix[2, 2]
    with np.errstate(all="ignore"):
        mapped = (xy @ matrix[:2, :2].T + matrix[:2, 2]) / depth[:, None]
        return np.asarray(
            (matrix[:2, :2] - mapped[:, :, None] * matrix[2, :2]) / depth[:, None, None]
        )


def back_to_photograph(frames: ArrayLike, matrix: ArrayLike) -> Floats:
    """Affine frames (N, 2, 3) of a view as frames of the photograph.

    Parameters
    ----------
    frames
        (N, 2, 3) or (N, 3, 3), in pixels of the view.
    matrix
        (2, 3) or (3, 3): of :class:`View`.

    Examples
    --------
    >>> back_to_photograph([[[1, 0, 3], [0, 1, 5]]], [[0.5, 0, 0], [0, 1, 2]])[0].tolist()
    [[2.0, 0.0, 6.0], [0.0, 1.0, 3.0]]
    """
    here = np.asarray(matrix, np.float64)
    if here.shape == (3, 3):
        moved = affine_frames(frames)
        inverse: Floats = np.linalg.inv(here).astype(np.float64)
        places = moved[:, :, 2] @ inverse[:, :2].T + inverse[:, 2]
        linear = slopes(inverse, moved[:, :, 2]) @ moved[:, :, :2]
        return np.concatenate([linear, (places[:, :2] / places[:, 2:])[:, :, None]], axis=2)
    moved = affine_frames(frames)
    moved[:, :, 2] -= here[:, 2]
    back: Floats = np.linalg.inv(here[:, :2]) @ moved
    return back
