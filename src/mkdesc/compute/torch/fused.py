"""Fused kernels for CUDA: which descriptors have them, and how they are called.

Two kinds have: the planes of the extended descriptor with functions of x and of y, on at most
32 x 32 px, and up to three harmonics of the gradient angle, on at most 64 x 64 px.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear

from mkdesc._support.launching import blocks
from mkdesc.compute.terms import Plane, Terms, make_terms
from mkdesc.compute.torch.matrices import Matrices, difference_matrix, make_matrices, transposed
from mkdesc.compute.torch.stages import AffineStage, L2Stage, PowerStage, ReluStage
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON
from mkdesc.kernels.preparation import Preparation

Array = NDArray[np.float64]

#: The planes of the extended descriptor in the order in which its kernel sums them.
_THETA: list[Plane] = [(("theta", k),) for k in range(7)]
_INTENSITY: list[Plane] = [(("intensity", k),) for k in range(2)]
_BOTH: list[Plane] = [(("intensity", 0), ("theta", k)) for k in range(5)]
_SHAPE: list[Plane] = [(("shape", k),) for k in range(9)]
EXTENDED_PLANES = [*_THETA, *_INTENSITY, *_BOTH, *_SHAPE]

#: Functions of one axis that the extended kernel has room for, and of a plane the paper's.
MOST_FUNCTIONS, WIDE = 8, 64
#: Sums that one number of a raw descriptor may be made of.
MOST_TERMS = 4
#: Patches and warps per program of the extended kernel. What is fastest, here and below, was
#: found on an H200 with benchmarks/gpu.py.
COUNT, EXTENDED_WARPS = 4, 4
#: Patches and pixels at a time in the products of the paper's, warps, loads under way.
ROWS, BLOCK, WARPS, STAGES = 64, 32, 4, 4
#: Warps per patch of the paper's, and rows per program of what follows.
PATCH_WARPS, ROWS_AT_A_TIME = 4, 4
#: Numbers per program of what rectifies.
RECTIFIED = 2048


@dataclass(frozen=True, eq=False)
class Assembly:
    """What makes raw descriptors of sums.

    Attributes
    ----------
    chosen, factors
        (T, D) int32 and float32: number c of a raw descriptor is the sum of the ``chosen[:, c]``,
        times their factors.
    part_of
        (D,) int32: the part that each number belongs to.
    parts
        How many there are.
    """

    chosen: Tensor
    factors: Tensor
    part_of: Tensor
    parts: int


class Fused(ABC):
    """The kernels of one descriptor on one device, with their constants."""

    assembly: Assembly

    @abstractmethod
    def sums(self, patches: Tensor, dtype: torch.dtype) -> Tensor:
        """The sums (N, K) of patches (N, W, W), for descriptors of a type."""

    def describe(
        self, patches: Tensor, head: nn.Sequential, dtype: torch.dtype, squares: int = 1
    ) -> Tensor:
        """Descriptors of patches (N, W, W) in the memory of a GPU, (N / squares, D).

        The kernel that finishes raw descriptors does the head's power, norm and centre too; of
        several squares, whose norm is a common one, the power alone.
        """
        from mkdesc.compute.torch.rows_triton import finish_rows, rectify_rows

        sums, assembly = self.sums(patches.contiguous(), dtype), self.assembly
        stages = list(head)
        power = stages.pop(0).exponent if stages and isinstance(stages[0], PowerStage) else 1.0
        alone = squares == 1
        again = alone and bool(stages) and isinstance(stages[0], L2Stage)
        if again:
            stages.pop(0)
        centre, between = torch.zeros_like(assembly.factors[0]), torch.float32
        affine = stages.pop(0) if alone and stages and isinstance(stages[0], AffineStage) else None
        if affine is not None:
            centre, between = affine.centre, affine.weight.dtype
        n, (terms, dims) = len(sums), assembly.chosen.shape
        out = sums.new_empty((n, dims), dtype=between)
        finish_rows[(blocks(n, ROWS_AT_A_TIME),)](
            sums,
            assembly.chosen,
            assembly.factors,
            assembly.part_of,
            centre,
            out,
            n,
            K=sums.shape[1],
            D=dims,
            TERMS=terms,
            PARTS=assembly.parts,
            POWER=power,
            AGAIN=again,
            ROWS=ROWS_AT_A_TIME,
            WIDE=_power_of_two(dims),
        )
        out = out.view(n // squares, squares * dims)
        if affine is not None:
            out = linear(out, affine.weight, affine.bias)
        last = stages.pop() if stages and isinstance(stages[-1], L2Stage) else None
        for stage in stages:
            if isinstance(stage, ReluStage):  # nobody else has this tensor
                out = out.contiguous()
                rectify_rows[(blocks(out.numel(), RECTIFIED),)](
                    out, out.numel(), D=out.shape[1], START=stage.start, BLOCK=RECTIFIED
                )
            elif isinstance(stage, AffineStage) and not stage.centred:
                out = linear(out.to(stage.weight.dtype), stage.weight, stage.bias)
            else:
                out = stage(out)
        return out.to(dtype) if last is None else _unit(out, dtype)


@dataclass(frozen=True, eq=False)
class FusedExtended(Fused):
    """The extended descriptor: one kernel for all sums."""

    assembly: Assembly
    preparation: Preparation
    side: int
    matrices: Tensor
    functions: Tensor
    folding: Tensor
    shape: tuple[int, int]

    def sums(self, patches: Tensor, dtype: torch.dtype) -> Tensor:
        """The sums (N, K), numbered by plane, function of y, function of x."""
        from mkdesc.compute.torch.extended_triton import extended_sums

        down, across = self.shape
        n, size = len(patches), patches.shape[-1]
        factor = size // self.side
        words = patches.dtype == torch.uint8 and size == 64 and factor == 2
        shape = (n, len(EXTENDED_PLANES) * down * across)
        kind = torch.float32 if dtype == torch.float32 else torch.float16
        sums = patches.new_empty(shape, dtype=kind)
        extended_sums[(blocks(n, COUNT),)](
            patches.view(torch.int32) if words else patches,
            self.matrices,
            self.functions,
            self.folding,
            sums,
            n,
            _scale(patches) / factor**2,
            self.preparation.softening,
            self.preparation.epsilon_square,
            self.preparation.flat**2,
            SHAPE_EPSILON,
            W=size,
            FACTOR=factor,
            SIDE=self.side,
            WORDS=words,
            FLOATS=patches.is_floating_point(),
            WHOLE=patches.is_floating_point() and size == 64 and factor == 2,
            COUNT=COUNT,
            DOWN=down,
            ACROSS=across,
            WIDE=MOST_FUNCTIONS,
            num_warps=EXTENDED_WARPS,
        )
        return sums


@dataclass(frozen=True, eq=False)
class FusedPaper(Fused):
    """The paper's descriptors: gradients of all pixels, then their products with functions."""

    assembly: Assembly
    preparation: Preparation
    side: int
    matrices: Tensor
    functions: Tensor

    def sums(self, patches: Tensor, dtype: torch.dtype) -> Tensor:
        """The sums (N, 7 * WIDE), numbered by plane, function."""
        from mkdesc.compute.torch.paper_triton import paper_pixels, paper_sums

        n, side = len(patches), self.matrices.shape[-1]
        pixels = patches.new_empty((3, n, side * side), dtype=torch.float16)
        paper_pixels[(n,)](
            patches,
            self.matrices,
            pixels,
            n,
            _scale(patches),
            self.preparation.epsilon_square,
            self.preparation.epsilon,
            W=self.side,
            SIDE=side,
            FLOATS=patches.is_floating_point(),
            num_warps=PATCH_WARPS,
        )
        sums = patches.new_empty((n, 7 * WIDE), dtype=torch.float32)
        paper_sums[(2, blocks(n, ROWS))](
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
        return sums


@lru_cache(maxsize=16)
def make_fused(parametrization: Parametrization, size: int, device: torch.device) -> Fused | None:
    """The fused kernels of a descriptor of patches of ``size`` px; None if there are none."""
    if find_spec("triton") is None:
        return None
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        return None
    preparation = parametrization.preparation
    side = size // preparation.reduction(size)
    terms = make_terms(parametrization, side)
    matrices = make_matrices(preparation.taps(size), side)
    if preparation.standardise:
        return _make_extended(terms, preparation, side, matrices, device)
    return _make_paper(terms, preparation, side, matrices, device)


def _make_extended(
    terms: Terms, preparation: Preparation, side: int, matrices: Matrices, device: torch.device
) -> FusedExtended | None:
    known = {plane: k for k, plane in enumerate(EXTENDED_PLANES)}
    separation = terms.separation
    if separation is None or side > 32 or not known.keys() >= set(terms.planes):
        return None
    rows, columns = len(separation.down), len(separation.across)
    if max(rows, columns) > MOST_FUNCTIONS or preparation.epsilon:
        return None
    planes = np.array([known[plane] for plane in terms.planes])
    where, factor = terms.separable_sums(planes, (rows * columns, columns, 1))
    assembly = _assemble(terms, where, factor, device)
    if assembly is None:
        return None
    functions, folding = np.zeros((32, MOST_FUNCTIONS)), np.zeros((COUNT, 8, COUNT, 32))
    functions[:side, :rows] = separation.down.T
    for k in range(COUNT):
        folding[k, :columns, k, :side] = separation.across
    used = (*matrices[:3], matrices.slope_of_pixels / 2, difference_matrix(side))
    return FusedExtended(
        assembly=assembly,
        preparation=preparation,
        side=side,
        matrices=_half(transposed(used, 32), device),
        functions=_half(functions, device),
        folding=_half(folding.reshape(COUNT * 8, COUNT * 32), device),
        shape=(rows, columns),
    )


def _make_paper(
    terms: Terms, preparation: Preparation, side: int, matrices: Matrices, device: torch.device
) -> FusedPaper | None:
    if side > 64 or not set(_THETA) >= set(terms.planes):
        return None
    padded = 32 if side <= 32 else 64
    functions = np.zeros((4, padded, padded, WIDE))
    number = np.array([_THETA.index(plane) for plane in terms.planes])[terms.plane]
    where = np.zeros(len(number), np.int64)
    for harmonic in range(4):
        these = (number + 1) // 2 == harmonic
        met, index = np.unique(terms.function[these], return_inverse=True)
        if len(met) > WIDE:
            return None
        # Pixels are numbered by x, then y.
        functions[harmonic, :side, :side, : len(met)] = terms.functions[met].transpose(2, 1, 0)
        where[these] = number[these] * WIDE + index
    assembly = _assemble(terms, where, terms.factor, device)
    if assembly is None:
        return None
    used = (matrices.smooth, matrices.slope, difference_matrix(side))
    return FusedPaper(
        assembly=assembly,
        preparation=preparation,
        side=side,
        matrices=_half(transposed(used, padded), device),
        functions=_half(functions.reshape(4, padded * padded, WIDE), device),
    )


def _assemble(
    terms: Terms, where: NDArray[np.int64], factor: Array, device: torch.device
) -> Assembly | None:
    """How terms, whose sums are at ``where``, are added up; None if there are too many."""
    most = int(np.bincount(terms.component).max())
    if most > MOST_TERMS:
        return None
    chosen, factors = np.zeros((most, terms.dims), np.int32), np.zeros((most, terms.dims))
    order = np.argsort(terms.component, kind="stable")
    component = terms.component[order]
    rank = np.arange(len(order)) - np.searchsorted(component, component)
    chosen[rank, component], factors[rank, component] = where[order], factor[order]
    part_of = np.searchsorted(terms.part_starts, np.arange(terms.dims), side="right") - 1
    return Assembly(
        chosen=torch.from_numpy(chosen).to(device),
        factors=torch.from_numpy(factors).to(device, torch.float32),
        part_of=torch.from_numpy(part_of.astype(np.int32)).to(device),
        parts=len(terms.part_starts) - 1,
    )


def _unit(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows (N, D) divided by their norms."""
    from mkdesc.compute.torch.rows_triton import unit_rows

    n, dims = rows.shape
    out = rows.new_empty((n, dims), dtype=dtype)
    wide = _power_of_two(dims)
    unit_rows[(blocks(n, ROWS_AT_A_TIME),)](rows, out, n, D=dims, ROWS=ROWS_AT_A_TIME, WIDE=wide)
    return out


def _half(array: Array, device: torch.device) -> Tensor:
    """An array on a device in half precision."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, torch.float16)


def _scale(patches: Tensor) -> float:
    """What pixels are multiplied by."""
    return 1.0 if patches.is_floating_point() else 1 / 255


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not less.

    >>> _power_of_two(575), _power_of_two(64)
    (1024, 64)
    """
    return 1 << (n - 1).bit_length()
