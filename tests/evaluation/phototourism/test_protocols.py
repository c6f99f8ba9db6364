import json
from dataclasses import asdict

import numpy as np
import pytest
from layouts import draw_pairs
from sklearn.metrics import average_precision_score

import mkdesc
from mkdesc.datasets.phototourism.layout import PatchPairs, Subset
from mkdesc.evaluation.phototourism.protocols import (
    evaluate_revisited,
    score_pairs,
)


def noisy(rng, labels, dims=16, noise=0.5):
    centres = rng.normal(size=(labels.max() + 1, dims))
    return (centres[labels] + noise * rng.normal(size=(len(labels), dims))).astype(np.float32)


def slow_revisited(descriptors, points, images, public_code=False, across=False):
    """The protocol in loops over patches."""
    distance = np.linalg.norm(descriptors[:, None] - descriptors[None], axis=2)
    precisions = []
    for image in np.unique(images):
        here = np.flatnonzero(images == image)
        right, score = [], []
        for place, a in enumerate(here):
            for p in np.flatnonzero(points == points[a]):
                if p == a or (images[p] == image) == across:
                    continue
                there = np.flatnonzero(images == images[p])
                others = there[points[there] != points[a]]
                mined = len(here) > 1000 and place < len(here) // 128 * 128
                if public_code and not mined:
                    others = here[:1]
                if not len(others):
                    continue
                n = others[distance[a, others].argmin()]
                near, far = distance[a, p], distance[a, n]
                right.append(near <= far if public_code else near < far)
                score.append(1 - (min(near, far) / max(near, far) if max(near, far) else 1.0))
        if right:
            ap = average_precision_score(right, np.round(score, 9)) if any(right) else 0.0
            precisions.append(ap)
    return np.mean(precisions), len(precisions)


def test_fpr95_of_pairs(rng):
    labels = rng.integers(0, 50, 400)
    descriptors = noisy(rng, labels)
    table = draw_pairs(labels, 600)
    matching = labels[table[:, 0]] == labels[table[:, 1]]
    distance = np.linalg.norm(descriptors[table[:, 0]] - descriptors[table[:, 1]], axis=1)
    limit = np.sort(distance[matching])[int(np.ceil(0.95 * matching.sum())) - 1]
    scores = score_pairs(descriptors, PatchPairs(*table.T, matching))
    assert scores.fpr95 == pytest.approx((distance[~matching] <= limit).mean(), abs=1e-9)
    assert scores.average_precision == pytest.approx(
        average_precision_score(matching, -distance), abs=1e-6
    )
    assert scores.pairs == 600
    assert json.loads(json.dumps(asdict(scores))) == asdict(scores)


def test_constant_and_bad_descriptors(rng):
    labels = rng.integers(0, 50, 400)
    table = draw_pairs(labels, 600)
    pairs = PatchPairs(*table.T, labels[table[:, 0]] == labels[table[:, 1]])
    scores = score_pairs(np.ones((400, 8)), pairs)
    assert (scores.fpr95, scores.average_precision, scores.roc_auc) == (1.0, 0.5, 0.5)
    perfect = score_pairs(np.eye(50)[labels], pairs)
    assert (perfect.fpr95, perfect.average_precision, perfect.roc_auc) == (0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"descriptors\[3\] has NaN"):
        score_pairs(np.where(np.arange(400)[:, None] == 3, np.nan, np.ones((400, 8))), pairs)


@pytest.mark.parametrize("public_code", [False, True])
def test_revisited_within_images(rng, public_code):
    points = rng.integers(0, 60, 300)
    images = points // 20  # the reference image of each point
    images[points == 59] = 7  # an image with one point only
    descriptors = noisy(rng, points, noise=1.0)
    got = evaluate_revisited(descriptors, points, images, public_code)
    expected, count = slow_revisited(descriptors, points, images, public_code)
    assert got.positives == "within"
    assert got.mean_ap == pytest.approx(expected, abs=1e-6)
    assert (got.images, got.skipped) == (count, 4 - count)


def test_public_code_mines_only_large_images(rng):
    points = np.concatenate([rng.integers(0, 400, 1100), rng.integers(400, 800, 1000)])
    images = np.repeat([0, 1], [1100, 1000])
    descriptors = noisy(rng, points, dims=8, noise=0.8)
    got = evaluate_revisited(descriptors, points, images, public_code=True)
    expected, _ = slow_revisited(descriptors, points, images, public_code=True)
    assert got.mean_ap == pytest.approx(expected, abs=1e-6)
    corrected = evaluate_revisited(descriptors, points, images)
    assert corrected.mean_ap == pytest.approx(
        slow_revisited(descriptors, points, images)[0], abs=1e-6
    )
    assert corrected.mean_ap < got.mean_ap


def test_revisited_across_images(rng):
    images = np.tile(np.arange(5), 40)
    points = np.repeat(np.arange(40), 5)
    descriptors = noisy(rng, points, noise=0.9)
    got = evaluate_revisited(descriptors, points, images)
    expected, count = slow_revisited(descriptors, points, images, across=True)
    assert got.positives == "across"
    assert got.mean_ap == pytest.approx(expected, abs=1e-6)
    assert (got.images, got.pairs) == (count, 40 * 20)
    with pytest.raises(ValueError, match="public_code"):
        evaluate_revisited(descriptors, points, images, public_code=True)


def test_revisited_of_degenerate_descriptors(rng):
    points = rng.integers(0, 60, 300)
    images = points // 20
    assert evaluate_revisited(np.ones((300, 4)), points, images).mean_ap == 0
    assert evaluate_revisited(np.eye(60)[points], points, images).mean_ap == 1
    with pytest.raises(ValueError, match="two patches of one point"):
        evaluate_revisited(np.ones((3, 4)), [0, 1, 2], [0, 0, 0])
    with pytest.raises(ValueError, match="points, images"):
        evaluate_revisited(np.ones((3, 4)), [0, 1, 2], [0, 0])


def test_real_subset(shared):
    subset = Subset(shared / "data" / "phototourism" / "castle")
    described = np.concatenate([mkdesc.MKD().transform(block) for _, block in subset.blocks()])
    assert score_pairs(described, subset.pairs(1000)).fpr95 < 0.2
    points, images = subset.labels(), subset.interest().image
    revisited = evaluate_revisited(described, points, images)
    assert revisited.positives == "across"
    assert 0.5 < revisited.mean_ap < 1
