import numpy as np
import pytest
import scipy.linalg

from mkdesc.datasets.hpatches.csv_files import write_csv
from mkdesc.datasets.hpatches.layout import IMAGES, HPatches
from mkdesc.datasets.phototourism.layout import Subset
from mkdesc.evaluation.cache import DescriptorCache
from mkdesc.evaluation.contenders.registry import get_descriptor
from mkdesc.evaluation.training import (
    learn,
    sequence_rows,
    sequence_statistics,
    subset_rows,
    subset_statistics,
    zca,
)
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import Whitening


def test_rows_are_described_once(tmp_path, subsets_root):
    calls = []

    def means(patches):
        calls.append(len(patches))
        return patches.mean(axis=(1, 2))[:, None]

    subset = Subset(subsets_root / "door")
    told = []
    cache = DescriptorCache(tmp_path, lambda *told_of: told.append(told_of))
    rows = subset_rows(cache, get_descriptor(means), subset)
    again = subset_rows(cache, get_descriptor(means), subset)
    assert sum(calls) == len(subset) == len(rows)
    assert told[-1] == ("means, door", 600, 600)
    np.testing.assert_array_equal(rows, again)
    expected = np.concatenate([patches for _, patches in subset.blocks()]).mean(axis=(1, 2))
    np.testing.assert_allclose(rows[:, 0], expected, rtol=1e-6)


def half(whole):
    return whole[: len(whole) // 2]


def narrow(whole):
    """Of two numbers a row none, with the same length."""
    return whole.replace(b"(600, 2)", b"(600, 0)") if b"(600, 2)" in whole else half(whole)


@pytest.mark.parametrize(
    "harm", [lambda _: b"", lambda _: b"\x93NUMPY\x01\x00 no more", half, narrow]
)
def test_damaged_caches_are_made_again(tmp_path, subsets_root, harm):
    base = get_descriptor(lambda patches: patches[:, :2, 0])
    cache, subset = DescriptorCache(tmp_path), Subset(subsets_root / "door")
    rows = np.array(subset_rows(cache, base, subset))
    sums = subset_statistics(cache, base, subset).mean
    for file in tmp_path.rglob("door.*"):
        file.write_bytes(harm(file.read_bytes()))
    with pytest.warns(UserWarning, match=r"door\.npy: damaged .*; it will be made again"):
        again = subset_rows(cache, base, subset)
    np.testing.assert_array_equal(again, rows)
    with pytest.warns(
        UserWarning, match=r"door\..*statistics.*: not a safe.*; it will be made again"
    ):
        learned = subset_statistics(cache, base, subset)
    np.testing.assert_array_equal(learned.mean, sums)
    assert len(list(tmp_path.rglob("door.*"))) == 2


def test_cache_of_other_data_is_refused(tmp_path, subsets_root):
    base = get_descriptor(lambda patches: np.ones((len(patches), 2)))
    cache = DescriptorCache(tmp_path)
    subset_rows(cache, base, Subset(subsets_root / "door"))
    np.save(next(tmp_path.rglob("door.npy")), np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="3 descriptors, but there are 600 patches"):
        subset_rows(cache, base, Subset(subsets_root / "door"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda n: np.full((n, 2), np.nan), "has NaN or infinity"),
        (lambda n: np.ones((n + 1, 2)), r"expected shape \(\d+, D\)"),
        (lambda n: np.ones(n), r"expected shape \(\d+, D\)"),
    ],
)
def test_bad_descriptors_leave_no_file(tmp_path, subsets_root, values, message):
    base = get_descriptor(lambda patches: values(len(patches)))
    with pytest.raises(ValueError, match=message):
        subset_rows(DescriptorCache(tmp_path), base, Subset(subsets_root / "door"))
    assert not list(tmp_path.rglob("*.npy"))


