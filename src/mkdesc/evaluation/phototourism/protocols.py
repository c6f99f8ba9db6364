"""The two protocols on Phototourism subsets: FPR95 of pairs, and "UBC Phototour Revisited".

FPR95 (Brown, Hua, Winder 2011): pairs of patches by descriptor distance, see
:func:`score_pairs`. Revisited (Mishkin 2020): Lowe's ratio as the score of a match, average
precision image by image, see :func:`evaluate_revisited`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.datasets.phototourism.layout import PatchPairs
from mkdesc.measures.descriptors import as_descriptors
from mkdesc.measures.distances import pair_distances
from mkdesc.measures.ranking import average_precision, fpr95, roc_auc

Where = Literal["within", "across"]

#: Images with more patches than this have their negatives mined by the public code.
PUBLIC_LIMIT = 1000
#: The public code mines in blocks of so many patches and leaves an incomplete last one out.
PUBLIC_BLOCK = 128


@dataclass(frozen=True)
class PairScores:
    """Scores of pairs, in [0, 1]: see :mod:`mkdesc.measures.ranking` for the definitions."""

    fpr95: float
    average_precision: float
    roc_auc: float
    pairs: int


@dataclass(frozen=True)
class RevisitedScores:
    """What "Phototour Revisited" gives.

    Attributes
    ----------
    mean_ap
        Mean over the images, in [0, 1].
    images, skipped
        Images that entered the mean, and those without a pair of patches of one point.
    pairs
        Pairs (patch, another of its point) in all.
    positives
        Whether the other patch is ``"within"`` the same image or ``"across"`` images.
    """

    mean_ap: float
    images: int
    skipped: int
    pairs: int
    positives: Where


def score_pairs(descriptors: ArrayLike, pairs: PatchPairs) -> PairScores:
    """FPR95 and the like of pairs of descriptors, by Euclidean distance.

    Parameters
    ----------
    descriptors
        Shape (N, D).
    pairs
        Indices into them, and which match.

    Examples
    --------
    >>> descriptors = np.eye(4)[[0, 0, 1, 1, 2]]
    >>> pairs = PatchPairs(np.array([0, 2, 0]), np.array([1, 3, 4]), np.array([True, True, False]))
    >>> score_pairs(descriptors, pairs).fpr95
    0.0
    """
    values = as_descriptors(descriptors)
    similarity = -pair_distances(values, pairs.first, pairs.second)
    return PairScores(
        fpr95(similarity, pairs.matching),
        average_precision(similarity, pairs.matching),
        roc_auc(similarity, pairs.matching),
        len(similarity),
    )


def evaluate_revisited(
    descriptors: ArrayLike,
    points: ArrayLike,
    images: ArrayLike,
    public_code: bool = False,
) -> RevisitedScores:
    """Mean average precision over images, Lowe's ratio as the score.

    For each patch and each other patch of its point, d+ is their distance and d- that of the
    patch to the nearest patch of another point in the same image. The match is right where
    d+ < d-; its score is 1 - min(d+, d-) / max(d+, d-); and an image's AP is that of all its
    matches, ranked by this score, where the right ones are the positives (0 if none is right).

    The other patches of the point are those within the same image, as in the published subsets,
    where ``interest.txt`` names the point's reference image. If no image has such a pair, they are
    those across images, and d- is measured in the image that the other patch is in, as when two
    images are matched: ``interest.txt`` then names the image that each patch was cut from.

    Parameters
    ----------
    descriptors
        Shape (N, D).
    points, images
        Shape (N,): the 3-D point of each patch (``info.txt``) and its image (``interest.txt``).
    public_code
        Do what the public code does: it looks for the nearest other patch only in images of over
        1000 patches, and there not for those after the last multiple of 128; for the rest, the
        image's first patch stands in. Equal distances count as right.

    Examples
    --------
    >>> descriptors = np.eye(3)[[0, 0, 1, 2]]
    >>> evaluate_revisited(descriptors, points=[7, 7, 8, 9], images=[1, 1, 1, 1]).mean_ap
    1.0
    """
    label, image = np.asarray(points), np.asarray(images)
    if label.ndim != 1 or label.shape != image.shape:
        raise ValueError(
            f"points, images: expected two arrays of shape (N,), got {label.shape} and "
            f"{image.shape}"
        )
    values = as_descriptors(descriptors, len(label))
    names, image = np.unique(image, return_inverse=True)
    label = np.unique(label, return_inverse=True)[1]
    key = label * len(names) + image
    positives: Where = "within" if len(np.unique(key)) < len(key) else "across"
    if public_code and positives == "across":
        raise ValueError("public_code: needs pairs within an image, and there are none")
    anchor, other, owner = _positive_pairs(label, image, positives)
    negative = _nearest_others(values, label, image, anchor, owner, public_code)
    known = negative >= 0
    anchor, other, negative = anchor[known], other[known], negative[known]
    right_distance = np.sqrt(pair_distances(values, anchor, other))
    wrong_distance = np.sqrt(pair_distances(values, anchor, negative))
    right = right_distance < wrong_distance
    if public_code:
        right |= right_distance == wrong_distance
    nearer = np.minimum(right_distance, wrong_distance)
    farther = np.maximum(right_distance, wrong_distance)
    ratio = np.divide(nearer, farther, out=np.ones_like(nearer), where=farther > 0)
    precisions = []
    order = np.argsort(image[anchor], kind="stable")
    bounds = np.searchsorted(image[anchor][order], np.arange(len(names) + 1))
    for start, stop in pairwise(bounds):
        if start < stop:
            mine = order[start:stop]
            found = right[mine].any()
            precisions.append(average_precision(-ratio[mine], right[mine]) if found else 0.0)
    if not precisions:
        raise ValueError(
            "points: expected two patches of one point, and one of another, somewhere"
        )
    return RevisitedScores(
        float(np.mean(precisions)),
        len(precisions),
        len(names) - len(precisions),
        len(anchor),
        positives,
    )


def _positive_pairs(
    label: NDArray[np.int64], image: NDArray[np.int64], positives: Where
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ordered pairs of patches of one point, and the image that the second one is in."""
    order = np.argsort(label, kind="stable")
    start = np.flatnonzero(np.diff(label[order], prepend=-1))
    size = np.diff(start, append=len(order))
    firsts, seconds = [], []
    for count in np.unique(size):
        members = order[start[size == count][:, None] + np.arange(count)]
        one, two = np.nonzero(~np.eye(count, dtype=bool))
        firsts.append(members[:, one].ravel())
        seconds.append(members[:, two].ravel())
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    keep = (image[first] == image[second]) == (positives == "within")
    first, second = first[keep], second[keep]
    return first, second, image[second]


