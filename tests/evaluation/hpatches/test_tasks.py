import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from mkdesc.datasets.hpatches.layout import IMAGES, NOISES
from mkdesc.datasets.hpatches.task_lists import RetrievalTask, draw_retrieval, draw_verification
from mkdesc.evaluation.hpatches.matching import matching
from mkdesc.evaluation.hpatches.retrieval import retrieval
from mkdesc.evaluation.hpatches.retrieval_pools import POOLS
from mkdesc.evaluation.hpatches.verification import verification

COUNTS = {"i_dome": 60, "v_wall": 70, "v_boat": 50}
LEVELS = {"r": 0.0, "e": 0.4, "h": 0.9, "t": 1.4}


@pytest.fixture(scope="module")
def described():
    rng = np.random.default_rng(5)
    made = {}
    for name, count in COUNTS.items():
        true = rng.normal(size=(count, 12))
        for image in IMAGES:
            noise = LEVELS[image[0]] * rng.normal(size=(count, 12))
            made[name, image] = (true + noise).astype(np.float32)
    return made


@pytest.fixture(scope="module")
def pairs():
    return draw_verification(COUNTS, pairs=500)


@pytest.fixture(scope="module")
def lists():
    return draw_retrieval({name: np.ones(count, bool) for name, count in COUNTS.items()}, seed=0)


def evaluate(described, pairs, lists, curves=None):
    return {
        "verification": verification(described, pairs, curves),
        "matching": matching(described, list(COUNTS)),
        "retrieval": retrieval(described, lists),
    }


def constant(dims=3):
    return {
        (name, image): np.full((count, dims), 0.1, np.float32)
        for name, count in COUNTS.items()
        for image in IMAGES
    }


def one_hot(dims):
    """Patch k has one at k mod dims, in all images and sequences."""
    return {
        (name, image): np.eye(dims, dtype=np.uint8)[np.arange(count) % dims]
        for name, count in COUNTS.items()
        for image in IMAGES
    }


def distances_of(described, task, table, letter):
    out = []
    for s1, t1, i1, s2, t2, i2 in table:
        a = described[task.sequences[s1], f"{letter}{t1}" if t1 else "ref"][i1]
        b = described[task.sequences[s2], f"{letter}{t2}" if t2 else "ref"][i2]
        out.append(((a.astype(float) - b) ** 2).sum())
    return np.array(out)


def test_verification_against_loops(described, pairs):
    got = verification(described, pairs, curves=20)
    cases = []
    for noise, letter in NOISES.items():
        positive = distances_of(described, pairs, pairs.positives, letter)
        for kind in ("intra", "inter"):
            negative = distances_of(described, pairs, getattr(pairs, kind), letter)
            labels = np.arange(100 + 500) < 100
            ap = average_precision_score(labels, -np.concatenate([positive[:100], negative]))
            labels = np.arange(1000) < 500
            auc = roc_auc_score(labels, -np.concatenate([positive, negative]))
            case = got.detail[noise][kind]
            assert case["ap"] == pytest.approx(ap, abs=1e-6)
            assert case["auc"] == pytest.approx(auc, abs=1e-6)
            cases.append(ap)
    assert got.mean["ap"] == pytest.approx(np.mean(cases), abs=1e-6)
    assert got.by_noise["easy"]["ap"] > got.by_noise["hard"]["ap"] > got.by_noise["tough"]["ap"]
    assert set(got.by_type) == {"illumination", "viewpoint"}
    assert set(got.curves["hard"]["inter"]) == {"fpr", "tpr", "recall", "precision"}


def test_verification_by_type_is_that_of_its_sequences_alone(described, pairs):
    kept = [
        table[np.isin(table[:, 0], (1, 2)) & np.isin(table[:, 3], (1, 2))]
        for table in (pairs.positives, pairs.intra, pairs.inter)
    ]
    alone = verification(described, type(pairs)(pairs.sequences, *kept))
    assert verification(described, pairs).by_type["viewpoint"] == pytest.approx(alone.mean)


