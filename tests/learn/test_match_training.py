"""Training on pairs of views, one step of which is known in closed form."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc._support.progress import no_progress  # noqa: E402
from mkdesc.heads.layers import add_hidden, layers_of  # noqa: E402
from mkdesc.heads.whitening import Whitening  # noqa: E402
from mkdesc.learn.match_losses import match_loss  # noqa: E402
from mkdesc.learn.match_pool import AT_ONCE, MatchBatch, MatchRecipe  # noqa: E402
from mkdesc.learn.match_training import train_matches  # noqa: E402
from mkdesc.learn.network import Network, softmax_loss, train_network  # noqa: E402

N, DIMS, RATE = 20, 6, 1e-3
#: The share of a step that is in the average after one.
AVERAGED = 10 / 11


@pytest.fixture
def layers(rng):
    X = rng.normal(size=(400, DIMS)) * np.arange(1, DIMS + 1)
    whitening = Whitening("pcawt", 4).fit(X, np.repeat(np.arange(200), 2))
    made = add_hidden(layers_of(whitening.learned(), whitening.statistics_.covariance), 7, rng)
    made.up[:] = rng.normal(size=made.up.shape)
    return made


class Pool:
    """Two pairs of views with the same keypoints, in noise."""

    def __init__(self, rng, pairs=2):
        self.recipe = MatchRecipe(pairs=pairs, batch=64, fresh=4, rate=RATE)
        self.photos = SimpleNamespace(device=torch.device("cpu"))
        self.renewed, self.asked, self.precisions = [], [], []
        first = rng.normal(size=(pairs, N, DIMS))
        both = np.stack([first, first + rng.normal(0, 0.3, first.shape)], axis=1)
        near = torch.eye(N, dtype=torch.bool).expand(pairs, N, N)
        pair, one = np.divmod(np.arange(pairs * N), N)
        self.made = MatchBatch(
            torch.from_numpy(both.astype(np.float32)),
            torch.ones(pairs, 2, N, dtype=torch.bool),
            torch.ones(pairs, N, dtype=torch.bool),
            near,
            torch.from_numpy(pair),
            torch.from_numpy(one),
            torch.from_numpy(one),
            ~torch.eye(pairs, dtype=torch.bool),
        )

    def batch(self, count):
        self.asked.append(count)
        self.precisions.append(torch.get_float32_matmul_precision())
        return self.made

    def renew(self, count):
        self.renewed.append(count)
        self.precisions.append(torch.get_float32_matmul_precision())


def change(before, after):
    """How far each weight of the projection and the hidden layer went."""
    names = ("direct", "down", "up")
    pairs = [(getattr(before, name), getattr(after, name)) for name in names]
    return np.concatenate([np.abs(one - other).ravel() for one, other in pairs])


def test_the_average_of_one_step(layers, rng):
    """Adam's first step is as long as the rate for every weight."""
    trained = train_matches(
        layers, Pool(rng), bits=False, steps=1, seconds=None, progress=no_progress
    )
    went = change(layers, trained.best)
    assert np.median(went) == pytest.approx(AVERAGED * RATE, rel=0.01)


def test_the_average_of_one_step_on_pairs(layers, rng):
    seen = rng.normal(size=(50, DIMS)).astype(np.float32)
    both = seen, -seen
    views = SimpleNamespace(points=50, batch=lambda size, rng: (seen[:size], -seen[:size]))
    how = {"rate": RATE, "loss": "softmax", "device": "cpu", "seed": 0}
    trained = train_network(
        layers,
        views,
        both,
        batch=30,
        **how,
        steps=1,
        seconds=None,
        progress=no_progress,
    )
    with torch.no_grad():  # what is kept is what was checked
        loss = softmax_loss(
            *(Network(trained.best, "cpu")(one) for one in map(torch.tensor, both))
        )
    assert float(loss) == pytest.approx(trained.loss, rel=1e-5)
    assert trained.loss < trained.first_loss
    went = change(layers, trained.best)
    assert np.median(went) == pytest.approx(AVERAGED * RATE, rel=0.01)


@pytest.mark.parametrize("bits", [False, True])
def test_more_matches_are_right(layers, rng, bits, monkeypatch):
    pool, said, described = Pool(rng), [], []

    def watched(vectors, *more):
        described.append(vectors.detach().abs())
        return match_loss(vectors, *more)

    monkeypatch.setattr("mkdesc.learn.match_training.match_loss", watched)
    train_matches(
        layers,
        pool,
        bits=bits,
        steps=150,
        seconds=None,
        progress=lambda what, *_: said.append(float(what.split()[1].rstrip("%"))),
    )
    if bits:
        torch.testing.assert_close(described[-1], torch.full_like(described[-1], 0.5))
    else:
        assert said[-1] > said[0]
    assert set(pool.asked) == {2}  # the pool has no more
    assert pool.renewed == [AT_ONCE] * (150 * 4 // AT_ONCE)


def test_products_are_fast_in_losses_alone(layers, rng):
    """Places of keypoints would be wrong by pixels."""
    pool = Pool(rng)
    train_matches(layers, pool, bits=False, steps=4, seconds=None, progress=no_progress)
    assert pool.precisions == ["high"] * 4 + ["highest"]
    assert torch.get_float32_matmul_precision() == "highest"
