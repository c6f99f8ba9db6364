"""What is given to grow from, checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.geometry.positions import as_positions
from mkdesc.images.detectors.keypoints import Keypoints, as_points

Floats = NDArray[np.float64]


class Guesses(NamedTuple):
    """Where keypoints are, and what is guessed of their matches.

    Attributes
    ----------
    places_a, places_b
        (N, 2) and (M, 2).
    pairs
        (K, 2): numbers of keypoints.
    guess
        (K, 6): x and y in the second photograph, and the four numbers of the map, row by row.
    """

    places_a: Floats
    places_b: Floats
    pairs: NDArray[np.int64]
    guess: Floats


def checked_guesses(
    keypoints_a: Keypoints | ArrayLike,
    keypoints_b: Keypoints | ArrayLike,
    pairs: ArrayLike,
    maps: ArrayLike | None,
) -> Guesses:
    """What :func:`~mkdesc.matching.growing.grow.grow_matches` is given, checked."""
    a = checked_keypoints("keypoints_a", keypoints_a)
    b = checked_keypoints("keypoints_b", keypoints_b)
    rows = checked_pairs(pairs, len(a), len(b))
    i, j = rows.T
    local = maps_of_keypoints(a[i], b[j]) if maps is None else checked_maps(maps, len(rows))
    guess = np.column_stack([b[j, :2], local])
    at_a, at_b = np.ascontiguousarray(a[:, :2]), np.ascontiguousarray(b[:, :2])
    return Guesses(at_a, at_b, rows, guess)


def checked_keypoints(name: str, keypoints: Keypoints | ArrayLike) -> Floats:
    """Keypoints (N, 4), or (N, 2) if there are only positions."""
    if isinstance(keypoints, Keypoints):
        return keypoints.points
    found = np.asarray(keypoints)
    if found.ndim == 2 and found.shape[1] == 2:
        return as_positions(name, found)
    try:
        return as_points(found)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None


def checked_pairs(pairs: ArrayLike, n: int, m: int) -> NDArray[np.int64]:
    """Pairs (K, 2) of the numbers of ``n`` and ``m`` keypoints.

    >>> checked_pairs([[0, 7]], 5, 5)
    Traceback (most recent call last):
    ValueError: pairs[0]: expected numbers of 5 and 5 keypoints, got [0, 7]
    """
    found = np.asarray(pairs)
    if found.size == 0:
        return np.empty((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"pairs: expected integers (K, 2), got {found.dtype} {found.shape}")
    wrong = ((found < 0) | (found >= np.array([n, m]))).any(axis=1)
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"pairs[{k}]: expected numbers of {n} and {m} keypoints, got {found[k].tolist()}"
        )
    return found.astype(np.int64)


def checked_maps(maps: ArrayLike, count: int) -> Floats:
    """Local maps (K, 2, 2) as (K, 4)."""
    found = np.asarray(maps)
    if found.dtype.kind not in "iuf" or found.shape != (count, 2, 2):
        raise ValueError(f"maps: expected ({count}, 2, 2), got {found.dtype} {found.shape}")
    good = np.isfinite(found).all(axis=(1, 2))
    if not good.all():
        raise ValueError(f"maps[{int(good.argmin())}] has NaN or infinity")
    return found.reshape(count, 4).astype(np.float64)


def maps_of_keypoints(a: Floats, b: Floats) -> Floats:
    """Local maps (K, 4) from one keypoint to the other, by their sigmas and angles.

    Those without are taken for equal.

    >>> maps_of_keypoints(np.array([[0.0, 0, 1, 0]]), np.array([[5.0, 5, 2, 90]])).round(9)
    array([[ 0., -2.,  2.,  0.]])
    """
    if a.shape[1] == 2 or b.shape[1] == 2:
        return np.tile([1.0, 0.0, 0.0, 1.0], (len(a), 1))
    turn, scale = np.radians(b[:, 3] - a[:, 3]), b[:, 2] / a[:, 2]
    cosine, sine = scale * np.cos(turn), scale * np.sin(turn)
    return np.column_stack([cosine, -sine, sine, cosine])
