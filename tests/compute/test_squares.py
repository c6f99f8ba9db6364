"""Several squares of a keypoint: against one square at a time, in all computations."""

from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

from mkdesc import MKD, describe, load_model, save_model
from mkdesc.compute.backends import BACKENDS as ALL
from mkdesc.heads.quantise import quantise

SIDES = {1: (20,), 2: (14, 40), 3: (12, 24.5, 50)}
BACKENDS = [name for name in ALL if name != "torch" or find_spec("torch") is not None]


@pytest.fixture(scope="module")
def stacks():
    """Patches (7, 3, 24, 24), one of them flat."""
    patches = np.random.default_rng(1).integers(0, 256, (7, 3, 24, 24), np.uint8)
    patches[2, 1] = 9
    return patches


def expected(stacks, squares, head):
    """Each square described alone by the definition, end to end; then the head."""
    alone = MKD("extended-24", 24, backend="reference")
    raw = np.hstack([alone.transform(stacks[:, k]) for k in range(squares)])
    return raw if head is None else head.apply(raw)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("squares", [1, 2, 3])
def test_raw_descriptors_end_to_end_are_what_the_head_takes(look_at, stacks, backend, squares):
    patches = stacks[:, :squares]
    for head in (None, look_at(*SIDES[squares]).head):
        mkd = look_at(*SIDES[squares], head=head, backend=backend)
        assert mkd.squares == squares
        found = mkd.transform(patches)
        np.testing.assert_allclose(found, expected(stacks, squares, head), atol=2e-4)
        assert found.shape[1] == mkd._n_features_out
        for output in ("int8", "uint8"):
            small = mkd.set_params(output=output).transform(patches)
            np.testing.assert_array_equal(small, quantise(found, output))
        assert mkd.transform(patches[:0]).shape == (0, found.shape[1])


def test_one_side_in_a_tuple_is_that_side(look_at, stacks):
    plain = look_at(20).set_params(side=20).transform(stacks[:, 0])
    found = look_at(20).transform(stacks[:, :1])
    np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_split_and_number_of_threads_are_the_same(monkeypatch, look_at, stacks, backend):
    many = np.tile(stacks, (3, 1, 1, 1))
    mkd = look_at(*SIDES[3], backend=backend, n_threads=2)
    whole = mkd.transform(many)
    monkeypatch.setattr("mkdesc.descriptor.CHUNK", 5)
    step = {"cpu": "cpu.backend.BLOCK", "numpy": "plain.BLOCK", "torch": "torch.module.CPU_CHUNK"}
    if backend in step:
        monkeypatch.setattr(f"mkdesc.compute.{step[backend]}", 8)
    parts = mkd.transform(many)
    pieces = np.concatenate([mkd.transform(many[i:j]) for i, j in pairwise([0, 1, 8, 21])])
    tolerance = 0 if backend == "cpu" else 1e-5
    np.testing.assert_allclose(parts, whole, atol=tolerance, rtol=0)
    np.testing.assert_allclose(pieces, whole, atol=tolerance, rtol=0)


def test_stacks_of_other_orders_types_and_sizes(look_at, stacks):
    mkd = look_at(*SIDES[2])
    two = stacks[:, :2]  # not contiguous
    want = mkd.transform(two.copy())
    np.testing.assert_array_equal(mkd.transform(two), want)
    np.testing.assert_array_equal(mkd.transform(np.asfortranarray(two)), want)
    for dtype, most in ((np.uint16, 65535), (np.float32, 1), (np.float64, 1)):
        same = (two / 255 * most).astype(dtype)
        np.testing.assert_allclose(mkd.transform(same), want, atol=2e-3)
    larger = two.repeat(2, axis=2).repeat(2, axis=3)
    np.testing.assert_allclose(mkd.transform(larger), want, atol=2e-3)  # a multiple
    odd = np.zeros((2, 2, 37, 37), np.uint8)
    with pytest.raises(ValueError, match=r"expected 24 x 24 px .*, got 37 x 37"):
        mkd.transform(odd)
    assert mkd.set_params(resize=True).transform(odd).shape == (2, 16)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("resize", [False, True])
def test_errors_name_the_stack(monkeypatch, look_at, backend, resize):
    monkeypatch.setattr("mkdesc.descriptor.CHUNK", 2)
    size = 25 if resize else 24
    bad = np.zeros((7, 2, size, size), np.float32)
    bad[5, 1, 3, 3] = np.nan
    mkd = look_at(*SIDES[2], backend=backend, resize=resize)
    with pytest.raises(ValueError, match=r"^patches\[5\] has NaN or infinity$"):
        mkd.transform(bad)
    with pytest.raises(ValueError, match=r"^patches\[105\] has NaN or infinity$"):
        mkd.transform(bad, first=100)


def test_what_does_not_fit_is_refused(look_at, stacks):
    two = look_at(*SIDES[2])
    for patches in (stacks, stacks[:, 0], stacks[:, :1], stacks[0, 0]):
        with pytest.raises(ValueError, match=r"expected \(N, 2, W, W\), for 2 squares around"):
            two.transform(patches)
    with pytest.raises(ValueError, match=r"expected \(N, W, W\), \(N, 1, W, W\)"):
        MKD("extended-24", 24).transform(stacks)
    with pytest.raises(ValueError, match=r"learned on \d+ numbers, but the descriptor of 3 sq"):
        look_at(*SIDES[2], side=SIDES[3]).effective_head()
    for side in ((), (20, 0), (20, None), (20, np.nan), (1,) * 17, "20", True, np.ones(2)):
        with pytest.raises(ValueError, match=r"^side: expected"):
            MKD("extended-24", 24, side=side).fit()


def test_model_files_keep_the_sides(tmp_path, look_at, stacks):
    mkd = look_at(14, 40, side=[14, 40])
    card = save_model(mkd, tmp_path / "two.safetensors")
    assert card.side == [14.0, 40.0]
    assert "14 and 40 sigma" in "\n".join(card.lines())
    loaded = load_model(tmp_path / "two.safetensors")
    assert loaded.side == (14.0, 40.0)
    want = mkd.transform(stacks[:, :2])
    np.testing.assert_array_equal(loaded.transform(stacks[:, :2]), want)
    np.testing.assert_array_equal(describe(stacks[:, :2], tmp_path / "two.safetensors"), want)
    alone = look_at(20)
    assert save_model(alone, tmp_path / "one.safetensors").side == 20.0
