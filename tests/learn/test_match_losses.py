"""What is asked of descriptors, against the same in plain loops."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc.learn.match_losses import as_bits, match_loss  # noqa: E402
from mkdesc.learn.match_pool import MatchBatch, MatchRecipe  # noqa: E402

B, N = 3, 6


@pytest.fixture
def batch(rng):
    partner = np.full((B, N), -1)
    partner[0, [0, 2]], partner[1, 1], partner[2, [3, 4]] = [1, 5], 0, [2, 3]
    used = rng.random((B, 2, N)) < 0.8
    pair, one = np.nonzero(partner >= 0)
    two = partner[pair, one]
    used[pair, 0, one] = used[pair, 1, two] = True
    near = rng.random((B, N, N)) < 0.1
    near[pair, one, two] = True
    scene = np.array([0, 0, 1])
    arrays = (
        rng.normal(size=(B, 2, N, 4)),
        used,
        rng.random((B, N)) < 0.7,
        near,
        pair,
        one,
        two,
        scene[:, None] != scene,
    )
    return MatchBatch(*map(torch.from_numpy, arrays))


def softmax(values):
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def by_loops(vectors, batch, temperature, sharper, cost):
    used, near, apart = (part.numpy() for part in (batch.used, batch.near, batch.apart))
    matches = list(zip(*(part.tolist() for part in batch[4:7]), strict=True))
    logs = [[], []]
    for b, i, j in matches:
        for way, (mine, target) in enumerate(((i, j), (j, i))):
            scores, right = [], None
            for c in range(B):
                for k in range(N):
                    close = near[b, mine, k] if way == 0 else near[b, k, mine]
                    if (c, k) == (b, target):
                        right = len(scores)
                    elif not used[c, 1 - way, k] or (close if c == b else not apart[b, c]):
                        continue
                    scores.append(vectors[b, way, mine] @ vectors[c, 1 - way, k] / temperature)
            logs[way].append(-np.log(softmax(np.array(scores))[right]))
    balance = 0.0
    for b in range(B):
        first, second = np.flatnonzero(used[b, 0]), np.flatnonzero(used[b, 1])
        table = vectors[b, 0, first] @ vectors[b, 1, second].T / sharper
        mutual = np.apply_along_axis(softmax, 1, table) * np.apply_along_axis(softmax, 0, table)
        for x, i in enumerate(first):
            for y, j in enumerate(second):
                if (b, i, j) in matches:
                    balance -= mutual[x, y]
                if not near[b, i, j] and batch.known[b, i]:
                    balance += mutual[x, y]
    return (np.mean(logs[0]) + np.mean(logs[1])) / 2 + cost * balance / len(matches)


@pytest.mark.parametrize("cost", [0.0, 2.0])
def test_the_loss_by_loops(batch, cost):
    vectors = torch.nn.functional.normalize(batch.raw, dim=-1)
    expected = by_loops(vectors.numpy(), batch, 0.3, 0.2, cost)
    found = match_loss(
        vectors, batch, MatchRecipe(temperature=0.3, mutual_temperature=0.2, mutual=cost)
    )
    np.testing.assert_allclose(float(found), expected, rtol=1e-6)


def test_bits_are_signs_and_gradients_pass():
    numbers = torch.tensor([[0.3, -0.2, 0.0, -4.0]], requires_grad=True)
    bits = as_bits(numbers)
    np.testing.assert_allclose(bits.detach(), [[0.5, -0.5, 0.5, -0.5]], atol=1e-7)
    bits.backward(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert numbers.grad.tolist() == [[1.0, 2.0, 3.0, 4.0]]
