"""HPatches matching: nearest neighbours between the images of a sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress, no_progress
from mkdesc.datasets.hpatches.layout import NOISES, image_name, sequence_type
from mkdesc.evaluation.hpatches.scores import (
    Descriptors,
    Scores,
    TaskResult,
    both_precisions,
    get_descriptors,
)
from mkdesc.measures.distances import pair_distances


def matching(
    descriptors: Descriptors, sequences: Sequence[str], progress: Progress = no_progress
) -> TaskResult:
    """Match every patch of the reference to its nearest neighbour in image k.

    The match is right if it is the same patch. ``ap`` ranks the N matches by distance, with N as
    the number of positives: a wrong match lowers both precision and recall. Of several nearest
    neighbours at the same distance the first is taken, whichever is right. The task's score is
    the mean over images, sequences and levels of noise.

    Parameters
    ----------
    descriptors
        (N, D) by (sequence, image).
    sequences
        Names of the sequences to match in.
    progress
        Told of every sequence.

    Returns
    -------
    TaskResult
        ``detail[sequence][noise][score]`` is the list of the scores of images 1 .. 5.
    """
    if not len(sequences):
        raise ValueError("sequences: expected at least one, got none")
    detail: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name in sequences:
        reference = get_descriptors(descriptors, name, "ref")
        detail[name] = {}
        for noise in NOISES:
            scores = []
            for k in range(1, 6):
                image = get_descriptors(descriptors, name, image_name(noise, k), *reference.shape)
                scores.append(_match(reference, image))
            detail[name][noise] = {key: [one[key] for one in scores] for key in scores[0]}
        progress("matching", len(detail), len(sequences))

    def mean(names: Sequence[str], noises: Sequence[str]) -> Scores:
        keys = detail[names[0]]["easy"]
        lists = [detail[name][noise] for name in names for noise in noises]
        return {key: float(np.mean([scores[key] for scores in lists])) for key in keys}

    by_type: dict[str, list[str]] = {}
    for name in sequences:
        by_type.setdefault(sequence_type(name), []).append(name)
    return TaskResult(
        "matching",
        mean(sequences, list(NOISES)),
        {noise: mean(sequences, [noise]) for noise in NOISES},
        {kind: mean(by_type[kind], list(NOISES)) for kind in sorted(by_type)},
        detail,
    )


def _match(reference: NDArray[np.float32], image: NDArray[np.float32]) -> Scores:
    count = len(reference)
    half_norms = np.einsum("ij,ij->i", image, image) / 2
    nearest = np.empty(count, np.int64)
    for start in range(0, count, 2048):
        closeness = reference[start : start + 2048] @ image.T
        closeness -= half_norms
        nearest[start : start + 2048] = closeness.argmax(axis=1)
    right = nearest == np.arange(count)
    similarity = -pair_distances(reference, np.arange(count), nearest, image)
    return {**both_precisions(similarity, right, count), "success": float(right.mean())}
