"""Random changes that a patch should survive: of its frame, and of the image it is cut from.

The geometric ones are of the HPatches kind: each is uniform within the bounds of its level and
stands for what detectors get wrong. The photometric ones stand for cameras, light and storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_number
from mkdesc.images.frames import as_frames
from mkdesc.images.reading import opencv

#: What is drawn for each patch; angles in degrees, clockwise in the patch (y points down).
COLUMNS = (
    "rotation",
    "shift_x",
    "shift_y",
    "log2_scale",
    "log2_anisotropy",
    "direction",
    "perspective_x",
    "perspective_y",
)

#: Side of an HPatches patch in units of the detected scale, the unit of their shifts: the scale is
#: the radius of a region that is magnified by 5. (So read, the regions jittered by "easy" and
#: "hard" overlap by 0.84 and 0.70 in the median; HPatches reports 0.85 and 0.72.) Shifts are in
#: proportion to the patch, however large it is cut, for a descriptor sees nothing else.
SCALES_PER_SIDE = 10.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Jitter:
    """Bounds of the random change of a frame; each number is drawn from ``[-bound, bound]``.

    Attributes
    ----------
    rotation
        Degrees.
    shift
        Along x and y, in units of the scale.
    scale
        Octaves (log2 of the factor).
    anisotropy
        Octaves between a random direction and the one at right angles to it.
    perspective
        Last row of the homography in patch coordinates; used only where it is asked for.
    """

    rotation: float
    shift: float
    scale: float
    anisotropy: float
    perspective: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_number(name, value, least=0)
        if self.perspective >= 0.5:
            raise ValueError(f"perspective: expected less than 0.5, got {self.perspective!r}")


#: The three levels of HPatches and a stronger one; HPatches itself knows no perspective.
LEVELS = {
    "plain": Jitter(0, 0, 0, 0),
    "easy": Jitter(10, 0.15, 0.15, 0.2, 0.08),
    "hard": Jitter(20, 0.3, 0.3, 0.4, 0.12),
    "tough": Jitter(30, 0.45, 0.5, 0.45, 0.15),
    "stronger": Jitter(40, 0.6, 0.7, 0.6, 0.2),
}


def as_jitter(level: str | Jitter) -> Jitter:
    """A level by its name, or as it is.

    Examples
    --------
    >>> as_jitter("easy").rotation
    10
    """
    if isinstance(level, Jitter):
        return level
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)} or a Jitter, got {level!r}")
    return LEVELS[level]


def draw_jitter(
    n: int, level: str | Jitter, rng: np.random.Generator, perspective: bool = False
) -> Floats:
    """Draw random changes for n patches, shape (n, 8); the columns are :data:`COLUMNS`.

    Examples
    --------
    >>> drawn = draw_jitter(100, "tough", np.random.default_rng(0))
    >>> drawn.shape, float(abs(drawn[:, COLUMNS.index("rotation")]).max()) <= 30
    ((100, 8), True)
    """
    j = as_jitter(level)
    slant = j.perspective if perspective else 0.0
    bounds = [j.rotation, j.shift, j.shift, j.scale, j.anisotropy, 90.0, slant, slant]
    return rng.uniform(-1, 1, (n, len(COLUMNS))) * bounds


def jitter_homographies(drawn: ArrayLike, scales_per_side: float = SCALES_PER_SIDE) -> Floats:
    """Homographies (N, 3, 3) in patch coordinates [-1, 1] of drawn changes (N, 8).

    A point of the patch is put into perspective, stretched, scaled, turned, and shifted.

    Examples
    --------
    >>> jitter_homographies([[90, 1, 0, 1, 0, 0, 0, 0]])[0].round(3) + 0.0
    array([[ 0. , -2. ,  0.2],
           [ 2. ,  0. ,  0. ],
           [ 0. ,  0. ,  1. ]])
    """
    array = np.asarray(drawn, np.float64)
    if array.ndim != 2 or array.shape[1] != len(COLUMNS):
        raise ValueError(f"drawn: expected (N, {len(COLUMNS)}), got {array.shape}")
    rotation, shift_x, shift_y, scale, anisotropy, direction, slant_x, slant_y = array.T
    stretch = np.zeros((len(array), 2, 2))
    stretch[:, 0, 0], stretch[:, 1, 1] = 2 ** (anisotropy / 2), 2 ** (-anisotropy / 2)
    axes = _turns(direction)
    linear = _turns(rotation) @ axes @ stretch @ axes.swapaxes(1, 2) * 2 ** scale[:, None, None]
    whole = np.zeros((len(array), 3, 3))
    whole[:, :2, :2] = linear
    whole[:, :2, 2] = np.stack([shift_x, shift_y], axis=-1) * 2 / scales_per_side
    whole[:, 2, 2] = 1
    slant = np.zeros_like(whole)
    slant[:] = np.eye(3)
    slant[:, 2, 0], slant[:, 2, 1] = slant_x, slant_y
    return whole @ slant


def _turns(degrees: Floats) -> Floats:
    """Rotations (N, 2, 2), clockwise where y points down."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=1)