def test_matching_against_loops(described):
    got = matching(described, list(COUNTS))
    everything = []
    for name, count in COUNTS.items():
        for noise, letter in NOISES.items():
            for k in range(1, 6):
                a, b = (described[name, image].astype(float) for image in ("ref", f"{letter}{k}"))
                distance = np.linalg.norm(a[:, None] - b[None], axis=2)
                right = distance.argmin(axis=1) == np.arange(count)
                hits = np.cumsum(right[np.argsort(distance.min(axis=1))])
                steps = np.diff(hits, prepend=0)
                ap = (steps * hits / np.arange(1, count + 1)).sum() / count
                assert got.detail[name][noise]["ap"][k - 1] == pytest.approx(ap, abs=1e-6)
                assert got.detail[name][noise]["success"][k - 1] == pytest.approx(right.mean())
                everything.append(ap)
    assert got.mean["ap"] == pytest.approx(np.mean(everything), abs=1e-6)
    by_type = matching(described, ["v_wall", "v_boat"])
    assert got.by_type["viewpoint"] == pytest.approx(by_type.mean)
    with pytest.raises(ValueError, match="sequences: expected at least one"):
        matching(described, [])


def slow_retrieval(described, task, pools):
    """AP of each query, noise and pool, one ranking at a time."""
    out = np.empty((len(task.queries), 3, len(pools)))
    for q, (s, patch) in enumerate(task.queries):
        query = described[task.sequences[s], "ref"][patch].astype(float)
        others = [row for row in task.distractors if row[0] != s]
        for n, letter in enumerate("eht"):
            found = [described[task.sequences[s], f"{letter}{k}"][patch] for k in range(1, 6)]
            found += [described[task.sequences[t], "ref"][i] for t, i in others]
            distance = ((np.array(found) - query) ** 2).sum(axis=1)
            for p, size in enumerate(pools):
                labels = np.arange(len(distance[:size])) < 5
                out[q, n, p] = average_precision_score(labels, -distance[:size])
    return out


def test_retrieval_against_loops(described, lists):
    pools = (10, 20, 40, 1000)
    got = retrieval(described, lists, pools)
    expected = slow_retrieval(described, lists, (10, 20, 40, 5 + len(lists.distractors)))
    assert got.mean["ap"] == pytest.approx(expected.mean(), abs=1e-6)
    for n, noise in enumerate(NOISES):
        assert got.by_noise[noise]["ap"] == pytest.approx(expected[:, n].mean(), abs=1e-6)
        assert list(got.detail[noise]) == ["10", "20", "40", str(5 + len(lists.distractors))]
        assert got.detail[noise]["20"]["ap"] == pytest.approx(expected[:, n, 1].mean(), abs=1e-6)
    kind = np.array([lists.sequences[s][0] for s in lists.queries[:, 0]]) == "i"
    assert got.by_type["illumination"]["ap"] == pytest.approx(expected[kind].mean(), abs=1e-6)


def test_retrieval_with_integer_ties_against_loops(lists):
    rng = np.random.default_rng(1)
    made = {key: rng.integers(0, 2, np.shape(value)) for key, value in one_hot(4).items()}
    got = retrieval(made, lists, (10, 40))
    assert got.mean["ap"] == pytest.approx(slow_retrieval(made, lists, (10, 40)).mean(), abs=1e-6)


@pytest.mark.parametrize("dims", [1, 3, 128, 238])
def test_constant_descriptors_score_chance(pairs, lists, dims):
    result = evaluate(constant(dims), pairs, lists)
    assert result["verification"].mean["ap"] == pytest.approx(1 / 6)
    assert result["verification"].mean["auc"] == 0.5
    expected = np.mean([1 / count for count in COUNTS.values()])
    assert result["matching"].mean["success"] == pytest.approx(expected)
    assert result["matching"].mean["ap"] < 0.01
    own = [np.sum(lists.distractors[:, 0] != s) for s in lists.queries[:, 0]]
    chance = np.mean([5 / (5 + others) for others in own])
    pool = str(5 + len(lists.distractors))
    for noise in NOISES:
        assert result["retrieval"].detail[noise][pool]["ap"] == pytest.approx(chance)
        assert result["retrieval"].detail[noise][pool]["ap_trapezoid"] < 2 * chance


