"""The three HPatches tasks, on descriptors that are looked up by sequence and image.

Descriptors are compared by Euclidean distance. All scores are in [0, 1]; ``ap`` is the article's
average precision (TREC), ``ap_trapezoid`` that of the public Python code, both with equal
distances handled as :mod:`mkdesc.measures.ranking` says: no order within them is made up.

Memory: verification holds the reference and one level of noise of all sequences, the other two
tasks one sequence and the distractors.
"""

from __future__ import annotations

from mkdesc.datasets.hpatches_tasks import RetrievalTask, VerificationTask
from mkdesc.evaluation.hpatches.matching import matching
from mkdesc.evaluation.hpatches.retrieval import retrieval
from mkdesc.evaluation.hpatches.scores import Descriptors, Names, TaskResult
from mkdesc.evaluation.hpatches.verification import verification

__all__ = ["Descriptors", "TaskResult", "evaluate", "matching", "retrieval", "verification"]


def evaluate(
    descriptors: Descriptors,
    pairs: VerificationTask | None = None,
    sequences: Names[str] | None = None,
    retrieve: RetrievalTask | None = None,
    curves: int | None = None,
) -> dict[str, TaskResult]:
    """Run the tasks that are given: pairs to verify, sequences to match, patches to retrieve.

    Examples
    --------
    >>> import numpy as np
    >>> from mkdesc.datasets.hpatches import IMAGES
    >>> same = {(name, image): np.eye(9) for name in ("i_a", "v_b") for image in IMAGES}
    >>> evaluate(same, sequences=["i_a", "v_b"])["matching"].mean["ap"]
    1.0
    """
    results = {}
    if pairs is not None:
        results["verification"] = verification(descriptors, pairs, curves)
    if sequences is not None:
        results["matching"] = matching(descriptors, sequences)
    if retrieve is not None:
        results["retrieval"] = retrieval(descriptors, retrieve)
    return results
