"""Metrics of ranked scores: FPR95, average precision, ROC, and curves to plot.

Higher scores are taken for matches first. Equal scores are one step of the ranking: no order
within them is made up, so a descriptor that gives every pair the same score is worth chance
level, whatever the order of the input. In the definitions below the ranking is cut at each
*distinct* score s, and TP(s), FP(s) count the positives and negatives with a score >= s.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_number

Precision = Literal["trec", "trapezoid"]
_PRECISIONS = ("trec", "trapezoid")


class Curve(NamedTuple):
    """A curve to plot: ``x`` and ``y`` at each threshold, highest threshold first."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    threshold: NDArray[Any]


def _split(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores of the positives and of the negatives, each sorted upwards."""
    values, truth = np.asarray(scores), np.asarray(labels)
    if values.ndim != 1 or values.shape != truth.shape:
        raise ValueError(
            f"scores, labels: expected two arrays of shape (N,), got {values.shape} and "
            f"{truth.shape}"
        )
    if truth.dtype != np.bool_:
        if not np.isin(truth, (0, 1)).all():
            raise ValueError("labels: expected only 0 and 1, or False and True")
        truth = truth.astype(bool)
    if not (np.issubdtype(values.dtype, np.floating) or np.issubdtype(values.dtype, np.integer)):
        raise ValueError(f"scores: expected numbers, got {values.dtype}")
    if np.isnan(values).any():
        raise ValueError(f"scores[{int(np.isnan(values).argmax())}] is NaN")
    return np.sort(values[truth]), np.sort(values[~truth])


def _both(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same, where there must be both positives and negatives."""
    positive, negative = _split(scores, labels)
    if not len(positive) or not len(negative):
        raise ValueError(
            f"labels: expected positives and negatives, got {len(positive)} and {len(negative)}"
        )
    return positive, negative


def _reached(ordered: NDArray[Any], thresholds: NDArray[Any]) -> NDArray[np.int64]:
    """How many of ``ordered`` (sorted upwards) are >= each threshold."""
    return len(ordered) - np.searchsorted(ordered, thresholds, side="left")


def fpr_at_recall(scores: ArrayLike, labels: ArrayLike, recall: float = 0.95) -> float:
    """False positive rate where the given share of the positives is found (FPR95).

    FP(s) / (FP(s) + TN(s)) = FP(s) / number of negatives, at the highest score s with
    TP(s) / number of positives >= ``recall``. (Old code reports FP / (FP + TP) under the same
    name.)

    Parameters
    ----------
    scores
        Similarities, shape (N,), higher for better matches; no NaN.
    labels
        Shape (N,), True for matches.

    Examples
    --------
    >>> fpr_at_recall([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.5
    """
    check_number("recall", recall, above=0, most=1)
    positive, negative = _both(scores, labels)
    # The highest score that enough positives reach is one of the positives' own.
    found = np.arange(len(positive), 0, -1) / len(positive)
    threshold = positive[np.flatnonzero(found >= recall)[-1]]
    return float(_reached(negative, threshold) / len(negative))


def fpr95(scores: ArrayLike, labels: ArrayLike) -> float:
    """:func:`fpr_at_recall` of 0.95, the number that Phototourism tables hold.

    Examples
    --------
    >>> fpr95([0.9, 0.8, 0.7, 0.1], [True, True, False, False])
    0.0
    """
    return fpr_at_recall(scores, labels, 0.95)


def hit_precisions(
    before: NDArray[Any],
    position: NDArray[Any],
    together: NDArray[Any],
    above: NDArray[Any],
    tied: NDArray[Any],
    kind: Precision,
) -> NDArray[np.float64]:
    """Precision credited to each positive; their sum over the positives is AP times their number.

    Parameters
    ----------
    before
        Positives with a higher score.
    position, together
        This one's position (from 1) among the positives of the same score, and how many these are.
    above, tied
        Negatives with a higher score, and with the same one.
    kind
        As in :func:`average_precision`, where the definition is.
    """
    check_choice("kind", kind, _PRECISIONS)
    if kind == "trec":
        found = before + together
        return np.asarray(found / (found + above + tied), np.float64)
    # Negatives of the same score come evenly spread among the positives.
    wrong = above + tied * (position / together)
    found = before + position
    here = found / (found + wrong)
    # Nothing at all before the first hit counts as precision 1: the public code's leading point.
    just_before = np.divide(
        found - 1, found - 1 + wrong, out=np.ones(here.shape), where=found - 1 + wrong > 0
    )
    return np.asarray((here + just_before) / 2, np.float64)


def average_precisions(
    scores: ArrayLike,
    labels: ArrayLike,
    n_positives: int | None = None,
    kinds: tuple[Precision, ...] = _PRECISIONS,  # type: ignore[assignment]
) -> dict[Precision, float]:
    """Several kinds of :func:`average_precision` of the same scores.

    Examples
    --------
    >>> average_precisions([3, 2, 1], [True, False, True])
    {'trec': 0.833..., 'trapezoid': 0.791...}
    """
    positive, negative = _split(scores, labels)
    count = len(positive) if n_positives is None else n_positives
    if count < max(1, len(positive)):
        raise ValueError(
            f"n_positives: expected at least {max(1, len(positive))}, got {count}"
            if n_positives is not None
            else "labels: expected at least one positive"
        )
    # For each positive, from the lowest score to the highest:
    start = np.searchsorted(positive, positive, side="left")
    end = np.searchsorted(positive, positive, side="right")
    reached = _reached(negative, positive)
    above = len(negative) - np.searchsorted(negative, positive, side="right")
    position = np.arange(len(positive)) - start + 1
    ranks = (len(positive) - end, position, end - start, above, reached - above)
    return {kind: float(hit_precisions(*ranks, kind).sum() / count) for kind in kinds}


def average_precision(
    scores: ArrayLike,
    labels: ArrayLike,
    n_positives: int | None = None,
    kind: Precision = "trec",
) -> float:
    """Average precision.

    * ``"trec"``: the mean over the positives of the precision TP(s) / (TP(s) + FP(s)) at their
      own score s; the same as scikit-learn's ``average_precision_score``, ties included.
    * ``"trapezoid"``: the integral of precision over recall by trapezoids along the ranking, with
      a leading point of precision 1, as the public HPatches code has it. Where positives and
      negatives share a score, the negatives come evenly spread among the positives, each
      positive after its share of them. (The public code puts the positives first.)

    A constant score gives the share of positives ("trapezoid": about that).

    Parameters
    ----------
    scores
        Similarities, shape (N,), higher for better matches; no NaN.
    labels
        Shape (N,), True for matches.
    n_positives
        Number of positives there are in all, if some are not among the scores (they are then
        never found). By default those in ``labels``.
    kind
        ``"trec"`` or ``"trapezoid"``.

    Examples
    --------
    >>> average_precision([3, 2, 1], [True, False, True])
    0.833...
    >>> average_precision([5, 5, 5, 5], [True, False, False, False])
    0.25
    """
    return average_precisions(scores, labels, n_positives, (kind,))[kind]


def roc_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative.

    Equal scores count one half, so that a constant score gives 0.5.

    Parameters
    ----------
    scores
        Similarities, shape (N,), higher for better matches; no NaN.
    labels
        Shape (N,), True for matches.

    Examples
    --------
    >>> roc_auc([3, 2, 1], [True, False, True])
    0.5
    """
    positive, negative = _both(scores, labels)
    below = np.searchsorted(negative, positive, side="left")
    upto = np.searchsorted(negative, positive, side="right")
    total = int(below.sum()) + int(upto.sum())
    return total / 2 / (len(positive) * len(negative))


def _thresholds(
    positive: NDArray[Any], negative: NDArray[Any], points: int | None
) -> NDArray[Any]:
    """Distinct scores, downwards; at most ``points`` of them, evenly spaced over the ranking."""
    values = np.unique(np.concatenate([positive, negative]))[::-1]
    if points is None or len(values) <= points:
        return values
    if points < 2:
        raise ValueError(f"points: expected at least 2, got {points}")
    # Even steps over the positives and over the negatives: both ends of a curve keep their detail.
    shares = np.linspace(0, 1, points // 2)
    picked = [
        part[np.round(shares * (len(part) - 1)).astype(int)]
        for part in (positive, negative)
        if len(part)
    ]
    return np.unique(np.concatenate(picked))[::-1]


def roc_curve(scores: ArrayLike, labels: ArrayLike, points: int | None = None) -> Curve:
    """False positive rate (x) and true positive rate (y), from (0, 0) to (1, 1).

    Parameters
    ----------
    scores, labels
        As for :func:`roc_auc`.
    points
        At most about so many points, for plots; None for every distinct score.

    Examples
    --------
    >>> curve = roc_curve([3, 2, 1], [True, False, True])
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0])
    """
    positive, negative = _both(scores, labels)
    values = _thresholds(positive, negative, points)
    fpr = _reached(negative, values) / len(negative)
    tpr = _reached(positive, values) / len(positive)
    start = np.inf if np.issubdtype(values.dtype, np.floating) else values[0] + 1
    return Curve(*(np.concatenate([[a], b]) for a, b in ((0.0, fpr), (0.0, tpr), (start, values))))


def precision_recall_curve(
    scores: ArrayLike,
    labels: ArrayLike,
    n_positives: int | None = None,
    points: int | None = None,
) -> Curve:
    """Recall (x) and precision (y) at each distinct score, highest score first.

    Parameters
    ----------
    scores, labels, n_positives
        As for :func:`average_precision`.
    points
        At most about so many points, for plots; None for every distinct score.

    Examples
    --------
    >>> curve = precision_recall_curve([3, 2, 1], [True, False, True])
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.66...])
    """
    positive, negative = _split(scores, labels)
    count = len(positive) if n_positives is None else n_positives
    if count < max(1, len(positive)):
        raise ValueError(f"n_positives: expected at least {max(1, len(positive))}, got {count}")
    values = _thresholds(positive, negative, points)
    found = _reached(positive, values)
    return Curve(found / count, found / (found + _reached(negative, values)), values)
