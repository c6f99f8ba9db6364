"""Sums of planes times spatial functions in PyTorch, and the raw descriptor made of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mkdesc.compute.terms import Terms
from mkdesc.compute.torch.stages import unit_rows

#: Products with fewer rows are summed one pixel after the other on a CPU, which rounds more.
FEW = 8
#: Functions come in groups of so many, of zeros if need be: products are faster by a quarter.
WHOLE = 16


class Sums(nn.Module):
    """From planes (N, P, S, S) to raw descriptors (N, D).

    Where all spatial functions are products of one of x and one of y, planes are multiplied with
    those of x, then with those of y; elsewhere planes that meet the same functions are multiplied
    with all of these at once.
    """

    def __init__(self, terms: Terms) -> None:
        super().__init__()
        self.part_starts = terms.part_starts.tolist()
        self.groups: list[list[int]] = []
        if terms.separation is not None:
            self._separable(terms)
        else:
            self._grouped(terms)

    def _keep(self, name: str, value: np.ndarray) -> None:
        kind = torch.int64 if value.dtype.kind == "i" else torch.float32
        self.register_buffer(name, torch.from_numpy(value.copy()).to(kind), persistent=False)

    def _separable(self, terms: Terms) -> None:
        """Sums are numbered by plane, function of y, function of x."""
        separation = terms.separation
        assert separation is not None
        self._keep("across", separation.across)
        self._keep("down", separation.down)
        columns, rows = len(separation.across), len(separation.down)
        planes = np.arange(len(terms.planes))
        where, factor = terms.separable_sums(planes, (rows * columns, columns, 1))
        self._assemble(terms, where, factor, len(planes) * rows * columns)

    def _grouped(self, terms: Terms) -> None:
        """Sums are numbered by group, plane in it, function in it."""
        met = [np.unique(terms.function[terms.plane == p]) for p in range(len(terms.planes))]
        planes_of: dict[tuple[int, ...], list[int]] = {}
        for plane, these in enumerate(met):
            planes_of.setdefault(tuple(these.tolist()), []).append(plane)
        first, place = 0, np.zeros((len(terms.planes), len(terms.functions)), np.int64)
        for functions, planes in planes_of.items():
            chosen = terms.functions[list(functions)].reshape(len(functions), -1)
            chosen = np.pad(chosen, [(0, -len(functions) % WHOLE), (0, 0)])
            self._keep(f"functions_{len(self.groups)}", chosen.T)
            self.groups.append(planes)
            numbers = np.arange(len(planes) * len(chosen)).reshape(len(planes), -1)
            place[np.ix_(planes, functions)] = first + numbers[:, : len(functions)]
            first += numbers.size
        self._assemble(terms, place[terms.plane, terms.function], terms.factor, first)

    def _assemble(self, terms: Terms, where: np.ndarray, factor: np.ndarray, n: int) -> None:
        """Keep what makes a descriptor of sums: one each, or a matrix."""
        single = np.array_equal(np.sort(terms.component), np.arange(terms.dims))
        if single:
            order = np.argsort(terms.component)
            self._keep("chosen", where[order])
            self._keep("factors", factor[order])
        else:
            matrix = np.zeros((n, terms.dims))
            np.add.at(matrix, (where, terms.component), factor)
            self._keep("assembly", matrix)
        self.single = single

    @property
    def device(self) -> torch.device:
        """Where the constants are."""
        return next(self.buffers()).device

    @property
    def dtype(self) -> torch.dtype:
        """Of the functions, and of the results."""
        return next(b.dtype for b in self.buffers() if b.is_floating_point())

    def sums(self, planes: list[Tensor]) -> Tensor:
        """The sums over the patch of planes (N, S, S), (N, K), in the type of the planes."""
        kind = planes[0].dtype
        if self.groups:
            found = []
            for index, group in enumerate(self.groups):
                functions = self.get_buffer(f"functions_{index}").to(kind)
                these = torch.stack([planes[p] for p in group], dim=1).flatten(2)
                found.append(_multiply(these, functions).flatten(1))
            return torch.cat(found, dim=1)
        across, down = self.across.to(kind), self.down.to(kind)
        return (down @ (torch.stack(planes, dim=1) @ across.T)).flatten(1)

    def forward(self, planes: list[Tensor], gains: Tensor | None = None) -> Tensor:
        """Raw descriptors (N, D), parts and whole normalised, of planes (N, S, S)."""
        sums = self.sums(planes)
        if self.single:
            raw = sums[:, self.chosen] * self.factors.to(sums.dtype)
        else:
            raw = sums @ self.assembly.to(sums.dtype)
        if gains is not None:
            raw = raw * gains
        starts = self.part_starts
        if len(starts) == 2:
            return unit_rows(raw)
        parts = [unit_rows(raw[:, a:b]) for a, b in pairwise(starts)]
        return torch.cat(parts, dim=1) / (len(starts) - 1) ** 0.5


def _multiply(planes: Tensor, functions: Tensor) -> Tensor:
    """Planes (N, P, Q) times functions (Q, F)."""
    if torch.compiler.is_compiling() or planes.device.type != "cpu" or len(planes) >= FEW:
        return planes @ functions
    return (pad(planes, (0, 0, 0, 0, 0, FEW - len(planes))) @ functions)[: len(planes)]
