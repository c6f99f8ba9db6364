from itertools import pairwise

import numpy as np
import pytest

from mkdesc.compute.cpu.backend import compile_head
from mkdesc.compute.cpu.head import make_stages
from mkdesc.heads.head import L2, Affine, Head, Power, Relu


def through(head, raw):
    out = np.full((len(raw), head.dims_out), np.nan, np.float32)
    compile_head()(raw, make_stages(head), out)
    return out


def affine(rng, rows, columns):
    scale = 1 / np.sqrt(rows)
    return Affine(
        scale * rng.normal(size=(rows, columns)),
        rng.normal(size=rows) / 10,
        rng.normal(size=columns) / 10,
    )


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 33])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 5, 2), (16, 4), (17, 33, 15), (238, 1, 70, 128)])
def test_hidden_layers_of_any_size(rng, sizes, count):
    stages = [Power(0.75), L2()]
    for rows, columns in pairwise(sizes):
        stages += [affine(rng, rows, columns), Relu(columns // 3)]
    head = Head((*stages[:-1], L2()))
    raw = rng.normal(size=(count, sizes[0])).astype(np.float32)
    np.testing.assert_allclose(through(head, raw), head.apply(raw), atol=1e-5)


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.75, 1])
def test_powers_anywhere(rng, exponent):
    power = Power(exponent)
    head = Head((power, affine(rng, 20, 20), power, L2(), affine(rng, 20, 7), power, L2()))
    raw = rng.normal(size=(10, 20)).astype(np.float32)
    raw[3, 4] = raw[0] = 0
    np.testing.assert_allclose(through(head, raw), head.apply(raw), atol=1e-5)


def test_nothing_stays_nothing_and_what_was_there_before_does_not_matter(rng):
    """Rows of scratch are used again: what a wide stage left must not reach a narrow one."""
    wide, narrow = rng.normal(size=(5, 90)), np.zeros((90, 5))
    head = Head((Affine(wide), Affine(narrow), Affine(rng.normal(size=(5, 40))), L2()))
    raw = np.full((20, 5), 1e30, np.float32)
    assert not through(head, raw).any()


def test_a_rectifier_spares_what_comes_before_it():
    head = Head((Affine(np.eye(4)), Relu(2), L2()))
    found = through(head, np.array([[-3, 0, -5, 4]], np.float32))
    np.testing.assert_allclose(found, [[-0.6, 0, 0, 0.8]], atol=1e-7)
