"""What the HPatches tasks take and give: descriptors by image, and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.measures.descriptors import as_descriptors
from mkdesc.measures.ranking import average_precisions

#: Descriptors (N, D) by (sequence, image): a dict, or anything that loads them when asked.
Descriptors = Mapping[tuple[str, str], ArrayLike]
Scores = dict[str, float]


@dataclass(frozen=True)
class TaskResult:
    """Scores of one task, in [0, 1]; made of plain dicts and numbers, ready for JSON.

    Attributes
    ----------
    task
        ``verification``, ``matching`` or ``retrieval``.
    mean
        The task's scores in all: ``ap``, ``ap_trapezoid``, and ``auc`` (verification) or
        ``success``, the share of right nearest neighbours (matching).
    by_noise, by_type
        The same for ``easy``, ``hard``, ``tough``, and for ``illumination``, ``viewpoint``.
    detail
        What they are means of; see the task's function.
    curves
        Curves to plot, if they were asked for.
    """

    task: str
    mean: Scores
    by_noise: dict[str, Scores]
    by_type: dict[str, Scores]
    detail: dict[str, Any]
    curves: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dicts."""
        return asdict(self)


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """The mean of each score over several results."""
    return {key: float(np.mean([one[key] for one in scores])) for key in scores[0]}


def get_descriptors(
    descriptors: Descriptors,
    sequence: str,
    image: str,
    count: int | None = None,
    dims: int | None = None,
) -> NDArray[np.float32]:
    """Descriptors (N, D) of one image, checked; ``count`` and ``dims`` are N and D where known."""
    name = f"descriptors[{sequence!r}, {image!r}]"
    try:
        values = descriptors[sequence, image]
    except KeyError:
        raise ValueError(f"{name}: there are none") from None
    return as_descriptors(values, count, name, dims=dims)


def both_precisions(
    similarity: NDArray[np.float32], labels: NDArray[np.bool_], n_positives: int | None = None
) -> Scores:
    """``ap`` and ``ap_trapezoid`` of a ranking."""
    found = average_precisions(similarity, labels, n_positives)
    return {"ap": found["trec"], "ap_trapezoid": found["trapezoid"]}
