"""Matching descriptors: nearest neighbours, exact and fast.

>>> import numpy as np
>>> a = np.eye(4, dtype=np.float32)
>>> match_descriptors(a, a[[2, 0, 1]]).pairs.tolist()
[[0, 1], [1, 2], [2, 0]]
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import unmasked
from mkdesc._support.check import check_number
from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.dataframes import make_dataframe
from mkdesc._support.loop_types import array_type
from mkdesc.descriptor import MKD
from mkdesc.images.reading import opencv
from mkdesc.matching.bits import Nearest, check_bits, nearest_bits
from mkdesc.measures.descriptors import as_descriptors
from mkdesc.measures.distances import pair_distances
from mkdesc.models import DEFAULT_MODEL, load_model, model_ratio

if TYPE_CHECKING:
    import cv2
    import pandas as pd


#: Descriptors per block, of the first and of the second set: 32 MB of scores.
ROWS, COLUMNS = 1024, 8192
#: Floats whose usual lengths differ by more are not of one scale; fewer vectors do not tell.
MOST_CONTRAST, FEW = 8, 10


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of descriptors, and how far apart they are: ``for i, j, distance in matches``.

    Attributes
    ----------
    pairs
        (M, 2) int64: index into the first set, index into the second.
    distances
        (M,) float32, Euclidean.

    Examples
    --------
    >>> matches = match_descriptors(np.eye(3), np.eye(3)[[1, 0]])
    >>> matches, len(matches), list(matches)
    (<Matches: 2 pairs>, 2, [(0, 1, 0.0), (1, 0, 0.0)])
    """

    pairs: NDArray[np.int64]
    distances: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        for (i, j), distance in zip(self.pairs.tolist(), self.distances.tolist(), strict=True):
            yield i, j, distance

    def __repr__(self) -> str:
        return f"<Matches: {len(self):,} pairs>"

    def to_opencv(self) -> list[cv2.DMatch]:
        """``cv2.DMatch`` objects, for ``cv2.drawMatches`` and the like."""
        make = opencv().DMatch
        return [make(*match) for match in self]

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame of pandas with the columns ``a``, ``b`` (indices) and ``distance``."""
        a, b = self.pairs.T
        return make_dataframe({"a": a, "b": b, "distance": self.distances})


def match_descriptors(
    a: ArrayLike,
    b: ArrayLike,
    *,
    mutual: bool = True,
    ratio: float | Literal["auto"] | None = None,
    max_distance: float | None = None,
    model: str | os.PathLike[str] | MKD = DEFAULT_MODEL,
    bits: bool = False,
    device: str | None = None,
) -> Matches:
    """Nearest neighbours by Euclidean distance, or by bits that differ; exact, in bounded memory.

    Parameters
    ----------
    a, b
        Descriptors (N, D) and (M, D) of two images, of one kind: both floats, or both of the
        same type of integers. Floats of clearly different lengths (unit vectors and OpenCV's
        SIFT, say) are refused: medians that differ by more than a factor of 8, zeros left out,
        if there are at least 10 of both.
    mutual
        Whether to keep only pairs of which each is the other's nearest.
    ratio
        Keep a pair only if its distance is less than this times the distance to the second
        nearest of ``b`` (Lowe's test); None: no test. ``"auto"``: the ratio that was calibrated
        for ``model``.
    max_distance
        Keep a pair only if its distance is at most this; None: no limit.
    model
        What described both, for ``ratio="auto"``: a name, a model file or a descriptor. Arrays do
        not know it; default: the model of :class:`mkdesc.Features`.
    bits
        Whether ``a`` and ``b`` are packed bits, uint8 (N, B) and (M, B), such as
        ``output="bits"`` gives, and distances how many bits differ. Nothing in such arrays tells
        them from vectors of bytes, so it must be said.
    device
        Where PyTorch compares descriptors, such as ``"cuda"``; None: compiled code on the CPU
        does, and so it does with bits.

    Returns
    -------
    Matches
        In the order of ``a``. Of equally near descriptors the first counts as the nearest.

    Notes
    -----
    All vectors are first moved and scaled alike, to be of about unit size; whole numbers stay
    exact. Distances are compared as scores ``-|x - y|^2 / 2 = x.y - |x|^2 / 2 - |y|^2 / 2``, one
    matrix product per block; rows and columns of a block are searched in one pass. Bytes are
    compared exactly, floats to rounding: about 1e-7 of the largest squared distance there is.

    Examples
    --------
    >>> a = np.eye(4, 8, dtype=np.float32)
    >>> matches = match_descriptors(a, a[[2, 0]])
    >>> len(matches), matches.pairs.tolist()
    (2, [[0, 1], [2, 0]])
    """
    here, there = check_pair(a, b, bits)
    if isinstance(ratio, str) and ratio == "auto":
        ratio = model_ratio(model)
    elif model is not DEFAULT_MODEL and not isinstance(model, MKD):
        load_model(model)  # refuses what is none
    check_limits(ratio, max_distance)
    if not len(here) or not len(there):
        return Matches(np.empty((0, 2), np.int64), np.empty(0, np.float32))
    if bits:
        return _match_bits(nearest_bits(here, there), mutual, ratio, max_distance)
    first, second, unit = of_unit_size(here, there)
    if device is None:
        nearest, runner_up, backward = _search(first, second)
    else:
        exact_in_half = here.dtype.itemsize == 1
        nearest, runner_up, backward = _search_on(device, first, second, exact_in_half)
    rows = np.arange(len(first))
    keep = backward[nearest] == rows if mutual else np.ones(len(first), np.bool_)
    pairs = np.column_stack([rows, nearest])[keep]
    distances = np.sqrt(pair_distances(first, pairs[:, 0], pairs[:, 1], second))
    good = np.ones(len(pairs), np.bool_)
    if ratio is not None:
        # A score is -d^2 / 2; it is -inf where there is no second nearest.
        good &= distances < ratio * np.sqrt(np.maximum(-2 * runner_up[keep], 0))
    distances = (unit * distances.astype(np.float64)).astype(np.float32)
    if max_distance is not None:
        good &= distances <= max_distance
    return Matches(pairs[good], distances[good])


def _match_bits(
    found: Nearest, mutual: bool, ratio: float | None, max_distance: float | None
) -> Matches:
    """What passes the tests."""
    rows = np.arange(len(found.nearest))
    good = found.back[found.nearest] == rows if mutual else np.ones(len(rows), np.bool_)
    if ratio is not None:
        good &= found.distance < ratio * found.second
    if max_distance is not None:
        good &= found.distance <= max_distance
    pairs = np.column_stack([rows, found.nearest])[good]
    return Matches(pairs, found.distance[good].astype(np.float32))


def check_pair(
    a: ArrayLike, b: ArrayLike, bits: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two sets of descriptors as arrays (N, D) and (M, D) that can be compared."""
    here, there = unmasked(a, "a"), unmasked(b, "b")
    for name, array in (("a", here), ("b", there)):
        if bits:
            check_bits(array, name)
        as_descriptors(array, name=name)
        if not array.shape[1]:
            raise ValueError(f"{name}: expected at least one dimension, got {array.shape}")
    if here.shape[1] != there.shape[1]:
        raise ValueError(
            f"a and b: expected the same dimensions, got {here.shape[1]} and {there.shape[1]}"
        )
    _refuse_other_kinds(here, there)
    return here, there


def check_limits(ratio: float | None, max_distance: float | None = None) -> None:
    """Refuse tests of matches that mean nothing; as for :func:`match_descriptors`."""
    check_number("ratio", ratio, above=0, most=1, optional=True)
    check_number("max_distance", max_distance, above=0, optional=True)


def _refuse_other_kinds(a: NDArray[Any], b: NDArray[Any]) -> None:
    """Refuse sets that no distance can compare: of other types, or floats of other scales."""
    floats = a.dtype.kind == b.dtype.kind == "f"
    if not floats and a.dtype.name != b.dtype.name:
        raise ValueError(
            f"a and b: expected descriptors of one type, got {a.dtype.name} and {b.dtype.name}"
        )
    if floats:
        one, other = _usual_length(a), _usual_length(b)
        if one and other and max(one, other) > MOST_CONTRAST * min(one, other):
            raise ValueError(
                "a and b: expected descriptors of one scale, got lengths of about "
                f"{one:.3g} and {other:.3g}"
            )


def _usual_length(x: NDArray[Any]) -> float | None:
    """The median length of vectors (N, D) that are not zero; None if they are few."""
    some = x[:: max(1, len(x) // ROWS)]
    lengths = np.linalg.norm(some.astype(np.float64), axis=1)
    lengths = lengths[lengths > 0]
    return float(np.median(lengths)) if len(lengths) >= FEW else None


def of_unit_size(
    a: NDArray[Any], b: NDArray[Any]
) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
    """Two sets of vectors, moved and scaled alike to be of about unit size, and the unit.

    Squares of large and of tiny numbers do not fit float32, and an offset hides what differs.
    The unit is a power of two and offsets are multiples of it: whole numbers stay exact.
    """
    low, high = (
        np.array([find(x, axis=0) for x in (a, b)]).astype(np.float64) for find in (np.min, np.max)
    )
    spread = high.max(axis=0) - low.min(axis=0)
    if 2 * np.linalg.norm(spread) > np.finfo(np.float32).max:
        raise ValueError(f"a and b: expected distances that fit float32, got {spread.max():g}")
    unit = 2.0 ** math.floor(math.log2(spread.max() or 1.0))
    centre = np.rint((low.min(axis=0) + spread / 2) / unit) * unit
    kind = np.result_type(a, b, np.float32)  # float64 for what float32 does not hold
    offset, divisor = centre.astype(kind), kind.type(unit)

    def moved(x: NDArray[Any]) -> NDArray[np.float32]:
        out = np.empty(x.shape, np.float32)
        for start in range(0, len(x), ROWS):  # in blocks: float64 is twice as large
            part = slice(start, start + ROWS)
            out[part] = (x[part] - offset) / divisor
        return out

    return moved(a), moved(b), unit


def _search(
    a: NDArray[np.float32], b: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
    """Nearest of ``b`` and score of the second nearest for each of ``a``; nearest of ``a``."""
    take = _compiled()
    best_r, second_r = np.full((2, len(a)), -np.inf, np.float32)
    best_c = np.full(len(b), -np.inf, np.float32)
    index_r, index_c = np.zeros(len(a), np.int64), np.zeros(len(b), np.int32)
    for column in range(0, len(b), COLUMNS):
        here = slice(column, column + COLUMNS)
        right = augmented(b[here], swap=True)
        for row in range(0, len(a), ROWS):
            now = slice(row, row + ROWS)
            scores = augmented(a[now]) @ right.T
            found_r = best_r[now], second_r[now], index_r[now]
            take(scores, row, column, *found_r, best_c[here], index_c[here])
    return index_r, second_r, index_c


def _search_on(
    device: str, a: NDArray[np.float32], b: NDArray[np.float32], half: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
    """As :func:`_search`, on a device."""
    from mkdesc._support.launching import chosen_device

    where = chosen_device(device)
    import torch

    from mkdesc.matching.nearest_torch import nearest

    kind = torch.float16 if half else torch.float32
    here, there = (torch.from_numpy(x).to(where).to(kind)[None] for x in (a, b))
    forward, backward = nearest(here, there), nearest(there, here, second=False)
    found = (forward.indices, forward.second, backward.indices)
    indices, second, back = (tensor[0].cpu().numpy() for tensor in found)
    return indices, second, back.astype(np.int32)


def augmented(x: NDArray[np.float32], swap: bool = False) -> NDArray[np.float32]:
    """Two more columns, so that a product of such rows is minus half a squared distance."""
    extra = np.ones((len(x), 2), np.float32)
    extra[:, 1 - swap] = -0.5 * np.einsum("ij,ij->i", x, x)
    return np.concatenate([x, extra], axis=1)


@locked_cache
def _compiled() -> Callable[..., None]:
    def written(dtype: str) -> Any:
        return array_type(dtype, 1, written=True)

    arguments = (
        array_type("float32", 2),
        "int64",
        "int64",
        written("float32"),
        written("float32"),
        written("int64"),
        written("float32"),
        written("int32"),  # as wide as a score: more of them at a time
    )
    return compile_loop(
        "mkdesc.matching.nearest_numba:best_of_block",
        arguments,
        fastmath={"nnan", "nsz", "reassoc"},
    )
