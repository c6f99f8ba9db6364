"""The ratio of Lowe's test that suits a descriptor, found on views of photographs.

SIFT's 0.75 or 0.8 is no constant of nature: distances of other descriptors are distributed
otherwise. Here each photograph is matched with a randomly warped copy of itself, so that it is
known which mutual nearest neighbours are right; the ratio is the one with the largest F1 score,
the harmonic mean of the share of kept matches that are right and the share of right ones that are
kept. By the same rule RootSIFT's is between 0.8 and 0.85, which is what people use.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc.descriptor import MKD
from mkdesc.features.features import Features
from mkdesc.images.reading import opencv, read_gray
from mkdesc.images.resampling import reduced
from mkdesc.learn.photos import list_photos

#: Pixels of the longer side that photographs are reduced to, and keypoints of each.
SIZE, KEYPOINTS = 800, 1000
#: Pixels from where it belongs at which a match is right.
RIGHT = 3.0
#: Photographs that are enough for the card of a model.
RATIO_PHOTOS = 20
#: Right matches that are needed to say anything.
FEWEST = 100


class CalibratedRatio(NamedTuple):
    """A ratio, and what it does.

    Attributes
    ----------
    ratio
        Two decimals.
    precision, recall
        Share of the matches kept that are right, and share of the right mutual neighbours that
        are kept.
    matches
        Mutual neighbours that it was found on.
    """

    ratio: float
    precision: float
    recall: float
    matches: int


def calibrated_ratio(
    model: str | PathLike[str] | MKD,
    photos: str | Path | Iterable[str | Path],
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> CalibratedRatio | None:
    """The ratio at which matches of a model are best, by their F1 score.

    Parameters
    ----------
    model
        Name of a bundled model, a model file, or a descriptor.
    photos
        A folder (photographs of folders in it too), or files. Those that cannot be read count
        for nothing.
    seed
        Of the views.
    progress
        Told of every photograph.

    Returns
    -------
    CalibratedRatio or None
        None if fewer than 100 matches are right.
    """
    features = Features(max_keypoints=KEYPOINTS, model=model)
    files = list_photos(photos)
    found = []
    for done, file in enumerate(files, 1):
        try:
            gray = reduced(read_gray(file), SIZE)
        except (ValueError, OSError):
            continue
        found.append(match_view(features, gray, np.random.default_rng((seed, done))))
        progress("matching views", done, len(files))
    if not found:
        return None
    return best_ratio(*(np.concatenate(one) for one in zip(*found, strict=True)))


def best_ratio(ratios: NDArray[np.floating], right: NDArray[np.bool_]) -> CalibratedRatio | None:
    """The ratio with the largest F1 score.

    Parameters
    ----------
    ratios
        (N,): distance of each match over that of the second nearest.
    right
        (N,): whether it is right.

    Examples
    --------
    >>> ratios = np.linspace(0, 1, 1001)
    >>> best_ratio(ratios, ratios < 0.7)
    CalibratedRatio(ratio=0.7, precision=1.0, recall=1.0, matches=1001)
    """
    total = int(right.sum())
    if total < FEWEST:
        return None
    steps = np.arange(1, 101) / 100
    kept = np.array([np.count_nonzero(ratios < step) for step in steps])
    good = np.array([np.count_nonzero(right & (ratios < step)) for step in steps])
    best = int(np.argmax(2 * good / (kept + total)))
    precision, recall = good[best] / kept[best], good[best] / total
    return CalibratedRatio(float(steps[best]), float(precision), float(recall), len(ratios))


class ViewMatches(NamedTuple):
    """Mutual nearest neighbours in a photograph and a view of it.

    Attributes
    ----------
    ratios
        (N,): distance of each over that of the second nearest.
    right
        (N,): whether it is within 3 px of where it belongs.
    """

    ratios: NDArray[np.float64]
    right: NDArray[np.bool_]


def match_view(
    features: Features, gray: NDArray[np.uint8], rng: np.random.Generator
) -> ViewMatches:
    """Match a photograph with a random view of it.

    Parameters
    ----------
    features
        What detects and describes.
    gray
        (H, W).
    rng
        Draws the view: see :func:`random_view`.
    """
    view, homography = random_view(gray, rng)
    (a, here), (b, there) = (features.extract(image) for image in (gray, view))
    if min(len(here), len(there)) < 2:
        return ViewMatches(np.empty(0), np.empty(0, np.bool_))
    if features.output == "bits":  # squared distances of bits are Hamming's
        here, there = (np.unpackbits(packed, axis=1) for packed in (here, there))
    one, other = here.astype(np.float64), there.astype(np.float64)
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    nearest = squares.argmin(axis=1)
    rows = np.flatnonzero(squares.argmin(axis=0)[nearest] == np.arange(len(one)))
    best, second = np.sqrt(np.maximum(np.partition(squares[rows], 1, axis=1)[:, :2].T, 0))
    ends = np.column_stack([a.points[rows, :2], np.ones(len(rows))]) @ homography.T
    off = np.linalg.norm(ends[:, :2] / ends[:, 2:] - b.points[nearest[rows], :2], axis=1)
    return ViewMatches(best / np.maximum(second, 1e-12), off <= RIGHT)


def random_view(
    gray: NDArray[np.uint8], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """A photograph from elsewhere and in other light, and the homography (3, 3) to it.

    Parameters
    ----------
    gray
        (H, W).
    rng
        Draws rotation (any, for three in ten), scale (e^-0.5 to e^0.5), corners (moved by up to
        15%), blur, gamma and noise.
    """
    cv2 = opencv("learning from photographs")
    height, width = gray.shape
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    middle = corners.mean(axis=0)
    angle = rng.uniform(-np.pi, np.pi) if rng.random() < 0.3 else rng.uniform(-0.4, 0.4)
    scale = np.exp(rng.uniform(-0.5, 0.5))
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    ends = (corners - middle) @ np.array([[cos, sin], [-sin, cos]]) + middle
    ends += rng.uniform(-0.15, 0.15, (4, 2)) * [width, height]
    homography = cv2.getPerspectiveTransform(corners, ends.astype(np.float32))
    view = cv2.warpPerspective(gray, homography, (width, height), flags=cv2.INTER_LINEAR)
    blurred = cv2.GaussianBlur(view, (0, 0), 0.3 + 1.2 * rng.random() ** 2) / 255.0
    lit = blurred ** np.exp(rng.uniform(-0.4, 0.4))
    noisy = lit + rng.normal(0, 0.04 * rng.random(), lit.shape)
    return np.clip(255 * noisy, 0, 255).astype(np.uint8), np.asarray(homography, np.float64)
