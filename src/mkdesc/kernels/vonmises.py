"""One von Mises kernel: exact, as a truncated Fourier series, and as a feature map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer, check_number
from mkdesc.kernels.angles import AngleKernel

#: Most frequencies: so many are tested, and agree in all computations; kernels have far fewer.
MOST_FREQUENCIES = 64


@dataclass(frozen=True, slots=True)
class VonMises(AngleKernel):
    r"""The normalised von Mises kernel of two angles, and its ``n``-frequency approximation.

    .. math:: k(\delta) = \frac{e^{\kappa\cos\delta} - e^{-\kappa}}{2\sinh\kappa}
              = \sum_{i \ge 0} a_i \cos i\delta

    so that :math:`k(0) = 1` and :math:`k(\pi) = 0`. Keeping the frequencies up to ``n`` gives
    an explicit feature map of ``2 n + 1`` numbers whose dot product is the truncated series.

    Parameters
    ----------
    kappa
        Concentration, > 0: the larger, the narrower the kernel.
    n
        Number of frequencies kept besides the constant, from 0 to 64.

    Examples
    --------
    >>> kernel = VonMises(kappa=8, n=2)
    >>> float(kernel(0.0))
    1.0
    >>> a, b = kernel.feature_map([0.3, 0.5])
    >>> bool(np.isclose(a @ b, kernel.approximate(0.2)))
    True
    """

    kappa: float
    n: int

    def __post_init__(self) -> None:
        check_number("kappa", self.kappa, above=0)
        check_integer("n", self.n, 0, MOST_FREQUENCIES)
        object.__setattr__(self, "kappa", float(self.kappa))
        object.__setattr__(self, "n", int(self.n))

    def __str__(self) -> str:
        return f"({self.kappa:.17g},{self.n})"

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Fourier coefficients ``a_0 .. a_n``, shape (n + 1,).

        >>> VonMises(8, 3).coefficients.round(6).tolist()
        [0.143432, 0.268285, 0.219792, 0.158389]
        """
        # They are Bessel functions of kappa, but scipy's overflow; the trapezoidal rule over the
        # kernel's support converges faster than any power of the step, for every kappa.
        reach = min(np.pi, 12 / np.sqrt(self.kappa))
        delta, step = np.linspace(-reach, reach, 128 + 4 * self.n, endpoint=False, retstep=True)
        a = np.cos(np.multiply.outer(np.arange(self.n + 1), delta)) @ self(delta) * step / np.pi
        a[0] /= 2
        return np.maximum(a, 0)

    def __call__(self, delta: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the exact kernel at angle differences of any shape."""
        k = self.kappa
        lowest = np.expm1(-2 * k)
        return (np.expm1(k * (np.cos(delta) - 1)) - lowest) / -lowest
