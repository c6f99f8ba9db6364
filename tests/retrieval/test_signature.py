"""Words and signatures against their definitions, and other people's k-means."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from mkdesc.retrieval.codebook import ROUNDS, assign_words, learn_words
from mkdesc.retrieval.segments import Segment, write_segments
from mkdesc.retrieval.signature import make_signature, pack_signs, similarity


def test_words_are_the_nearest(rng):
    x, words = rng.normal(size=(9000, 5)), rng.normal(size=(30, 5)).astype(np.float32)
    np.testing.assert_array_equal(assign_words(x, words), cdist(x, words).argmin(axis=1))


def test_words_are_those_of_lloyd(rng):
    x = rng.normal(size=(320, 3)).astype(np.float32)
    start = x[np.random.default_rng(4).permutation(320)[:10]]
    theirs = KMeans(10, init=start, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        expected = theirs.fit(x).cluster_centers_
    np.testing.assert_allclose(learn_words(x, 10, seed=4), expected, atol=1e-5)


def test_few_descriptors_make_few_words(rng):
    assert learn_words(rng.normal(size=(40, 3)), 1024).shape == (3, 3)
    with pytest.raises(ValueError, match="descriptors: expected at least one"):
        learn_words(np.empty((0, 3)), 4)


def dense(x, words):
    """Signs of the summed residuals of every word, 0 where there is none: the definition."""
    nearest = cdist(x, words).argmin(axis=1)
    out = np.zeros(words.shape)
    for word in set(nearest):
        out[word] = np.where((x[nearest == word] - words[word]).sum(axis=0) > 0, 1, -1)
    return out


def defined(a, b):
    cosines = (a * b).sum(axis=1) / a.shape[1]
    return (np.maximum(cosines, 0) ** 3).sum()


@pytest.mark.parametrize("dims", [5, 64, 100, 128])
def test_similarity_is_that_of_the_paper(rng, dims):
    words = rng.normal(size=(12, dims)).astype(np.float32)
    one = rng.normal(size=(40, dims)).astype(np.float32)
    other = np.concatenate([one[:30] + 0.3, rng.normal(size=(9, dims))]).astype(np.float32)
    a, b = dense(one, words), dense(other, words)
    expected = defined(a, b) / np.sqrt(defined(a, a) * defined(b, b))
    signatures = [make_signature(x, words) for x in (one, other)]
    assert similarity(*signatures, dims) == pytest.approx(expected, rel=1e-5)
    assert similarity(signatures[0], signatures[0], dims) == pytest.approx(1)
    nothing = make_signature(one[:0], words)
    assert similarity(nothing, signatures[0], dims) == 0


def test_signs_are_packed_lowest_first():
    signs = np.zeros((1, 70), bool)
    signs[0, [0, 3, 64, 69]] = True
    assert pack_signs(signs).tolist() == [[1 + 8, 1 + 32]]


def test_segments_give_the_similarities_of_pairs(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("mkdesc.retrieval.segments.SEGMENT", 3)
    words = rng.normal(size=(20, 100)).astype(np.float32)
    common = rng.normal(size=(30, 100))
    made = {}
    for number in range(7):
        own = rng.normal(size=(10 * number, 100))  # the first one has nothing
        kept = common[: 5 * number] + 0.2 * rng.normal(size=(5 * number, 100))
        made[f"{number}.png"] = make_signature(np.concatenate([own, kept]), words)
    entries = [(name, "1 2 3", signature) for name, signature in made.items()]
    segments = list(write_segments(tmp_path, 5, entries, 20))
    assert [segment.folder.name for segment in segments] == [
        f"segment-00000{i}" for i in (5, 6, 7)
    ]
    back = {name: one for segment in segments for name, _, one in segment.entries()}
    assert list(back) == list(made)
    for name, signature in made.items():
        np.testing.assert_array_equal(back[name].words, signature.words)
        np.testing.assert_array_equal(back[name].codes, signature.codes)
        found = np.concatenate([segment.similarities(signature, 100) for segment in segments])
        expected = [similarity(signature, other, 100) for other in made.values()]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_damaged_segments_are_named(tmp_path):
    (tmp_path / "codes.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"codes\.npy: missing or damaged"):
        _ = Segment(tmp_path).codes