def test_constant_descriptors_score_chance_in_large_matrices():
    """Of true width, where the products of equal vectors may differ in the last bit."""
    rng = np.random.default_rng(0)
    value = rng.normal(size=128).astype(np.float32)
    made = {(name, image): np.tile(value, (901, 1)) for name in ("i_a", "v_b") for image in IMAGES}
    task = draw_retrieval({name: np.ones(901, bool) for name in ("i_a", "v_b")})
    got = retrieval(made, task, (100,))
    assert got.mean["ap"] == pytest.approx(0.05)


def test_one_hot_descriptors(pairs, lists):
    exact = evaluate(one_hot(70), pairs, lists)
    assert exact["matching"].mean["ap"] == 1
    assert exact["verification"].detail["easy"]["intra"]["ap"] == 1
    shared = evaluate(one_hot(7), pairs, lists)
    # The first of each group of equal patches is right: 7 of N.
    expected = np.mean([7 / count for count in COUNTS.values()])
    assert shared["matching"].mean["success"] == pytest.approx(expected)
    assert shared["verification"].mean["ap"] < 0.7
    got = slow_retrieval(one_hot(7), lists, (5 + len(lists.distractors),)).mean()
    assert shared["retrieval"].mean["ap"] == pytest.approx(got, abs=1e-6)


def test_published_pools():
    distractors = np.stack([np.zeros(20_000, int), np.arange(20_000)], axis=1)
    task = RetrievalTask(("i_a", "v_b"), np.array([[1, 0]]), distractors)
    rng = np.random.default_rng(0)
    made = {("i_a", "ref"): rng.normal(size=(20_000, 4))}
    made |= {("v_b", image): np.zeros((1, 4)) for image in IMAGES}
    got = retrieval(made, task)
    assert list(got.detail["easy"]) == [str(size) for size in POOLS]
    assert got.mean["ap"] == 1


def test_results_are_plain(described, pairs, lists):
    for name, result in evaluate(described, pairs, lists, curves=5).items():
        assert result.task == name
        assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
        for key in ("ap", "ap_trapezoid"):
            noises = [scores[key] for scores in result.by_noise.values()]
            assert result.mean[key] == pytest.approx(np.mean(noises))


def test_errors_name_the_descriptors(described, pairs, lists):
    missing = {key: value for key, value in described.items() if key != ("v_wall", "h3")}
    for run in (
        lambda d: verification(d, pairs),
        lambda d: matching(d, list(COUNTS)),
        lambda d: retrieval(d, lists),
    ):
        with pytest.raises(ValueError, match=r"descriptors\['v_wall', 'h3'\]: there are none"):
            run(missing)
        bad = described["v_wall", "h3"].copy()
        bad[4, 2] = np.nan
        with pytest.raises(ValueError, match=r"descriptors\['v_wall', 'h3'\]\[4\] has NaN"):
            run({**described, ("v_wall", "h3"): bad})
    short = {**described, ("v_wall", "h3"): described["v_wall", "h3"][:-1]}
    for run in (lambda d: verification(d, pairs), lambda d: matching(d, list(COUNTS))):
        with pytest.raises(ValueError, match=r"expected shape \(70, 12\), got \(69, 12\)"):
            run(short)
    narrow = {**described, ("v_wall", "h3"): described["v_wall", "h3"][:, :5]}
    for run in (
        lambda d: verification(d, pairs),
        lambda d: matching(d, list(COUNTS)),
        lambda d: retrieval(d, lists),
    ):
        with pytest.raises(ValueError, match=r"\['v_wall', 'h3'\]: expected shape \(\w+, 12\)"):
            run(narrow)
    nothing = np.zeros((0, 2), np.int32)
    with pytest.raises(ValueError, match=r"task\.queries: expected at least one"):
        retrieval(described, RetrievalTask(lists.sequences, nothing, lists.distractors))
    with pytest.raises(ValueError, match=r"task\.distractors: expected at least one"):
        retrieval(described, RetrievalTask(lists.sequences, lists.queries, nothing))
    gone = {key: value[:3] for key, value in described.items()}
    with pytest.raises(ValueError, match="points past the end"):
        verification(gone, pairs)
    with pytest.raises(ValueError, match=r"expected more than \d+ rows, got 3"):
        retrieval(gone, lists)


