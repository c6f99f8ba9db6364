"""What every kernel over the difference of two angles offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray


class AngleKernel(ABC):
    """A kernel of two angles: a function of their difference, even and of positive frequencies.

    A subclass says what it is exactly (``__call__``), its frequencies (``n``) and their
    ``coefficients``. Its instances are compared and hashed by value, and ``str`` is what follows
    the attribute in the text of a parametrization.
    """

    __slots__ = ()

    #: Number of frequencies kept besides the constant.
    n: int

    @abstractmethod
    def __call__(self, delta: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the exact kernel at angle differences of any shape."""

    @property
    @abstractmethod
    def coefficients(self) -> NDArray[np.float64]:
        """Fourier coefficients ``a_0 .. a_n`` (n + 1,), none negative."""

    @property
    def dims(self) -> int:
        """Length of the feature map, ``2 n + 1``."""
        return 2 * self.n + 1

    def approximate(self, delta: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the truncated series at angle differences of any shape."""
        series = np.multiply.outer(np.asarray(delta, np.float64), np.arange(self.n + 1))
        value: NDArray[np.float64] = np.cos(series) @ self.coefficients
        return value

    def feature_map(self, angle: ArrayLike) -> NDArray[np.float64]:
        """Map angles (...) to features (..., 2 n + 1): constant, cosines, sines."""
        root = np.sqrt(self.coefficients)
        series = np.multiply.outer(np.asarray(angle, np.float64), np.arange(self.n + 1))
        return np.concatenate([root * np.cos(series), root[1:] * np.sin(series[..., 1:])], axis=-1)