def _nearest_others(
    values: NDArray[np.float32],
    label: NDArray[np.int64],
    image: NDArray[np.int64],
    anchor: NDArray[np.int64],
    owner: NDArray[np.int64],
    public_code: bool,
) -> NDArray[np.int64]:
    """For each pair, the patch of another point in image ``owner`` that is nearest to ``anchor``.

    -1 where the image holds no other point.
    """
    nearest = np.full(len(anchor), -1)
    members = np.split(np.argsort(image, kind="stable"), np.cumsum(np.bincount(image))[:-1])
    order = np.argsort(owner, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        if not len(group):
            continue
        here = members[owner[group[0]]]
        asked, back = np.unique(anchor[group], return_inverse=True)
        found = np.full(len(asked), here[0])
        mined = np.ones(len(asked), bool)
        if public_code:
            # ``asked`` are patches of this image: their positions in it say what was mined.
            last = len(here) // PUBLIC_BLOCK * PUBLIC_BLOCK if len(here) > PUBLIC_LIMIT else 0
            mined = np.searchsorted(here, asked) < last
        half_norms = np.einsum("ij,ij->i", values[here], values[here]) / 2
        theirs = values[here].T.copy()
        for start in range(0, len(asked), 1024):
            rows = np.flatnonzero(mined[start : start + 1024]) + start
            near = values[asked[rows]] @ theirs - half_norms
            same = label[asked[rows]][:, None] == label[here]
            near[same] = -np.inf
            found[rows] = here[near.argmax(axis=1)]
            found[rows[same.all(axis=1)]] = -1
        nearest[group] = found[back]
    return nearest
