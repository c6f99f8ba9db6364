"""Which descriptors have fused kernels, and how these are called.

Two kinds have: the planes of the extended descriptor with functions of x and of y on at most
32 x 32 px, and up to three harmonics of the gradient angle on at most 64 x 64 px.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear

from mkdesc.compute.terms import Plane, Terms, make_terms
from mkdesc.compute.torch.matrices import make_matrices
from mkdesc.compute.torch.stages import AffineStage, L2Stage, PowerStage
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON
from mkdesc.kernels.preparation import Preparation

__all__ = ["Fused", "make_fused"]

#: The planes of the extended descriptor in the order in which its kernel sums them.
_THETA: list[Plane] = [(("theta", k),) for k in range(7)]
_INTENSITY: list[Plane] = [(("intensity", k),) for k in range(2)]
_BOTH: list[Plane] = [(("intensity", 0), ("theta", k)) for k in range(5)]
_SHAPE: list[Plane] = [(("shape", k),) for k in range(9)]
EXTENDED_PLANES = [*_THETA, *_INTENSITY, *_BOTH, *_SHAPE]

#: Functions of one axis that a program of the extended descriptor has room for.
MOST_FUNCTIONS = 8
#: Patches and warps per program of the extended descriptor.
COUNT, EXTENDED_WARPS = 2, 4
#: Functions of a plane that a program of the paper's descriptor has room for.
WIDE = 64
#: Patches and pixels at a time in the products of the paper's descriptor, warps, stages.
ROWS, BLOCK, WARPS, STAGES = 128, 64, 8, 3
#: Warps per patch of the paper's descriptor.
PATCH_WARPS = 4


def _half(array: NDArray[np.float64], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, torch.float16)


def _padded(matrices: tuple[NDArray[np.float64], ...], side: int) -> NDArray[np.float64]:
    """Matrices (S, S), transposed and padded with zeros, (K, side, side)."""
    missing = side - len(matrices[0])
    return np.stack([np.pad(m.T, [(0, missing), (0, missing)]) for m in matrices])


@dataclass(frozen=True, eq=False)
class Fused:
    """The constants of the kernels of one descriptor on one device.

    Attributes
    ----------
    preparation, side
        How patches are prepared, and their side after it.
    kind
        ``"extended"`` or ``"paper"``.
    matrices, functions, folding
        Of smoothing and derivatives, and the spatial functions, as the kernels take them.
    chosen, factors, assembly
        What makes a raw descriptor of sums: one of them for each number, or a matrix.
    part_of
        (D,): the part that each number belongs to.
    parts
        How many there are.
    shape
        Functions of y and of x.
    """

    preparation: Preparation
    side: int
    kind: str
    matrices: Tensor
    functions: Tensor
    folding: Tensor
    chosen: Tensor
    factors: Tensor
    assembly: Tensor | None
    part_of: Tensor
    parts: int
    shape: tuple[int, int]

    def describe(self, patches: Tensor, head: nn.Sequential, dtype: torch.dtype) -> Tensor:
        """Descriptors (N, D) of patches (N, W, W) in the memory of a GPU."""
        patches = patches.contiguous()
        sums = self._extended(patches) if self.kind == "extended" else self._paper(patches)
        return self._finish(sums, head).to(dtype)

    def _scale(self, patches: Tensor) -> float:
        return 1.0 if patches.is_floating_point() else 1 / 255

    def _extended(self, patches: Tensor) -> Tensor:
        from mkdesc.compute.torch.extended_triton import extended_sums

        down, across = self.shape
        n, size = len(patches), patches.shape[-1]
        factor = size // self.side
        pairs = patches.dtype == torch.uint8 and factor == 2
        sums = patches.new_empty((n, len(EXTENDED_PLANES), down, across), dtype=torch.float32)
        extended_sums[(-(-n // COUNT),)](
            patches.view(torch.int16) if pairs else patches,
            self.matrices,
            self.functions,
            self.folding,
            sums,
            n,
            self._scale(patches) / factor**2,
            self.preparation.softening,
            self.preparation.epsilon_square,
            self.preparation.flat**2,
            SHAPE_EPSILON,
            W=size,
            FACTOR=factor,
            SIDE=self.side,
            PAIRS=pairs,
            FLOATS=patches.is_floating_point(),
            COUNT=COUNT,
            DOWN=down,
            ACROSS=across,
            WIDE=MOST_FUNCTIONS,
            num_warps=EXTENDED_WARPS,
        )
        return sums.flatten(1)

    def _paper(self, patches: Tensor) -> Tensor:
        from mkdesc.compute.torch.paper_triton import paper_pixels, paper_sums

        n, side = len(patches), self.matrices.shape[-1]
        pixels = patches.new_empty((3, n, side * side), dtype=torch.float16)
        paper_pixels[(n,)](
            patches,
            self.matrices,
            pixels,
            n,
            self._scale(patches),
            self.preparation.epsilon_square,
            self.preparation.epsilon,
            W=self.side,
            SIDE=side,
            FLOATS=patches.is_floating_point(),
            num_warps=PATCH_WARPS,
        )
        sums = patches.new_empty((n, 7, WIDE), dtype=torch.float32)
        paper_sums[(2, -(-n // ROWS))](
            pixels,
            self.functions,
            sums,
            n,
            PIXELS=side * side,
            ROWS=ROWS,
            WIDE=WIDE,
            BLOCK=BLOCK,
            num_warps=WARPS,
            num_stages=STAGES,
        )
        return sums.flatten(1)

    def _finish(self, sums: Tensor, head: nn.Sequential) -> Tensor:
        """Raw descriptors, and what follows of the head."""
        from mkdesc.compute.torch.rows_triton import finish_rows

        if self.assembly is not None:
            sums = sums @ self.assembly
        stages = list(head)
        power = stages.pop(0).exponent if stages and isinstance(stages[0], PowerStage) else 1.0
        again = bool(stages) and isinstance(stages[0], L2Stage)
        if again:
            stages.pop(0)
        centre, dtype = torch.zeros_like(self.factors), torch.float32
        affine = stages.pop(0) if stages and isinstance(stages[0], AffineStage) else None
        if affine is not None:
            centre, dtype = affine.centre, affine.weight.dtype
        n, dims = len(sums), len(self.chosen)
        out = sums.new_empty((n, dims), dtype=dtype)
        finish_rows[(-(-n // 4),)](
            sums,
            self.chosen,
            self.factors,
            self.part_of,
            centre,
            out,
            n,
            K=sums.shape[1],
            D=dims,
            PARTS=self.parts,
            POWER=power,
            AGAIN=again,
            ROWS=4,
            WIDE=1 << (dims - 1).bit_length(),
            num_warps=4,
        )
        if affine is not None:
            out = linear(out, affine.weight, affine.bias)
        for stage in stages:
            out = stage(out)
        return out


@lru_cache(maxsize=16)
def make_fused(
    parametrization: Parametrization, size: int, device: torch.device
) -> Fused | None:
    """The fused kernels of a descriptor of patches of ``size`` px; None if there are none."""
    if find_spec("triton") is None or parametrization.own:
        return None
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        return None
    preparation = parametrization.preparation
    side = size // preparation.reduction(size)
    terms = make_terms(parametrization, side)
    part_of = np.searchsorted(terms.part_starts, np.arange(terms.dims), side="right") - 1
    parts = torch.from_numpy(part_of.astype(np.int32)).to(device)
    matrices = make_matrices(preparation.taps(size), side)
    if preparation.standardise:
        return _make_extended(terms, preparation, side, matrices, parts, device)
    return _make_paper(terms, preparation, side, matrices, parts, device)


def _make_extended(
    terms: Terms,
    preparation: Preparation,
    side: int,
    matrices: tuple[NDArray[np.float64], ...],
    part_of: Tensor,
    device: torch.device,
) -> Fused | None:
    separation = terms.separation
    known = {plane: k for k, plane in enumerate(EXTENDED_PLANES)}
    single = np.array_equal(np.sort(terms.component), np.arange(terms.dims))
    if separation is None or not single or side > 32 or not known.keys() >= set(terms.planes):
        return None
    rows, columns = len(separation.down), len(separation.across)
    if max(rows, columns) > MOST_FUNCTIONS or preparation.epsilon:
        return None
    functions, folding = np.zeros((32, MOST_FUNCTIONS)), np.zeros((COUNT, 8, COUNT, 32))
    functions[:side, :rows] = separation.down.T
    for k in range(COUNT):
        folding[k, :columns, k, :side] = separation.across
    plane = np.array([known[plane] for plane in terms.planes])[terms.plane]
    chosen = (plane * rows + separation.of_y[terms.function]) * columns
    chosen += separation.of_x[terms.function]
    factors = terms.factor * separation.factor[terms.function]
    order = np.argsort(terms.component)
    return Fused(
        preparation=preparation,
        side=side,
        kind="extended",
        matrices=_half(_padded(matrices, 32), device),
        functions=_half(functions, device),
        folding=_half(folding.reshape(COUNT * 8, COUNT * 32), device),
        chosen=torch.from_numpy(chosen[order].astype(np.int32)).to(device),
        factors=torch.from_numpy(factors[order].astype(np.float32)).to(device),
        assembly=None,
        part_of=part_of,
        parts=len(terms.part_starts) - 1,
        shape=(rows, columns),
    )


def _make_paper(
    terms: Terms,
    preparation: Preparation,
    side: int,
    matrices: tuple[NDArray[np.float64], ...],
    part_of: Tensor,
    device: torch.device,
) -> Fused | None:
    if side > 64 or not set(_THETA) >= set(terms.planes):
        return None
    padded = 32 if side <= 32 else 64
    functions = np.zeros((4, padded, padded, WIDE))
    number = np.array([_THETA.index(plane) for plane in terms.planes])
    assembly = np.zeros((7, WIDE, terms.dims))
    for harmonic in range(4):
        planes = np.flatnonzero((number + 1) // 2 == harmonic)
        chosen = np.isin(terms.plane, planes)
        met, where = np.unique(terms.function[chosen], return_inverse=True)
        if len(met) > WIDE:
            return None
        # Pixels are numbered by x, then y.
        functions[harmonic, :side, :side, : len(met)] = terms.functions[met].transpose(2, 1, 0)
        index = (number[terms.plane[chosen]], where, terms.component[chosen])
        np.add.at(assembly, index, terms.factor[chosen])
    return Fused(
        preparation=preparation,
        side=side,
        kind="paper",
        matrices=_half(_padded(matrices[:2], padded), device),
        functions=_half(functions.reshape(4, padded * padded, WIDE), device),
        folding=torch.empty(0, device=device),
        chosen=torch.arange(terms.dims, dtype=torch.int32, device=device),
        factors=torch.ones(terms.dims, device=device),
        assembly=torch.from_numpy(assembly.reshape(-1, terms.dims)).to(device, torch.float32),
        part_of=part_of,
        parts=len(terms.part_starts) - 1,
        shape=(0, 0),
    )
