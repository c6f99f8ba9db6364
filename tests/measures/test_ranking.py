import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from mkdesc.measures import ranking as metrics


def ranked(min_size=2, levels=6):
    """Scores with many ties, and labels of both kinds."""
    pair = st.tuples(st.integers(0, levels), st.booleans())
    lists = st.lists(pair, min_size=min_size, max_size=60)
    return lists.filter(lambda rows: len({label for _, label in rows}) == 2)


def slow_fpr95(scores, labels):
    for threshold in sorted(set(scores), reverse=True):
        taken = [label for score, label in zip(scores, labels, strict=True) if score >= threshold]
        if sum(taken) / sum(labels) >= 0.95:
            return (len(taken) - sum(taken)) / (len(labels) - sum(labels))
    raise AssertionError


def public_trapezoid(scores, labels, count):
    """Precision over recall along a ranking without ties, with a leading point of 1."""
    order = np.argsort(-np.asarray(scores))
    hits = np.concatenate([[0], np.cumsum(np.asarray(labels)[order])])
    n = np.arange(len(order) + 1)
    precision = np.where(n == 0, 1.0, hits / np.maximum(n, 1))
    return np.trapezoid(precision, hits / count)


@given(ranked())
@settings(max_examples=200, deadline=None)
def test_agrees_with_scikit_learn_and_brute_force_under_ties(rows):
    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    assert metrics.average_precision(scores, labels) == pytest.approx(
        sk.average_precision_score(labels, scores), abs=1e-12
    )
    assert metrics.roc_auc(scores, labels) == pytest.approx(
        sk.roc_auc_score(labels, scores), abs=1e-12
    )
    assert metrics.fpr_at_recall(scores, labels) == slow_fpr95(scores.tolist(), labels.tolist())
    fpr, tpr, thresholds = sk.roc_curve(labels, scores, drop_intermediate=False)
    curve = metrics.roc_curve(scores, labels)
    np.testing.assert_allclose(curve.x, fpr)
    np.testing.assert_allclose(curve.y, tpr)
    np.testing.assert_array_equal(curve.threshold[1:], thresholds[1:])
    assert curve.threshold[0] > scores.max()  # where nothing is found yet
    assert metrics.roc_curve(scores / 2, labels).threshold[0] == np.inf
    precision, recall, _ = sk.precision_recall_curve(labels, scores)
    curve = metrics.precision_recall_curve(scores, labels)
    np.testing.assert_allclose(curve.x, recall[-2::-1])
    np.testing.assert_allclose(curve.y, precision[-2::-1])


@given(ranked(), st.randoms())
@settings(max_examples=60, deadline=None)
def test_order_of_the_input_changes_nothing(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    for kind in ("trec", "trapezoid"):
        values = [
            metrics.average_precision(*map(list, zip(*data, strict=True)), kind=kind)
            for data in (rows, shuffled)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=50), st.integers(0, 5))
def test_trapezoid_is_the_public_one_where_there_are_no_ties(labels, missing):
    scores = np.random.default_rng(len(labels)).permutation(len(labels))
    count = sum(labels) + missing
    if count:
        got = metrics.average_precision(scores, labels, count, kind="trapezoid")
        assert got == pytest.approx(public_trapezoid(scores, labels, count), abs=1e-12)


def test_positives_that_are_never_found():
    assert metrics.average_precision([2, 1], [True, False], n_positives=4) == 0.25
    assert metrics.average_precision([2, 1], [False, False], n_positives=4) == 0
    with pytest.raises(ValueError, match="n_positives: expected at least 2, got 1"):
        metrics.average_precision([2, 1], [True, True], n_positives=1)
    with pytest.raises(ValueError, match="at least one positive"):
        metrics.average_precision([2, 1], [False, False])


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_constant_score_is_chance(order):
    labels = (np.arange(6000) < 1000)[order]
    scores = np.full(6000, 0.3)
    assert metrics.average_precision(scores, labels) == pytest.approx(1 / 6)
    assert metrics.average_precision(scores, labels, kind="trapezoid") == pytest.approx(
        1 / 6, abs=1e-3
    )
    assert metrics.roc_auc(scores, labels) == 0.5
    assert metrics.fpr_at_recall(scores, labels) == 1.0


def test_trapezoid_of_ties_is_close_to_the_mean_over_random_orders(rng):
    scores, labels = rng.integers(0, 5, 2000), rng.random(2000) < 0.3
    orders = [
        public_trapezoid(scores + rng.random(2000) * 0.5, labels, labels.sum()) for _ in range(50)
    ]
    got = metrics.average_precision(scores, labels, kind="trapezoid")
    assert got == pytest.approx(np.mean(orders), abs=5e-3)


def test_large_random_scores_in_both_precisions(rng):
    labels = rng.random(20_000) < 0.2
    scores = (labels + rng.normal(size=20_000)).astype(np.float32)
    expected = sk.average_precision_score(labels, scores)
    assert metrics.average_precision(scores, labels) == pytest.approx(expected, abs=1e-9)
    assert metrics.roc_auc(scores, labels) == pytest.approx(sk.roc_auc_score(labels, scores))
    thin = metrics.roc_curve(scores, labels, points=100)
    assert len(thin.x) <= 101
    assert np.trapezoid(thin.y, thin.x) == pytest.approx(metrics.roc_auc(scores, labels), abs=2e-3)


@pytest.mark.parametrize(
    "metric", [metrics.fpr_at_recall, metrics.average_precision, metrics.roc_auc]
)
def test_bad_input_is_refused(metric):
    with pytest.raises(ValueError, match=r"scores\[1\] is NaN"):
        metric([1.0, np.nan, 2.0], [True, False, True])
    with pytest.raises(ValueError, match=r"shape \(N,\), got \(2,\) and \(3,\)"):
        metric([1.0, 2.0], [True, False, True])
    with pytest.raises(ValueError, match="only 0 and 1"):
        metric([1.0, 2.0], [2, 1])
    with pytest.raises(ValueError, match="positive"):
        metric([1.0, 2.0], [0, 0])


def test_other_recalls():
    scores, labels = np.arange(10)[::-1], np.arange(10) % 2 == 0
    assert metrics.fpr_at_recall(scores, labels, 0.2) == 0
    assert metrics.fpr_at_recall(scores, labels, 1.0) == 0.8
    with pytest.raises(ValueError, match="recall"):
        metrics.fpr_at_recall(scores, labels, 0)
    with pytest.raises(ValueError, match="kind: expected one of trec, trapezoid"):
        metrics.average_precision(scores, labels, kind="other")
