"""How a patch is prepared before its pixels are looked at: size, smoothing, contrast."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The preparations that parametrizations can have, by name.
PREPARATIONS: dict[str, Preparation] = {}


@dataclass(frozen=True)
class Preparation:
    """What happens to a patch first, and how its pixels are weighted and sums normalised.

    Attributes
    ----------
    name
        How it is called in text and in model files.
    reduced_size
        Larger patches, whose side must be a multiple of this, are reduced to it by means over
        squares; None: they are not.
    sigma
        Of the Gaussian, in pixels of the reduced patch, or of a 64-px patch if ``reduced_size``
        is None.
    reach
        The Gaussian has ``2 * reach + 1`` taps; the border is replicated.
    standardise
        Whether the mean is then subtracted and the standard deviation divided by, so that
        brightness and contrast are gone.
    softening
        Added to the standard deviation, in units of the type's maximum.
    epsilon_square, epsilon
        The gradient magnitude is ``sqrt(gx^2 + gy^2 + epsilon_square)``, the weight of a pixel
        ``sqrt(magnitude + epsilon)``.
    flat
        Gradients up to this count as zero: single precision cannot give their direction.
    window
        Whether central pixels weigh more, by ``exp(-rho^2)``.
    joint
        Whether the parts of a descriptor are normalised together instead of one by one.
    """

    name: str
    reduced_size: int | None
    sigma: float
    reach: int
    standardise: bool
    softening: float
    epsilon_square: float
    epsilon: float
    flat: float
    window: bool
    joint: bool

    def __post_init__(self) -> None:
        # Text and model files hold the name: it must not come to mean something else.
        if PREPARATIONS.get(self.name, self) != self:
            raise ValueError(f"name: {self.name!r} is the name of another preparation")

    def to_dict(self) -> dict[str, Any]:
        """All fields, by the names that they have in model files and in the explorer."""
        fields = asdict(self)
        fields["side"] = fields.pop("reduced_size")
        return fields

    def reduction(self, size: int) -> int:
        """By which factor patches of ``size`` px are reduced."""
        if self.reduced_size is None:
            return 1
        if size % self.reduced_size:
            raise ValueError(
                f"patch_size: the preparation {self.name!r} takes multiples of "
                f"{self.reduced_size} px, got {size}"
            )
        return size // self.reduced_size

    def taps(self, size: int) -> Array:
        """Half of the Gaussian (centre, 1 px, ...), for patches of ``size`` px, (reach + 1,).

        >>> bool(np.isclose(PAPER.taps(64) @ [1, 2, 2], 1))
        True
        """
        sigma = self.sigma * size / 64 if self.reduced_size is None else self.sigma
        taps = np.exp(-(np.arange(self.reach + 1.0) ** 2) / (2 * sigma**2))
        half: Array = taps / (2 * taps.sum() - taps[0])
        return half

    def prepare(self, patches: NDArray[np.generic], scale: float = 1.0) -> Array:
        """Prepare ``scale * patches`` (..., W, W): (..., S, S).

        >>> PAPER.prepare(np.full((1, 8, 8), 255), 1 / 255).shape
        (1, 8, 8)
        >>> STANDARD.prepare(np.arange(64.0 * 64).reshape(64, 64)).std().round(3)
        np.float64(1.0)
        """
        size = patches.shape[-1]
        factor = self.reduction(size)
        image = np.asarray(patches, np.float64)
        if factor > 1:
            blocks = (size // factor, factor, size // factor, factor)
            image = image.reshape(*image.shape[:-2], *blocks).mean(axis=(-3, -1))
        taps = self.taps(size)
        image = _smooth_rows(_smooth_rows(image, taps).swapaxes(-1, -2), taps).swapaxes(-1, -2)
        if not self.standardise:
            return image * scale
        image = image - image.mean(axis=(-2, -1), keepdims=True)
        deviation = np.sqrt((image**2).mean(axis=(-2, -1), keepdims=True))
        return image * scale / (deviation * scale + self.softening)


def _smooth_rows(image: Array, taps: Array) -> Array:
    """Smooth (..., W, W) along its last axis, the border replicated."""
    reach, size = len(taps) - 1, image.shape[-1]
    padded = np.pad(image, [(0, 0)] * (image.ndim - 1) + [(reach, reach)], mode="edge")
    smooth = taps[0] * image
    for k in range(1, reach + 1):
        # Equal taps are added first: a symmetric neighbourhood has a gradient of exactly 0.
        left, right = padded[..., reach - k :], padded[..., reach + k :]
        smooth += taps[k] * (left[..., :size] + right[..., :size])
    return smooth


#: As in the authors' code. (The paper does not mention the smoothing; published models need it.)
PAPER = Preparation(
    name="paper",
    reduced_size=None,
    sigma=1.4,
    reach=2,
    standardise=False,
    softening=0.0,
    epsilon_square=1e-8,
    epsilon=1e-8,
    flat=1e-36,
    window=True,
    joint=False,
)
#: Of the extended descriptor: 32 px, contrast and brightness removed, all pixels equal.
STANDARD = Preparation(
    name="standard",
    reduced_size=32,
    sigma=1.5,
    reach=4,
    standardise=True,
    softening=1e-3,
    epsilon_square=1e-4,
    epsilon=0.0,
    flat=1e-15,
    window=False,
    joint=True,
)
#: The same on 24 px: two thirds of the time, a little less accurate.
STANDARD_24 = replace(STANDARD, name="standard-24", reduced_size=24, sigma=1.125)

#: And less smooth: details of large squares around keypoints.
FINE_24 = replace(STANDARD_24, name="fine-24", sigma=0.75)

PREPARATIONS |= {known.name: known for known in (PAPER, STANDARD, STANDARD_24, FINE_24)}