def test_statistics_of_parts_are_parts(tmp_path, subsets_root):
    subset = Subset(subsets_root / "fox")
    cache = DescriptorCache(tmp_path)
    polar = get_descriptor("mkd-polar-raw")
    got = subset_statistics(cache, polar, subset)
    rows = subset_rows(cache, polar, subset)
    assert rows.shape == (600, 175)
    pairs = subset.pairs(900)
    ends = (pairs.first[pairs.matching], pairs.second[pairs.matching])
    expected = Statistics(175).update(rows, pairs=ends)
    np.testing.assert_allclose(got.covariance, expected.covariance, atol=1e-12)
    np.testing.assert_allclose(got.pair_covariance, expected.pair_covariance, atol=1e-12)
    assert got.n_pairs == 450
    assert len(list(tmp_path.rglob("*.npy"))) == 1  # of the whole alone


def test_sequences_learn_from_all_their_images(tmp_path, strips_root):
    dataset = HPatches(strips_root)
    cache = DescriptorCache(tmp_path)
    descriptor = get_descriptor("mkd-cartesian-raw+lw")
    statistics = sequence_statistics(cache, descriptor.base, dataset, "a", ("i_lake", "v_boat"))
    assert statistics.n == 2 * 16 * 40
    assert statistics.n_pairs == 2 * 40 * 16 * 15 // 2
    rows = np.concatenate(
        [sequence_rows(cache, descriptor.base, dataset, name) for name in ("i_lake", "v_boat")]
    )
    labels = np.concatenate([np.tile(np.arange(40), 16), np.tile(np.arange(40, 80), 16)])
    expected = Whitening("lw", 63).fit(rows, labels).transform(rows)
    np.testing.assert_allclose(learn(descriptor, statistics).apply(rows), expected, atol=1e-4)
    one = sequence_rows(cache, descriptor.base, dataset, "i_lake", "h3")
    np.testing.assert_array_equal(one, rows[IMAGES.index("h3") * 40 :][:40])


def test_csv_rows(tmp_path, strips_root, rng):
    made = {image: rng.normal(size=(40, 3)).astype(np.float32) for image in IMAGES}
    for image, values in made.items():
        write_csv(tmp_path / "mine", "v_wall", image, values)
    base = get_descriptor(f"csv:{tmp_path / 'mine'}")
    cache = DescriptorCache(tmp_path / "cache")
    got = sequence_rows(cache, base, HPatches(strips_root), "v_wall", "t5")
    np.testing.assert_array_equal(got, made["t5"])
    with pytest.raises(ValueError, match=r"i_dome.ref\.csv: no such file"):
        sequence_rows(cache, base, HPatches(strips_root), "i_dome", "ref")


def zca_by_definition(X, clipped):
    """Clipped eigenvalues of the covariance, rotated back; signed root; l2. In doubles."""
    values, vectors = scipy.linalg.eigh(np.cov(X.T, bias=True))
    kept = 0.0
    for value in values:  # upwards: those of the first share take the next one's value
        kept += value
        if kept > clipped * values.sum():
            values = values.clip(value)
            break
    white = (X - X.mean(axis=0)) @ vectors @ np.diag(values**-0.5) @ vectors.T
    rooted = np.sign(white) * np.sqrt(np.abs(white))
    return rooted / np.linalg.norm(rooted, axis=1, keepdims=True)


@pytest.mark.parametrize("clipped", [0.05, 0.25, 0.6])
def test_zca_against_its_definition(rng, clipped):
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    X = 3 + rng.normal(size=(500, 6)) * [4, 3, 2, 1, 0.5, 0.2] @ turn
    head = zca(Statistics(6).update(X), clipped)
    np.testing.assert_allclose(head.apply(X), zca_by_definition(X, clipped), atol=1e-4)


def test_plus_zca_is_that_of_the_article(rng):
    X = rng.normal(size=(500, 5)) * [4, 3, 2, 1, 0.5]
    head = learn(get_descriptor("opencv-sift+zca"), Statistics(5).update(X))
    np.testing.assert_allclose(head.apply(X), zca_by_definition(X, 0.25), atol=1e-4)
