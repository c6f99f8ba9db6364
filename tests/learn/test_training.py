"""The loop that trains: learning rate, decay, which result is kept, news, Ctrl-C."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc._support.progress import no_progress  # noqa: E402
from mkdesc.learn.training import NEWS, Training, train  # noqa: E402

#: Steps over which the learning rate rises, unless a tenth of all is fewer.
WARM_UP = 200


class Falling:
    """A number that falls: by AdamW, steps for a gradient of 1 are as long as the rate."""

    def __init__(self, start=0.0, **more):
        self.number = torch.tensor([start], requires_grad=True)
        self.seen = [start]
        self.shares = []
        how = {"rate": 0.5, "decay": 0.0, "stepped": self.stepped, **more}
        self.training = Training([self.number], self.loss, self.result, lambda: "news", **how)

    def loss(self, share):
        self.shares.append(share)
        return self.number.sum()

    def stepped(self, steps):
        self.seen.append(float(self.number.detach()))
        assert steps == len(self.seen) - 1

    def result(self):
        return len(self.seen) - 1

    def train(self, steps, progress=no_progress):
        return train(self.training, steps=steps, seconds=None, progress=progress)


@pytest.mark.parametrize("steps", [1, 40, 3000])
def test_the_learning_rate_rises_in_a_tenth_and_falls_as_a_cosine(steps):
    falling = Falling()
    falling.train(steps)
    number = np.arange(steps)
    warm = np.minimum(1, (number + 1) / min(WARM_UP, max(1, steps / 10)))
    rates = 0.5 * warm * (1 + np.cos(np.pi * number / steps)) / 2
    np.testing.assert_allclose(-np.diff(falling.seen), rates, rtol=1e-2, atol=2e-4)
    np.testing.assert_allclose(falling.shares, number / steps)


def test_decay():
    """Beside what the gradient does, weights become smaller by the rate times the decay."""
    falling = Falling(2.0, decay=0.1)
    falling.train(1)
    np.testing.assert_allclose(falling.seen, [2, 2 * (1 - 0.5 * 0.1) - 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("losses", "best", "first"),
    [
        ([3, 1, 2, 5, 4], 1, 3),
        ([1, 3, 2, 5, 4], 0, 1),
        ([5, 4, 3, 2, 1], 4, 5),
        ([2, 2, 2, 2, 2], 0, 2),
        ([3, math.nan, 2, math.inf, 4], 2, 3),
    ],
)
def test_the_result_of_the_least_loss_is_kept(losses, best, first):
    left = iter(losses)
    falling = Falling(check=lambda: next(left), checks=4)
    trained = falling.train(8)
    assert list(left) == []  # in the beginning, and four times
    assert trained.best == 2 * best
    assert (trained.loss, trained.first_loss, trained.steps) == (losses[best], first, 8)
    assert not trained.interrupted


def test_without_a_check_the_last_result_is_kept():
    assert Falling().train(7).best == 7


def test_news_at_times_and_in_the_end():
    said = []
    Falling().train(2 * NEWS + 5, lambda *news: said.append(news))
    assert [done for _, done, _ in said] == [NEWS, 2 * NEWS, 2 * NEWS + 5]
    assert {total for *_, total in said} == {2 * NEWS + 5}
    assert all(what.startswith("training: news, ") for what, *_ in said)


@pytest.mark.parametrize(("now", "best"), [(0.5, 3 * NEWS), (2.0, 0)])
def test_control_c_keeps_the_best_until_then(now, best):
    def tell(what, done, total):
        if done == 3 * NEWS:
            raise KeyboardInterrupt

    left = iter([1.0, now])
    trained = Falling(check=lambda: next(left), checks=2).train(1000, tell)
    assert trained.interrupted
    assert (trained.best, trained.steps) == (best, 3 * NEWS)
    assert Falling().train(1000, tell).best == 3 * NEWS


def test_seconds_end_it_too():
    trained = train(Falling().training, steps=None, seconds=0.05, progress=no_progress)
    assert 0.05 <= trained.seconds < 5
    assert trained.best == trained.steps > 0


def test_losses_and_gradients_are_within():
    """What changes the precision of products does so for them, and for nothing else."""
    inside = []

    class Within:
        def __enter__(self):
            inside.append(True)

        def __exit__(self, *error):
            inside.pop()

    class Watched(Falling):
        def loss(self, share):
            assert inside
            found = super().loss(share)
            found.register_hook(lambda gradient: self.shares.append(len(inside)))
            return found

        def stepped(self, steps):
            assert not inside

    watched = Watched(within=Within)
    watched.train(1)
    assert watched.shares == [0.0, 1]
