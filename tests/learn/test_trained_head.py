"""Training of heads, on a CPU and in seconds."""

import numpy as np
import pytest

from mkdesc import MKD, load_model
from mkdesc.heads.whitening import Whitening
from mkdesc.learn import TrainingBlock, learn_model, learn_photos, trained_head
from mkdesc.learn.photos import FreshPhotos, Recipe, list_photos, photo_blocks
from mkdesc.learn.trained_head import TrainedHead, split_points
from mkdesc.learn.views import FixedViews, FreshViews, Replacement
from mkdesc.measures.ranking import fpr95

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    """Small products are slower with several, above all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def opposites(rng, points=300):
    """A point is seen as x or as -x: a linear map keeps these as far apart as can be."""
    seen = unit(rng.normal(size=(points, 5)))
    X = np.concatenate([seen, -seen]) + rng.normal(0, 0.03, (2 * points, 5))
    return X, np.tile(np.arange(points), 2)


def noisy(rng, points=300):
    """Points seen twice, in noise that is not the same in all directions."""
    seen = np.tile(rng.normal(size=(points, 5)), (2, 1))
    X = seen + rng.normal(0, 1, seen.shape) * [0.1, 0.2, 0.4, 0.6, 0.8]
    return X, np.tile(np.arange(points), 2)


def error_rate(Z):
    first, second = np.split(Z, 2)
    distance = np.linalg.norm(first[:, None] - second[None], axis=-1)
    return fpr95(-distance.ravel(), np.eye(len(first), dtype=bool).ravel())


def test_hardest_loss_is_the_double_loop(rng):
    from mkdesc.learn.network import hardest_loss

    x = unit(rng.normal(size=(12, 4)))
    y = unit(x + rng.normal(0, 0.4, x.shape))
    y[5] = unit(x[3:4] + 1e-5)[0]  # the place of another pair, detected twice
    losses = []
    for i in range(12):
        others = []
        for j in range(12):
            if j != i:
                for a, b in ((x[i], y[j]), (x[j], y[i])):
                    if a @ b <= 0.999:
                        others.append(np.linalg.norm(a - b))
        losses.append(max(0, 1 + np.linalg.norm(x[i] - y[i]) - min(others)))
    found = hardest_loss(torch.from_numpy(x), torch.from_numpy(y))
    assert float(found) == pytest.approx(np.mean(losses), abs=1e-6)


def test_softmax_loss_is_the_double_loop(rng):
    from mkdesc.learn.network import TEMPERATURE, softmax_loss

    x = unit(rng.normal(size=(9, 4)))
    y = unit(x + rng.normal(0, 0.4, x.shape))
    y[5] = unit(x[3:4] + 1e-5)[0]
    total = 0.0
    for a, b in ((x, y), (y, x)):
        for i in range(9):
            cosines = [a[i] @ b[j] for j in range(9) if j == i or a[i] @ b[j] <= 0.999]
            weights = np.exp(np.array(cosines) / TEMPERATURE)
            total -= np.log(np.exp(a[i] @ b[i] / TEMPERATURE) / weights.sum())
    found = softmax_loss(torch.from_numpy(x), torch.from_numpy(y))
    assert float(found) == pytest.approx(total / 18, rel=1e-5)


def test_a_network_is_its_head(rng):
    from mkdesc.heads.layers import add_hidden, layers_of
    from mkdesc.learn.network import Network

    X, y = opposites(rng)
    whitening = Whitening("pcawt", 4, power=0.75).fit(X, y)
    layers = add_hidden(layers_of(whitening.learned(), whitening.statistics_.covariance), 7, rng)
    layers.up[:] = rng.normal(size=layers.up.shape)
    layers.threshold[:] = rng.normal(size=7)
    found = Network(layers, "cpu")(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(found, layers.head().apply(X), atol=1e-5)


def test_a_hidden_layer_learns_what_no_linear_map_can(rng):
    X, y = opposites(rng)
    how = {"steps": 400, "batch": 256, "loss": "hardest", "device": "cpu"}
    how["whitening"] = Whitening("pcawt", 5)
    linear = TrainedHead("linear", **how).fit(X, y)
    hidden = TrainedHead("mlp", 64, **how).fit(X, y)
    assert error_rate(linear.transform(X)) > 0.9
    assert error_rate(hidden.transform(X)) < 0.5
    assert hidden.trained_.loss < hidden.trained_.first_loss
    assert hidden.head_.dims_out == 5


def tiny(**more):
    how = {"hidden": 8, "steps": 20, "batch": 64, "device": "cpu", "whitening": Whitening("lw", 4)}
    return TrainedHead(**(how | more))


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("loss", ["softmax", "hardest"])
def test_the_same_seed_gives_the_same_head(rng, loss, rank):
    X, y = noisy(rng)
    one, two, other = (tiny(loss=loss, rank=rank, seed=s).fit(X, y).head_ for s in (3, 3, 4))
    np.testing.assert_array_equal(one.apply(X), two.apply(X))
    assert np.abs(one.apply(X) - other.apply(X)).max() > 1e-3
    assert str(one) == ("5 -> 12" if rank is None else "5 -> 4, 4 -> 12") + ", relu 4, 12 -> 4, l2"


def test_interrupted_it_is_the_best_until_then(rng):
    X, y = opposites(rng)
    steps = []

    def interrupt(what, done, total):
        steps.append((done, total))
        assert what.startswith("training: loss ")
        if done >= 150:
            raise KeyboardInterrupt

    head = tiny(steps=1000, hidden=32, whitening=Whitening("pcawt", 5)).fit(X, y, interrupt)
    assert head.trained_.interrupted
    assert head.trained_.steps == 150
    assert steps[-1] == (150, 1000)
    assert head.trained_.loss < head.trained_.first_loss
    assert not tiny().fit(X, y).trained_.interrupted


def test_training_that_makes_it_worse_changes_nothing(rng, monkeypatch):
    """Steps that are far too large: what it began with was the best, however many there are."""
    X, y = noisy(rng)
    monkeypatch.setitem(trained_head.KINDS, "mlp", 30.0)
    few, many = (tiny(steps=steps).fit(X, y) for steps in (20, 40))
    for head in (few, many):
        assert head.trained_.loss == head.trained_.first_loss
    np.testing.assert_array_equal(few.head_.apply(X), many.head_.apply(X))


def test_minutes_end_it_too(rng):
    X, y = opposites(rng)
    head = tiny(steps=None, seconds=0.3).fit(X, y)
    assert head.trained_.steps >= 1


def test_going_on_from_a_head(rng):
    X, y = opposites(rng)
    first = tiny(steps=60, hidden=32, whitening=Whitening("pcawt", 5)).fit(X, y)
    again = tiny(steps=60, start=first.head_, whitening=first.whitening).fit(X, y)
    assert again.trained_.first_loss == pytest.approx(first.trained_.loss, abs=1e-4)
    assert again.trained_.loss < first.trained_.loss
    assert again.trained_.best.hidden == 32
    with pytest.raises(ValueError, match="start: expected a linear head"):
        tiny(kind="linear", start=first.head_).fit(X, y)
    with pytest.raises(ValueError, match="start: takes 5 numbers, the descriptors have 3"):
        tiny(start=first.head_).fit(X[:, :3], y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "cnn"}, "kind: expected one of mlp, linear, got 'cnn'"),
        ({"hidden": 0}, "hidden: expected an integer >= 1, got 0"),
        ({"rank": 0}, "rank: expected an integer >= 1 or None, got 0"),
        ({"steps": 0}, "steps: expected an integer >= 1 or None, got 0"),
        ({"batch": 1}, "batch: expected an integer >= 2 or None, got 1"),
        ({"seconds": -1}, "seconds: expected a number > 0 or None, got -1"),
        ({"loss": "l1"}, "loss: expected one of softmax, hardest, got 'l1'"),
        ({"device": "abacus"}, "device: expected cpu, cuda, cuda:1, ..., got 'abacus'"),
        ({"device": 3}, "device: expected text, got 3"),
        ({"seed": -1}, "seed: expected an integer >= 0, got -1"),
        ({"whitening": "gda"}, "whitening: expected a Whitening or None, got 'gda'"),
        ({"start": "gda"}, "start: expected a Head or None, got 'gda'"),
    ],
)
def test_bad_parameters(rng, parameters, message):
    with pytest.raises(ValueError, match=message):
        tiny(**parameters).fit(*opposites(rng))


def test_bad_data(rng):
    X, y = opposites(rng)
    with pytest.raises(ValueError, match=r"y: expected \(600,\), got \(5,\)"):
        tiny().fit(X, y[:5])
    with pytest.raises(ValueError, match="y: expected at least two labels, got 1"):
        tiny().fit(X, np.zeros(600, int))
    with pytest.raises(ValueError, match="too few points to train on"):
        tiny().fit(X[[0, 1, 300, 301]], y[[0, 1, 300, 301]])
    with pytest.raises(ValueError, match=r"X.* has NaN"):
        tiny().fit(np.where(X > 0.9, np.nan, X), y)


def test_nothing_learned_yet(rng):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="call fit first"):
        tiny().transform(np.zeros((2, 5)))


def test_without_torch(rng, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'mkdesc\[torch\]'"):
        tiny().fit(*opposites(rng))


def test_clones(rng):
    from sklearn.base import clone

    head = tiny(seed=5)
    assert clone(head).get_params(deep=False).keys() == head.get_params(deep=False).keys()
    assert clone(head).seed == 5


def test_points_are_split_whole(rng):
    point_of = rng.permutation(np.repeat(np.arange(100), 3))
    point_of[:20] = np.arange(100, 120)  # seen once: nothing to check with
    training, checking = split_points(point_of, np.arange(300), 0)
    assert sorted([*training, *checking]) == list(range(300))
    assert not set(point_of[training]) & set(point_of[checking])
    assert set(point_of[checking]) <= set(range(100))


def test_points_that_are_seen_once_check_nothing():
    """Nearly all are; what checks the training are two of the ten that are not."""
    point_of = np.concatenate([np.repeat(np.arange(10), 2), np.arange(10, 400)])
    _, checking = split_points(point_of, np.arange(len(point_of)), 0)
    points, counts = np.unique(point_of[checking], return_counts=True)
    assert counts.tolist() == [2, 2]
    assert points.max() < 10


def test_pairs_are_two_views_of_a_point(rng):
    point_of = np.repeat(np.arange(30), rng.integers(1, 5, 30))
    raw = np.stack([point_of, np.arange(len(point_of))], axis=1).astype(np.float32)
    rows = np.flatnonzero(point_of % 3 > 0)
    views = FixedViews(raw, point_of, rows)
    several = {p for p in range(30) if (point_of == p).sum() > 1 and p % 3}
    assert views.points == len(several)
    seen = set()
    for _ in range(50):
        first, second = views.batch(8, rng)
        np.testing.assert_array_equal(first[:, 0], second[:, 0])
        assert (first[:, 1] != second[:, 1]).all()
        assert len(set(first[:, 0])) == 8
        seen |= set(first[:, 0])
    assert seen == several


def test_fresh_views_come_in_order_and_leave_others_alone(rng):
    point_of = np.repeat(np.arange(20), 2)
    raw = np.zeros((40, 3), np.float32)
    rows = np.arange(4, 40)

    def make(number):
        return Replacement(10 * (number % 4), np.full((10, 3), number + 1, np.float32))

    views = FreshViews(raw, point_of, rows, make, threads=3)
    views.rate = 0.5
    for _ in range(5):
        views.batch(18, rng)  # 18 new views, on average
    views.close()
    assert not raw[:4].any()
    assert set(raw[4:, 0]) == {6, 7, 8, 9}  # the ninth replaced the fifth


@pytest.fixture
def photos(tmp_path, rng):
    import cv2

    for k in range(3):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (160, 200), np.uint8), (0, 0), 2)
        noise = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
        cv2.imwrite(str(tmp_path / f"{k}.png"), noise)
    return tmp_path


def fresh_photos(photos):
    recipe = Recipe(views=("plain", "easy", "hard"), keypoints_per_photo=12, patch_size=16)
    fresh = FreshPhotos(list_photos(photos), recipe, seed=0)
    made = list(photo_blocks(photos, recipe, seed=0, n_threads=1))
    fresh.frames.update({block.index: block.frames for block in made})
    return fresh, np.concatenate([block.patches for block in made])


def test_photographs_come_in_rounds_and_never_the_same(photos):
    fresh, patches = fresh_photos(photos)
    starts, counts = [], []
    for number in range(6):
        first, again = fresh.patches(number)
        starts.append(first)
        counts.append(len(again))
        before = patches[first : first + len(again)]
        np.testing.assert_array_equal(again[::3], before[::3])  # the plain ones
        assert (again[1::3] != before[1::3]).any()
        assert (fresh.patches(number)[1] == again).all()
    assert sorted(starts[:3]) == sorted(starts[3:]) == [0, *np.cumsum(sorted(counts[:3]))[:2]]
    assert (fresh.patches(0)[1][1::3] != fresh.patches(starts.index(starts[0], 1))[1][1::3]).any()


def test_views_on_a_device_are_those_of_the_cpu(photos, rng):
    """The device is the CPU here; what is computed is the same."""
    from mkdesc.learn.device_views import DeviceViews

    fresh, patches = fresh_photos(photos)
    mkd = MKD("cartesian", 16, n_threads=2)
    raw = mkd.transform(patches)
    point_of, rows = np.repeat(np.arange(len(raw) // 3), 3), np.arange(len(raw))
    here = FreshViews(
        raw.copy(),
        point_of,
        rows,
        lambda k: Replacement(fresh.patches(k)[0], mkd.transform(fresh.patches(k)[1])),
        2,
    )
    there = DeviceViews(raw, point_of, rows, fresh, mkd, torch.device("cpu"))
    there.rate = here.rate
    for _ in range(3):
        one = here.batch(10, np.random.default_rng(1))
        two = there.batch(10, np.random.default_rng(1))
        for a, b in zip(one, two, strict=True):
            assert b.dtype == torch.float16
            np.testing.assert_allclose(b.float().numpy(), a, atol=0.02)
    assert np.abs(here.raw - raw).max() > 0.1  # some are new
    here.close()
    there.close()


def test_learning_from_photographs_is_reproducible(photos):
    mkd = MKD("cartesian", 16, n_threads=2)
    recipe = Recipe(views=("plain", "easy", "hard"), keypoints_per_photo=40, patch_size=16)
    whitening = Whitening("gda", 8, ridge=1e-2)
    models = []
    for threads in (1, 2):
        mkd.set_params(n_threads=threads)
        trained = tiny(whitening=None, batch=32)
        learned = learn_photos(photos, mkd, whitening=whitening, recipe=recipe, trained=trained)
        models.append(learned.mkd.head)
    raw = np.random.default_rng(0).normal(size=(5, models[0].dims_in))
    np.testing.assert_array_equal(models[0].apply(raw), models[1].apply(raw))


def test_learning_a_model_with_a_trained_head(rng, tmp_path):
    points = np.repeat(rng.random((150, 12, 12)), 3, axis=0)
    patches = np.clip(points + rng.normal(0, 0.1, points.shape), 0, 1).astype(np.float32)
    block = TrainingBlock(patches, np.repeat(np.arange(150), 3))
    told = []
    learned = learn_model(
        [block],
        MKD("cartesian", 12),
        whitening=Whitening("gda", 16, ridge=1e-3),
        trained=tiny(whitening=None),
        progress=lambda *news: told.append(news),
    )
    assert told[-1][1:] == (20, 20)
    assert learned.mkd.head.dims_out == 16
    assert "% linear" in learned.report.lines()[-1]
    assert "% trained" in learned.report.lines()[-1]
    card = learned.with_source("noise").save(tmp_path / "m.safetensors")
    facts = {"head": "mlp", "hidden": 8, "steps": 20, "began_as": "gda", "interrupted": False}
    assert facts.items() <= card.learned_from.items()
    again = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(patches), learned.mkd.transform(patches))
