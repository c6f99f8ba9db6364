"""Concentrations of kernels that can be learned.

A feature of a von Mises kernel is the square root of one Fourier coefficient times a cosine or
sine; only the coefficient depends on kappa. A component of the raw descriptor is a product of
such features, so other kappas multiply it by the square roots of the quotients of coefficients.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.vonmises import VonMises

#: Points of the trapezoidal rule; enough for kernels as narrow as kappa 10,000.
POINTS = 1024


class Kappas(nn.Module):
    """What raw descriptors are multiplied by when kappas change, as a function of the kappas.

    Examples
    --------
    >>> from mkdesc.kernels.parametrization import CARTESIAN
    >>> kappas = Kappas(CARTESIAN)
    >>> kappas.kappas.round(decimals=3).tolist()  # theta, x, y
    [8.0, 1.0, 1.0]
    >>> bool((kappas() == 1).all())
    True
    """

    def __init__(self, parametrization: Parametrization) -> None:
        super().__init__()
        found: list[float] = []
        rows: list[np.ndarray] = []  # the frequency in each component; -1: not of this kernel
        start = 0
        for product in parametrization.products:
            factors = (*product.explicit, *product.angular, *product.spatial)
            index = np.indices([factor.dims for _, factor in factors]).reshape(len(factors), -1)
            for (_, factor), these in zip(factors, index, strict=True):
                if isinstance(factor, VonMises):
                    row = np.full(parametrization.dims, -1)
                    row[start : start + product.dims] = these - factor.n * (these > factor.n)
                    rows.append(row)
                    found.append(factor.kappa)
            start += product.dims
        self.log_kappas = nn.Parameter(torch.tensor(found).log())
        frequencies = torch.from_numpy(np.stack(rows).astype(np.int64))
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.most = int(frequencies.max())
        with torch.no_grad():
            start_values = self._coefficients().clamp_min(1e-30)
        self.register_buffer("start", start_values, persistent=False)

    @property
    def kappas(self) -> Tensor:
        """One kappa for every kernel over an angle, gradient first, by product."""
        return self.log_kappas.detach().exp()

    def _coefficients(self) -> Tensor:
        """Fourier coefficients (K, most + 1) of the kernels, in double precision."""
        kappa = self.log_kappas.double().exp()[:, None]
        delta = torch.arange(POINTS, dtype=torch.float64, device=kappa.device)
        delta = delta * (2 * torch.pi / POINTS)
        lowest = torch.expm1(-2 * kappa)
        kernel = (torch.expm1(kappa * (delta.cos() - 1)) - lowest) / -lowest
        orders = torch.arange(self.most + 1, dtype=torch.float64, device=kappa.device)
        waves = (orders[:, None] * delta).cos() * (2 / POINTS)
        waves[0] = waves[0] / 2
        return kernel @ waves.T

    def forward(self) -> Tensor:
        """The factors of the raw descriptor, (D,)."""
        ratio = (self._coefficients() / self.start.double()).clamp_min(1e-30).sqrt()
        gains = ratio.gather(1, self.frequencies.clamp_min(0))
        gains = torch.where(self.frequencies < 0, 1.0, gains)
        return gains.prod(dim=0).to(self.log_kappas.dtype)
