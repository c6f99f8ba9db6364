import numpy as np
import pytest

from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.heads.layers import add_hidden, layers_of, reduced


def affine(rng, rows, columns):
    return Affine(
        rng.normal(size=(rows, columns)), rng.normal(size=rows) / 9, rng.normal(size=columns) / 9
    )


def heads(rng):
    before = (Power(0.75), L2())
    into, project = affine(rng, 20, 9), affine(rng, 9, 6)
    both, last = affine(rng, 9, 6 + 11), affine(rng, 6 + 11, 6)
    wide = affine(rng, 20, 6 + 11)
    return {
        "linear": Head((*before, affine(rng, 20, 6), L2())),
        "hidden": Head((*before, wide, Relu(6), last, L2())),
        "linear in a basis": Head((*before, into, project, L2())),
        "hidden in a basis": Head((*before, into, both, Relu(6), last, L2())),
    }


@pytest.fixture
def data(rng):
    x = rng.normal(size=(50, 20)).astype(np.float32)
    spread = rng.normal(size=(20, 20))
    return x, spread @ spread.T


@pytest.mark.parametrize("kind", heads(np.random.default_rng(0)))
def test_heads_survive_the_way_to_layers_and_back(rng, data, kind):
    head = heads(rng)[kind]
    x, covariance = data
    layers = layers_of(head, covariance)
    assert layers.hidden == (11 if "hidden" in kind else 0)
    assert (layers.basis is None) == ("basis" not in kind)
    np.testing.assert_allclose(layers.head().apply(x), head.apply(x), atol=2e-5)


@pytest.mark.parametrize("kind", heads(np.random.default_rng(0)))
def test_layers_are_what_they_say(rng, data, kind):
    """The formula at the top of the module, in double precision."""
    head = heads(rng)[kind]
    x, covariance = data
    layers = layers_of(head, covariance)
    z = L2().apply(Power(0.75).apply(x)).astype(np.float64) - layers.mean
    if layers.basis is not None:
        z = z @ layers.basis
        covariance = layers.basis.T @ covariance @ layers.basis
    inner = np.maximum((z / layers.scale) @ layers.down + layers.threshold, 0)
    y = z @ layers.direct + inner @ layers.up + layers.offset
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    np.testing.assert_allclose(head.apply(x), y, atol=2e-5)
    np.testing.assert_allclose(layers.scale**2, np.diag(covariance), rtol=1e-4)
    square = np.trace(layers.direct.T @ covariance @ layers.direct)
    assert square == pytest.approx(1, rel=1e-4)


def test_hidden_units_and_a_basis_add_nothing_at_first(rng, data):
    x, covariance = data
    head = heads(rng)["linear"]
    more = add_hidden(layers_of(head, covariance), 7, rng).head()
    assert str(more) == "power 0.75, l2, 20 -> 13, relu 6, 13 -> 6, l2"
    np.testing.assert_allclose(more.apply(x), head.apply(x), atol=1e-5)
    fewer = layers_of(reduced(head, 4), covariance).head()
    four = Head(
        (
            *head.stages[:2],
            Affine(head.stages[2].matrix[:, :4], head.stages[2].centre, head.stages[2].offset[:4]),
            L2(),
        )
    )
    np.testing.assert_allclose(fewer.apply(x), four.apply(x), atol=1e-5)


@pytest.mark.parametrize(
    "stages",
    [
        (Affine(np.eye(4)), Power(0.5), L2()),
        (Affine(np.eye(4)), Relu(1), Affine(np.eye(4)), L2()),
        (Relu(1), Affine(np.eye(4)), L2()),
    ],
)
def test_other_heads_are_refused(stages):
    with pytest.raises(ValueError, match="head: expected"):
        layers_of(Head(stages), np.eye(4))


def test_a_projection_to_nothing_is_refused():
    with pytest.raises(ValueError, match="maps all descriptors to the same one"):
        layers_of(Head((Affine(np.zeros((4, 2))), L2())), np.eye(4))
