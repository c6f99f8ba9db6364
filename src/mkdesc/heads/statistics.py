"""What every whitening needs to know of its training data: a few sums, in any order."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc.measures.descriptors import as_descriptors

__all__ = ["Statistics"]

Array = NDArray[np.float64]

#: Rows that are brought to double precision at a time.
BLOCK = 8192

_SUMS = ("total", "squares", "differences")


class Statistics:
    """Sums over descriptors and over matching pairs; statistics of parts add up exactly.

    Parameters
    ----------
    dims
        Length D of the descriptors.

    Attributes
    ----------
    n, total, squares
        Number of descriptors, their sum (D,) and the sum of ``x x^T`` (D, D).
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

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self.n = 0
        self.n_pairs = 0
        self.total: Array = np.zeros(dims)
        self.squares: Array = np.zeros((dims, dims))
        self.differences: Array = np.zeros((dims, dims))

    def __repr__(self) -> str:
        return f"Statistics(dims={self.dims}, n={self.n}, n_pairs={self.n_pairs})"

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
        if labels is not None and pairs is not None:
            raise ValueError("labels and pairs: expected one of them, got both")
        # Everything is checked before anything is added.
        groups = None if labels is None else _grouped(labels, len(array))
        ends = None if pairs is None else _checked_pairs(pairs, len(array))

        for start in range(0, len(array), BLOCK):
            block = array[start : start + BLOCK].astype(np.float64)
            self.total += block.sum(axis=0)
            self.squares += block.T @ block
        self.n += len(array)
        if groups is not None:
            self._add_groups(array, *groups)
        if ends is not None:
            self.update_pairs(array, *ends)
        return self

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
        difference = q.astype(np.float64)
        difference -= p
        self.differences += difference.T @ difference
        self.n_pairs += len(p)
        return self

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
        both = Statistics(self.dims)
        for name in ("n", "n_pairs", *_SUMS):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def columns(self, start: int, stop: int | None = None) -> Statistics:
        """What these statistics are for some columns of the descriptors alone.

        Examples
        --------
        >>> X = np.arange(12.0).reshape(4, 3)
        >>> part = Statistics(3).update(X).columns(1, 3)
        >>> bool((part.covariance == Statistics(2).update(X[:, 1:]).covariance).all())
        True
        """
        which = slice(start, stop)
        part = Statistics(len(self.total[which]))
        part.n, part.n_pairs = self.n, self.n_pairs
        part.total = self.total[which]
        part.squares, part.differences = (
            np.ascontiguousarray(sums[which, which]) for sums in (self.squares, self.differences)
        )
        return part

    @property
    def mean(self) -> Array:
        """Mean of all descriptors, shape (D,)."""
        self._need(1, self.n, "descriptors")
        return self.total / self.n

    @property
    def covariance(self) -> Array:
        """Covariance of all descriptors, shape (D, D)."""
        self._need(2, self.n, "descriptors")
        mean = self.mean
        return self.squares / self.n - np.outer(mean, mean)

    @property
    def pair_covariance(self) -> Array:
        """Mean of ``(q - p)(q - p)^T`` over the matching pairs, shape (D, D)."""
        self._need(1, self.n_pairs, "matching pairs")
        return self.differences / self.n_pairs

    @staticmethod
    def _need(least: int, found: int, what: str) -> None:
        if found < least:
            raise ValueError(f"learning needs at least {least} {what}, got {found}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to a safetensors file."""
        from safetensors.numpy import save_file

        counts = {"counts": np.array([self.n, self.n_pairs])}
        with atomic_path(path) as partial:
            save_file(
                counts | {name: getattr(self, name) for name in _SUMS},
                partial,
                {"mkdesc": "statistics"},
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """Read what :meth:`save` wrote."""
        tensors, metadata = read_safetensors(path)
        if metadata.get("mkdesc") != "statistics" or set(tensors) != {"counts", *_SUMS}:
            raise ValueError(f"{path}: not a file of mkdesc statistics")
        counts = tensors["counts"]
        if counts.shape != (2,) or counts.dtype.kind not in "iu" or counts.min() < 0:
            raise ValueError(f"{path}: counts: expected two numbers of descriptors and pairs")
        if tensors["total"].ndim != 1:
            raise ValueError(f"{path}: total has the shape {tensors['total'].shape}")
        statistics = cls(len(tensors["total"]))
        for name in _SUMS:
            if tensors[name].shape != getattr(statistics, name).shape:
                raise ValueError(f"{path}: {name} has the shape {tensors[name].shape}")
            if tensors[name].dtype != np.float64 or not np.isfinite(tensors[name]).all():
                raise ValueError(f"{path}: {name} has NaN, infinity or other than float64")
            setattr(statistics, name, tensors[name])
        statistics.n, statistics.n_pairs = (int(count) for count in counts)
        return statistics


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
