"""What every whitening needs to know of its training data: a few sums, in any order."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_not_both, check_number
from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc.heads.head import signed_power
from mkdesc.measures.descriptors import as_descriptors

Array = NDArray[np.float64]

#: Rows that are brought to double precision at a time.
BLOCK = 8192

#: What is kept.
_SUMS = ("mean", "scatter", "differences")

_SCHEMA = 2


class Statistics:
    """Sums over descriptors and over matching pairs; statistics of parts add up exactly.

    Everything is kept about the mean, so that data far from the origin lose no digits.

    Parameters
    ----------
    dims
        Length D of the descriptors.
    power
        Exponent of the signed power (and l2) that descriptors go through first; 1: none.

    Attributes
    ----------
    n, mean, scatter
        Number of descriptors, their mean (D,) and the sum of ``(x - mean)(x - mean)^T`` (D, D).
    n_pairs, differences
        Number of matching pairs and the sum of ``(q - p)(q - p)^T`` (D, D) over them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, labels = rng.normal(size=(100, 5)), np.repeat(np.arange(50), 2)
    >>> whole = Statistics(5).update(X, labels)
    >>> a, b = Statistics(5).update(X[:40], labels[:40]), Statistics(5).update(X[40:], labels[40:])
    >>> bool(np.allclose(whole.covariance, (a + b).covariance)), (a + b).n_pairs
    (True, 50)
    """

    def __init__(self, dims: int, power: float = 1.0) -> None:
        check_number("power", power, above=0, most=1)
        self.dims: int = dims
        self.power: float = power
        self.n: int = 0
        self.n_pairs: int = 0
        self.mean: Array = np.zeros(dims)
        self.scatter: Array = np.zeros((dims, dims))
        self.differences: Array = np.zeros((dims, dims))

    def __repr__(self) -> str:
        return (
            f"Statistics(dims={self.dims}, power={self.power}, n={self.n}, n_pairs={self.n_pairs})"
        )

    def update(
        self,
        X: ArrayLike,
        labels: ArrayLike | None = None,
        pairs: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Statistics:
        """Add descriptors (N, D), and the pairs among them that match.

        Parameters
        ----------
        X
            Descriptors.
        labels
            (N,) what each one shows: all pairs of equal labels match. Equal labels in two
            calls are not paired: keep the views of a point in one call.
        pairs
            Instead of labels, two arrays of row indices: ``X[pairs[0][k]]`` matches
            ``X[pairs[1][k]]``.
        """
        array = as_descriptors(X, name="X", dims=self.dims, keep_float=True)
        check_not_both(labels=labels, pairs=pairs)
        # Everything is checked before anything is added.
        groups = None if labels is None else _grouped(labels, len(array))
        ends = None if pairs is None else _checked_pairs(pairs, len(array))

        array = signed_power(array, self.power)
        for start in range(0, len(array), BLOCK):
            block = array[start : start + BLOCK].astype(np.float64)
            mean = block.mean(axis=0)
            block -= mean
            self._merge(len(block), mean, block.T @ block)
        if groups is not None:
            self._add_groups(array, *groups)
        if ends is not None:
            for start in range(0, len(ends[0]), BLOCK):
                p, q = (array[index[start : start + BLOCK]] for index in ends)
                self._add_differences(p, q)
        return self

    def _merge(self, n: int, mean: Array, scatter: Array) -> None:
        """Add ``n`` descriptors by their mean and the scatter about it."""
        if n == 0:
            return
        both = self.n + n
        shift = mean - self.mean
        self.scatter = self.scatter + scatter + np.outer(shift, shift) * (self.n * (n / both))
        self.mean = self.mean + shift * (n / both)
        self.n = both

    def update_pairs(
        self,
        X: NDArray[np.floating],
        first: NDArray[np.integer],
        second: NDArray[np.integer],
    ) -> Statistics:
        """Add pairs of matching rows of X alone, by index; X may be memory-mapped."""
        for start in range(0, len(first), BLOCK):
            part = slice(start, start + BLOCK)
            self.update_differences(X[first[part]], X[second[part]])
        return self

    def update_differences(self, p: NDArray[np.floating], q: NDArray[np.floating]) -> Statistics:
        """Add matching pairs alone: row k of ``p`` (N, D) matches row k of ``q``."""
        self._add_differences(signed_power(p, self.power), signed_power(q, self.power))
        return self

    def _add_differences(self, p: NDArray[np.floating], q: NDArray[np.floating]) -> None:
        """Add pairs that have been through the power."""
        difference = q.astype(np.float64)
        difference -= p
        self.differences += difference.T @ difference
        self.n_pairs += len(p)

    def _add_groups(
        self, array: NDArray[np.floating], order: NDArray[np.intp], starts: NDArray[np.intp]
    ) -> None:
        """Add all pairs within groups ``order[starts[i]:starts[i+1]]`` of the rows."""
        bounds = np.append(starts, len(order))
        sizes = np.diff(bounds)
        first = 0
        while first < len(sizes):
            # Whole groups, as many as fill a block.
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + BLOCK, "right")) - 1)
            n = sizes[first:last]
            rows = array[order[bounds[first] : bounds[last]]].astype(np.float64)
            means = np.add.reduceat(rows, bounds[first:last] - bounds[first]) / n[:, None]
            # The sum over pairs of a group is n times the sum of squared distances to its mean.
            rows -= np.repeat(means, n, axis=0)
            rows *= np.sqrt(np.repeat(n, n))[:, None]
            self.differences += rows.T @ rows
            first = last
        self.n_pairs += int((sizes * (sizes - 1) // 2).sum())

    def __add__(self, other: object) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        if other.dims != self.dims:
            raise ValueError(f"cannot add statistics of {self.dims} and {other.dims} dimensions")
        if self.power != other.power:
            raise ValueError(f"cannot add statistics of the powers {self.power} and {other.power}")
        both = Statistics(self.dims, self.power)
        for part in (self, other):
            both._merge(part.n, part.mean, part.scatter)
        both.n_pairs = self.n_pairs + other.n_pairs
        both.differences = self.differences + other.differences
        return both

    def columns(self, start: int, stop: int | None = None) -> Statistics:
        """What these statistics are for some columns of the descriptors alone.

        Only without a power, whose l2 depends on all columns.

        Examples
        --------
        >>> X = np.arange(12.0).reshape(4, 3)
        >>> part = Statistics(3).update(X).columns(1, 3)
        >>> bool(np.allclose(part.covariance, Statistics(2).update(X[:, 1:]).covariance))
        True
        """
        if self.power != 1:
            raise ValueError(f"power: expected statistics without one, got {self.power}")
        which = slice(start, stop)
        part = Statistics(len(self.mean[which]), self.power)
        part.n, part.n_pairs = self.n, self.n_pairs
        part.mean = self.mean[which].copy()
        part.scatter, part.differences = (
            sums[which, which].copy() for sums in (self.scatter, self.differences)
        )
        return part

    @property
    def covariance(self) -> Array:
        """Covariance of all descriptors, shape (D, D)."""
        self._need(2, self.n, "descriptors")
        return self.scatter / self.n

    @property
    def pair_covariance(self) -> Array:
        """Mean of ``(q - p)(q - p)^T`` over the matching pairs, shape (D, D)."""
        self._need(1, self.n_pairs, "matching pairs (equal labels, or pairs)")
        return self.differences / self.n_pairs

    @staticmethod
    def _need(least: int, found: int, what: str) -> None:
        if found < least:
            raise ValueError(f"learning needs at least {least} {what}, got {found}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to a safetensors file."""
        from safetensors.numpy import save

        about = {"schema": _SCHEMA, "power": self.power}
        with atomic_path(path) as partial:
            # Not by save_file, which leaves a temporary file of its own if it is killed.
            partial.write_bytes(
                save(self.to_tensors(), {"mkdesc": "statistics", "about": json.dumps(about)})
            )

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """All sums and counts by name, as :meth:`from_tensors` takes them."""
        counts = {"counts": np.array([self.n, self.n_pairs])}
        return counts | {name: getattr(self, name) for name in _SUMS}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], power: float) -> Statistics:
        """Statistics of what :meth:`to_tensors` gave; ValueError for anything else."""
        sums = _checked_sums(tensors)
        statistics = cls(len(sums[0]), power)
        statistics.n, statistics.n_pairs = (int(count) for count in tensors["counts"])
        statistics.mean, statistics.scatter, statistics.differences = sums
        return statistics

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """Read what :meth:`save` wrote."""
        tensors, metadata = read_safetensors(path)
        if metadata.get("mkdesc") != "statistics" or set(tensors) != {"counts", *_SUMS}:
            raise ValueError(f"{path}: not a file of mkdesc statistics")
        try:
            return cls.from_tensors(tensors, _power(metadata.get("about", "")))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _checked_sums(tensors: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float64]]:
    """Sums (D,), (D, D), (D, D), next to counts; ValueError for anything else."""
    counts = tensors["counts"]
    if counts.shape != (2,) or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise ValueError("counts: expected two numbers of descriptors and pairs")
    mean = tensors["mean"]
    if mean.ndim != 1:
        raise ValueError(f"mean has the shape {mean.shape}")
    for name in _SUMS:
        expected = mean.shape if name == "mean" else mean.shape * 2
        if tensors[name].shape != expected:
            raise ValueError(f"{name} has the shape {tensors[name].shape}")
        if tensors[name].dtype != np.float64 or not np.isfinite(tensors[name]).all():
            raise ValueError(f"{name} has NaN, infinity or other than float64")
    return [tensors[name] for name in _SUMS]