def jitter_frames(
    frames: ArrayLike,
    level: str | Jitter,
    rng: np.random.Generator,
    perspective: bool = False,
    scales_per_side: float = SCALES_PER_SIDE,
) -> Floats:
    """Frames (N, 3, 3) at random changes of given ones (N, 2, 3) or (N, 3, 3).

    Examples
    --------
    >>> jitter_frames([[[5, 0, 10], [0, 5, 20]]], "hard", np.random.default_rng(0)).shape
    (1, 3, 3)
    """
    whole = as_frames(frames)
    drawn = draw_jitter(len(whole), level, rng, perspective)
    return whole @ jitter_homographies(drawn, scales_per_side)


@dataclass(frozen=True)
class Photometric:
    """Bounds of the random change of an image.

    Attributes
    ----------
    gamma
        Octaves (log2 of the exponent), either way.
    contrast
        Octaves (log2 of the factor about mid-gray), either way.
    brightness
        Share of the range of gray values, either way.
    blur
        Largest sigma of a Gaussian, in pixels.
    noise
        Largest standard deviation, in gray values of 0..255.
    jpeg
        Lowest quality, 1..100; 100: none at all.
    chance
        Probability of each of blur, noise and JPEG to happen.
    """

    gamma: float = 0.6
    contrast: float = 0.4
    brightness: float = 0.12
    blur: float = 2.0
    noise: float = 12.0
    jpeg: int = 20
    chance: float = 0.6

    def __post_init__(self) -> None:
        for name in ("gamma", "contrast", "brightness", "blur", "noise"):
            check_number(name, getattr(self, name), least=0)
        if not 1 <= self.jpeg <= 100:
            raise ValueError(f"jpeg: expected a quality in 1..100, got {self.jpeg!r}")
        if not 0 <= self.chance <= 1:
            raise ValueError(f"chance: expected a probability, got {self.chance!r}")


def change_image(
    image: NDArray[np.uint8], bounds: Photometric, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """A photometrically changed copy of a gray image (H, W), uint8.

    In the order in which it happens to a photograph: blur of the lens, light and development
    (gamma, contrast, brightness), noise, compression.

    Examples
    --------
    >>> image = np.full((40, 60), 100, np.uint8)
    >>> change_image(image, Photometric(), np.random.default_rng(0)).shape
    (40, 60)
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 2:
        got = getattr(image, "dtype", type(image)), getattr(image, "shape", None)
        raise ValueError(f"image: expected a gray uint8 array (H, W), got {got[0]} {got[1]}")
    cv2 = opencv("learning from photographs")
    # All are drawn whether they are used or not: one bound does not move the others' numbers.
    gamma, contrast, brightness = rng.uniform(-1, 1, 3)
    blur, noise, jpeg = rng.uniform(0, 1, 3)
    blurred, noisy, compressed = rng.uniform(0, 1, 3) < bounds.chance
    changed: NDArray[Any] = image
    if blurred and blur * bounds.blur > 0.05:
        changed = cv2.GaussianBlur(changed, (0, 0), blur * bounds.blur)
    gray = np.linspace(0, 1, 256) ** 2 ** (gamma * bounds.gamma)
    gray = (gray - 0.5) * 2 ** (contrast * bounds.contrast) + 0.5 + brightness * bounds.brightness
    curve = np.clip(gray * 255, 0, 255)
    if noisy and noise * bounds.noise > 0.05:
        values = curve.astype(np.float32)[changed]
        values += rng.standard_normal(values.shape, np.float32) * np.float32(noise * bounds.noise)
        changed = cv2.convertScaleAbs(np.maximum(values, 0, out=values))
    else:
        changed = cv2.LUT(changed, np.rint(curve).astype(np.uint8))
    quality = round(bounds.jpeg + jpeg * (100 - bounds.jpeg))
    if compressed and quality < 100:
        _, data = cv2.imencode(".jpg", changed, [cv2.IMWRITE_JPEG_QUALITY, quality])
        changed = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)
    copy: NDArray[np.uint8] = changed if changed is not image else image.copy()
    return copy
