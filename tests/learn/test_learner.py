from dataclasses import dataclass

import numpy as np
import pytest

from mkdesc import MKD, load_model
from mkdesc.heads.whitening import Whitening
from mkdesc.learn import TrainedHead, TrainingBlock, learn_model
from mkdesc.learn import shards as module
from mkdesc.learn.shards import held_out


@pytest.fixture
def data(rng):
    points = np.repeat(rng.random((300, 12, 12)), 3, axis=0)
    patches = np.clip(points + rng.normal(0, 0.1, points.shape), 0, 1).astype(np.float32)
    return patches, np.repeat(np.arange(300), 3)


@pytest.fixture
def mkd():
    return MKD("cartesian", 12)


@dataclass
class InBlocks:
    """One shard: labels may be in several of its blocks."""

    patches: np.ndarray
    labels: np.ndarray
    size: int
    pairs: tuple | None = None

    def blocks(self):
        for start in range(0, len(self.patches), self.size):
            rows = slice(start, start + self.size)
            yield TrainingBlock(self.patches[rows], self.labels[rows])


@pytest.mark.parametrize("method", ["gda", "pcawt"])
def test_blocks_and_order_do_not_matter(data, mkd, rng, monkeypatch, method):
    patches, labels = data
    whole = learn_model([TrainingBlock(*data)], mkd, whitening=Whitening(method, 16, power=0.75))
    monkeypatch.setattr(module, "ROWS", 50)
    shuffled = rng.permutation(len(patches))
    parts = learn_model(
        [InBlocks(patches[shuffled], labels[shuffled], 77)],
        mkd,
        whitening=Whitening(method, 16, power=0.75),
    )
    np.testing.assert_allclose(
        parts.mkd.transform(patches), whole.mkd.transform(patches), atol=1e-4
    )
    assert parts.report.pairs == whole.report.pairs


def test_it_is_the_whitening_of_what_is_not_held_out(data, mkd):
    patches, labels = data
    learned = learn_model([TrainingBlock(*data)], mkd, whitening=Whitening("lw", 16))
    kept = ~held_out(labels)
    expected = Whitening("lw", 16).fit(mkd.transform(patches[kept]), labels[kept])
    np.testing.assert_allclose(
        learned.mkd.transform(patches), expected.transform(mkd.transform(patches)), atol=1e-4
    )
    report = learned.report
    held = 300 - kept.sum() // 3
    assert 10 < held < 60
    assert (report.patches, report.points, report.pairs) == (900, 300, (300 - held) * 3)
    assert report.held_out_pairs == held * 2
    assert report.fpr95_learned <= report.fpr95_raw


def test_pairs_instead_of_labels(data, mkd):
    patches, labels = data
    first = np.arange(0, len(patches), 3)
    shard = InBlocks(patches, labels, 500, (first, first + 1))
    learned = learn_model([shard], mkd, whitening=Whitening("lw", 16, power=0.75))
    assert learned.report.pairs == (~held_out(np.arange(300))).sum()
    kept = np.flatnonzero(~held_out(labels))
    where = {row: k for k, row in enumerate(kept)}
    used = [(where[i], where[i + 1]) for i in first if i in where]
    expected = Whitening("lw", 16, power=0.75).fit(
        mkd.transform(patches[kept]), pairs=tuple(np.array(used).T)
    )
    np.testing.assert_allclose(
        learned.mkd.transform(patches), expected.transform(mkd.transform(patches)), atol=1e-4
    )


def state(mkd):
    """Parameters, and whether the whitening has learned anything."""
    return mkd.get_params(), [sorted(vars(w)) for w in (mkd.whitening,) if w is not None]


@pytest.mark.parametrize("fitted", [False, True])
def test_what_is_passed_in_stays_as_it_is(data, fitted):
    patches, labels = data
    whitening = Whitening("lw", 16)
    if fitted:
        whitening.fit(np.random.default_rng(0).normal(size=(300, 63)), np.arange(300) // 2)
    mkd = MKD("cartesian", 12, whitening if fitted else None, output="int8")
    before = state(mkd), sorted(vars(whitening))
    head = whitening.learned() if fitted else None
    learned = learn_model([TrainingBlock(patches, labels)], mkd, whitening=whitening)
    assert (state(mkd), sorted(vars(whitening))) == before
    assert learned.mkd.whitening is not whitening
    if fitted:
        assert whitening.learned() is head


def test_saved_with_its_source(data, mkd, tmp_path):
    learned = learn_model([TrainingBlock(*data)], mkd, whitening=Whitening("gda", 8)).with_source(
        "noise"
    )
    card = learned.save(tmp_path / "m.safetensors")
    assert card.learned_from["source"] == "noise"
    assert card.learned_from["points"] == 300
    assert card.side is None
    again = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(data[0]), learned.mkd.transform(data[0]))


def test_too_few_points_for_a_score(data, mkd):
    patches, labels = data
    block = TrainingBlock(patches[:15], labels[:15])
    report = learn_model([block], mkd, whitening=Whitening("gda", 4, ridge=0.1)).report
    assert np.isnan(report.fpr95_learned)
    assert "too few points" in report.lines()[-1]


def test_bad_blocks_are_refused(data, mkd):
    patches, labels = data
    with pytest.raises(ValueError, match="no patches to learn from"):
        learn_model([], mkd)
    with pytest.raises(ValueError, match=r"labels: expected one per patch, \(900,\), got \(5,\)"):
        learn_model([TrainingBlock(patches, labels[:5])], mkd)
    patches[450, 0, 0] = np.nan
    with pytest.raises(ValueError, match=r"patches\[450\] has NaN"):
        learn_model([InBlocks(patches, labels, 400)], mkd)


def test_a_label_in_two_shards_is_refused(data, mkd):
    patches, labels = data
    halves = [TrainingBlock(patches[one::2], labels[one::2]) for one in (0, 1)]
    with pytest.raises(ValueError, match="shards: expected each label in one of them"):
        learn_model(halves, mkd)


def test_heads_are_trained_on_several_shards_as_on_one(data, mkd):
    pytest.importorskip("torch")
    patches, labels = data
    rows = slice(0, 450), slice(450, 900)
    halves = [TrainingBlock(patches[half], labels[half]) for half in rows]
    trained = TrainedHead("linear", steps=3, batch=32, device="cpu")
    one, two = (
        learn_model(shards, mkd, whitening=Whitening("gda", 16), trained=trained)
        for shards in ([TrainingBlock(*data)], halves)
    )
    assert (two.report.patches, two.report.steps) == (900, 3)
    np.testing.assert_allclose(two.mkd.transform(patches), one.mkd.transform(patches), atol=1e-3)