def _power(about: str) -> float:
    """The power that a file notes."""
    try:
        values = json.loads(about)
        schema, power = values["schema"], values["power"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("its notes are not JSON with schema and power") from None
    if schema != _SCHEMA:
        raise ValueError(f"its schema is {schema!r}; this version reads {_SCHEMA}")
    found: float = power
    return found


def _grouped(labels: ArrayLike, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows sorted by label, and where in this order each label begins."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels: expected one per descriptor, ({n},), got {array.shape}")
    if n == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    order = np.argsort(array, kind="stable")
    ordered = array[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def _checked_pairs(
    pairs: tuple[ArrayLike, ArrayLike], n: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two index arrays of one length, within range."""
    if len(pairs) != 2:
        raise ValueError(f"pairs: expected two arrays of indices, got {len(pairs)}")
    first, second = np.asarray(pairs[0]), np.asarray(pairs[1])
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"pairs: expected two arrays of one length, got {first.shape} and {second.shape}"
        )
    for index in (first, second):
        if index.size and index.dtype.kind not in "iu":
            raise ValueError(f"pairs: expected integer indices, got {index.dtype}")
        outside = (index < 0) | (index >= n)
        if outside.any():
            k = int(outside.argmax())
            raise ValueError(f"pairs: pair {k} points to {index[k]}, beyond {n} descriptors")
    return first.astype(np.intp), second.astype(np.intp)