def test_progress_is_told(described, lists):
    told = []
    matching(described, list(COUNTS), lambda *news: told.append(news))
    assert told == [("matching", done, len(COUNTS)) for done in range(1, len(COUNTS) + 1)]
    told.clear()
    retrieval(described, lists, progress=lambda *news: told.append(news))
    asking = len(set(lists.queries[:, 0]))
    assert told == [("retrieval", done, asking) for done in range(1, asking + 1)]


def test_verification_curves_against_scikit_learn(described, pairs):
    curves = verification(described, pairs, curves=5000).curves["hard"]["inter"]
    positive = -distances_of(described, pairs, pairs.positives, "h")
    negative = -distances_of(described, pairs, pairs.inter, "h")
    fpr, tpr, _ = roc_curve(
        np.arange(1000) < 500, np.concatenate([positive, negative]), drop_intermediate=False
    )
    np.testing.assert_allclose(curves["fpr"], fpr)
    np.testing.assert_allclose(curves["tpr"], tpr)
    # The first fifth of the positives alone.
    precision, recall, _ = precision_recall_curve(
        np.arange(600) < 100, np.concatenate([positive[:100], negative])
    )
    np.testing.assert_allclose(curves["recall"], recall[-2::-1])
    np.testing.assert_allclose(curves["precision"], precision[-2::-1])


@pytest.mark.parametrize("row", [(0, 0, 60, 1, 1, 0), (0, 0, 59, 1, 1, 70)])
def test_pairs_past_the_end_are_refused(described, pairs, row):
    task = replace(pairs, inter=np.array([row], np.int32))
    with pytest.raises(ValueError, match=r"task\.inter: a pair points past the end"):
        verification(described, task)


def test_matching_of_more_patches_than_a_block():
    rng = np.random.default_rng(3)
    reference = rng.normal(size=(2500, 3)).astype(np.float32)
    made = {("v_a", image): reference for image in IMAGES}
    order = rng.permutation(2500)
    order[-300:] = np.arange(2200, 2500)[::-1]  # an even number at the end, none in its place
    made["v_a", "h2"] = reference[order]
    got = matching(made, ["v_a"])
    assert got.detail["v_a"]["easy"]["success"] == [1] * 5
    right = (order == np.arange(2500)).mean()
    assert got.detail["v_a"]["hard"]["success"] == pytest.approx([1, right, 1, 1, 1])


def test_retrieval_of_more_queries_than_a_block():
    rng = np.random.default_rng(4)
    made = {}
    for name, count in (("i_a", 300), ("v_b", 40)):
        true = rng.normal(size=(count, 4))
        for image in IMAGES:
            noise = LEVELS[image[0]] * rng.normal(size=true.shape)
            made[name, image] = (true + noise).astype(np.float32)
    queries = np.stack([np.zeros(300, int), np.arange(300)], axis=1)
    distractors = np.stack([np.ones(40, int), np.arange(40)], axis=1)
    task = RetrievalTask(("i_a", "v_b"), queries, distractors)
    expected = slow_retrieval(made, task, (20, 45)).mean()
    assert retrieval(made, task, (20, 45)).mean["ap"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("minus", ["ref", "e1"])
@pytest.mark.parametrize("seed", range(5))  # sums of some round alike by chance
def test_minus_zero_is_zero(minus, seed):
    """Equal vectors are a tie, also where a zero has a sign."""
    value = np.random.default_rng(seed).normal(size=238).astype(np.float32)
    value[0] = 0
    made = {(name, image): np.tile(value, (200, 1)) for name in ("i_a", "v_b") for image in IMAGES}
    for (_, image), rows in made.items():
        if image[0] == minus[0]:
            rows[:, 0] = -0.0
    task = draw_retrieval({name: np.ones(200, bool) for name in ("i_a", "v_b")})
    got = retrieval(made, task, (50,))
    assert got.detail["easy"]["50"]["ap"] == pytest.approx(0.1)
