"""Transformers beside scikit-learn's own."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection

from mkdesc import MKD, Whitening
from mkdesc.heads.head import L2, Affine, Head
from mkdesc.learn.trained_head import TrainedHead


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 8))


def learned(dims=3):
    """One of each transformer, with what it takes to call it."""
    head = Head((Affine(np.eye(8)[:, :dims]), L2()))
    trained = TrainedHead()
    trained.head_ = head
    return [Whitening.of_head(head, dims=dims), trained]


def test_names_are_as_scikit_learns(X):
    """Those of its own projections: the class and a number."""
    theirs = GaussianRandomProjection(3, random_state=0).fit(X).get_feature_names_out()
    for ours in learned():
        names = ours.get_feature_names_out(["a"] * 8)
        assert names.dtype == theirs.dtype == object
        prefix = type(ours).__name__.lower()
        assert [name.replace(prefix, "gaussianrandomprojection") for name in names] == list(theirs)
    assert list(MKD("polar").get_feature_names_out()[[0, -1]]) == ["mkd0", "mkd174"]
    whitened = MKD("x(1,1)*y(1,1)", whitening=None, head=Head((Affine(np.eye(9)[:, :2]), L2())))
    assert list(whitened.get_feature_names_out()) == ["mkd0", "mkd1"]


@pytest.mark.parametrize("estimator", [Whitening(), TrainedHead()])
def test_names_need_something_learned(estimator):
    with pytest.raises(ValueError, match="is not fitted"):
        estimator.get_feature_names_out()


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_frames_as_scikit_learn_makes_them(X, container):
    package = pytest.importorskip(container)
    theirs = GaussianRandomProjection(3, random_state=0).set_output(transform=container)
    expected = theirs.fit_transform(X)
    for ours in learned():
        plain = ours.transform(X)
        found = ours.set_output(transform=container).transform(X)
        assert type(found) is type(expected) is package.DataFrame
        assert list(found.columns) == list(ours.get_feature_names_out())
        np.testing.assert_array_equal(found.to_numpy(), plain)
        assert ours.set_output().transform(X).equals(found)  # None changes nothing
        assert type(ours.set_output(transform="default").transform(X)) is np.ndarray


def test_rows_keep_their_index(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, index=[f"row {i}" for i in range(40)])
    theirs = GaussianRandomProjection(3, random_state=0).set_output(transform="pandas")
    for ours in learned():
        found = ours.set_output(transform="pandas").transform(frame)
        assert found.index.equals(theirs.fit_transform(frame).index)


def test_in_a_pipeline(rng):
    pandas = pytest.importorskip("pandas")
    patches = rng.integers(0, 256, (12, 16, 16), np.uint8)
    whole = make_pipeline(MKD("x(1,1)*y(1,1)", 16), Whitening("pca", 4))
    found = whole.set_output(transform="pandas").fit_transform(patches)
    assert isinstance(found, pandas.DataFrame)
    assert list(whole.get_feature_names_out()) == list(found.columns)
    assert list(found.columns) == ["whitening0", "whitening1", "whitening2", "whitening3"]
    copy = clone(whole)
    assert isinstance(copy[0].transform(patches), pandas.DataFrame)
    pandas.testing.assert_frame_equal(copy.fit_transform(patches), found)


def test_unknown_containers_are_refused():
    with pytest.raises(ValueError, match="transform: expected one of default, pandas, polars"):
        MKD().set_output(transform="arrow")


def test_a_missing_package_is_named(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        learned()[0].set_output(transform="pandas").transform(X)
