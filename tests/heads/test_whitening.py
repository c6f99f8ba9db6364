import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from mkdesc import MKD
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import METHODS, Whitening


@pytest.fixture
def data(rng):
    """Noisy views of points; some directions are noisier than others."""
    mixing = rng.normal(size=(8, 8))
    points = np.repeat(rng.normal(size=(400, 8)) @ mixing, 3, axis=0)
    noise = rng.normal(size=points.shape) * np.linspace(0.05, 1, 8)
    return points + noise, np.repeat(np.arange(400), 3)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def up_to_signs(a, b):
    np.testing.assert_allclose(np.abs(a), np.abs(b), atol=1e-4)


@pytest.mark.parametrize("dims", [3, 8])
def test_pca_is_scikit_learns(data, dims):
    X, _ = data
    y = PCA(dims).fit_transform(X)
    found = Whitening("pca", dims).fit(X).transform(X)
    up_to_signs(found, unit(np.sign(y) * np.sqrt(np.abs(y))))


def test_attenuated_pca(data):
    X, _ = data
    pca = PCA().fit(X)
    full = unit(PCA(whiten=True).fit_transform(X))
    up_to_signs(Whitening("pcawt", 8, t=1).fit(X).transform(X), full)
    half = unit(pca.transform(X) / pca.explained_variance_**0.35)
    up_to_signs(Whitening("pcawt", 8).fit(X).transform(X), half)


@pytest.mark.parametrize(("shrinkage", "index"), [(5, 5), (0.25, None)])
def test_shrunk_pca(data, shrinkage, index):
    X, _ = data
    pca = PCA().fit(X)
    relative = pca.explained_variance_ / pca.explained_variance_[0]
    b = shrinkage if index is None else relative[index]
    expected = unit(pca.transform(X) / np.sqrt((1 - b) * relative + b))
    up_to_signs(Whitening("pcaws", 8, shrinkage=shrinkage).fit(X).transform(X), expected)


def test_shrinkage_works_below_its_index():
    X = np.random.default_rng(0).normal(size=(2000, 60))
    assert Whitening("pcaws", 16).fit(X).transform(X).shape == (2000, 16)


def test_learned_whitening_by_its_definition(data):
    X, _ = data
    i, j = np.array([(k, k + s) for k in range(0, len(X), 3) for s in (1, 2)]).T
    found = Whitening("lw", 8).fit(X, pairs=(i, j)).head_.linear().matrix.astype(float)
    difference = X[j] - X[i]
    within = difference.T @ difference / len(i)
    whiten = np.linalg.inv(np.linalg.cholesky(within))
    values, vectors = np.linalg.eigh(whiten @ np.cov(X.T, bias=True) @ whiten.T)
    up_to_signs(found, (vectors[:, ::-1].T @ whiten).T)
    # In the new space the differences of matching pairs are white, and all is decorrelated.
    np.testing.assert_allclose(found.T @ within @ found, np.eye(8), atol=1e-4)
    np.testing.assert_allclose(
        found.T @ np.cov(X.T, bias=True) @ found, np.diag(values[::-1]), atol=1e-3 * values[-1]
    )


def test_labels_equal_all_their_pairs(data):
    X, labels = data
    first = np.arange(0, len(X), 3)
    i, j = (
        np.concatenate([first, first, first + 1]),
        np.concatenate([first + 1, first + 2, first + 2]),
    )
    by_label = Whitening("lw", 4).fit(X, labels).transform(X)
    np.testing.assert_allclose(
        Whitening("lw", 4).fit(X, pairs=(i, j)).transform(X), by_label, atol=1e-5
    )


def test_discriminant_by_its_definition(data):
    X, labels = data
    found = Whitening("gda", 8).fit(X, labels)
    matrix = found.head_.linear().matrix.astype(float)
    within, all_ = found.statistics_.pair_covariance, found.statistics_.covariance
    mixed = within + 0.1 * all_
    for column in matrix.T:
        value = (column @ all_ @ column) / (column @ mixed @ column)
        np.testing.assert_allclose(all_ @ column, value * mixed @ column, atol=1e-3 * value)
        b = value - 0.5
        assert column @ mixed @ column == pytest.approx(b / (2 * b + 0.5), rel=1e-3)


@pytest.mark.parametrize("method", ["lw", "gda"])
def test_supervision_helps(data, method):
    """Views of a point are each other's nearest neighbours more often than before."""
    X, labels = data

    def hits(Y):
        similarity = Y @ Y.T
        np.fill_diagonal(similarity, -np.inf)
        return np.mean(labels[similarity.argmax(axis=1)] == labels)

    raw = unit(X - X.mean(axis=0))
    assert hits(Whitening(method, 8).fit(X, labels).transform(X)) > hits(raw) + 0.05


@pytest.mark.parametrize("method", METHODS)
def test_partial_fits_equal_one_fit(data, method):
    X, labels = data
    whole = Whitening(method, 4, shrinkage=3).fit(X, labels)
    parts = Whitening(method, 4, shrinkage=3)
    for start in range(0, len(X), 300):
        parts.partial_fit(X[start : start + 300], labels[start : start + 300])
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-5)
    again = Whitening(method, 4, shrinkage=3).fit_statistics(parts.statistics_)
    np.testing.assert_allclose(again.transform(X), whole.transform(X), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_signs_are_deterministic(data, method):
    X, labels = data
    matrix = Whitening(method, 8, shrinkage=3).fit(X, labels).head_.linear().matrix
    largest = matrix[np.abs(matrix).argmax(axis=0), np.arange(8)]
    assert np.all(largest > 0)


@pytest.mark.parametrize("method", ["pcawt", "pcaws", "lw", "gda"])
def test_dependent_dimensions_get_a_ridge_and_a_warning(data, method):
    X, labels = data
    X = np.hstack([X, X[:, :2] + X[:, 2:4]])
    with pytest.warns(UserWarning, match="is singular"):
        found = Whitening(method, 10, shrinkage=0.1).fit(X, labels).transform(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Whitening(method, 10, shrinkage=0.1, ridge=1e-4).fit(X, labels)


def test_fewer_samples_than_dimensions():
    X = np.random.default_rng(0).normal(size=(6, 20))
    with (
        pytest.warns(UserWarning, match="is singular"),
        pytest.warns(UserWarning, match="dims: 20 requested, but 6 descriptors span at most 5"),
    ):
        found = Whitening("lw", 20).fit(X, [0, 0, 1, 1, 2, 2]).transform(X)
    assert np.isfinite(found).all()


def test_more_dims_than_numbers_are_said(data):
    with pytest.warns(UserWarning, match="dims: 9 requested, but the descriptors have 8"):
        found = Whitening("gda", 9).fit(*data)
    assert found.transform(data[0]).shape == (1200, 8)


def test_missing_labels_are_named(data):
    with pytest.raises(ValueError, match=r"method: 'gda' learns from .* labels \(y\) or pairs"):
        Whitening("gda").fit(data[0])
    # They may come later, piece by piece.
    later = Whitening("gda", 4).partial_fit(data[0]).partial_fit(*data)
    assert later.transform(data[0]).shape == (1200, 4)
    with pytest.raises(ValueError, match="equal labels, or pairs"):
        Whitening("gda", 4).partial_fit(data[0]).transform(data[0])


def test_labels_that_come_once_are_no_error(data):
    X, labels = data
    labels = np.append(labels, [10_000, 10_001])
    X = np.vstack([X, X[:2]])
    assert Whitening("lw", 4).fit(X, labels).statistics_.n_pairs == 400 * 3


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((5, 3)), [0, 0, 1, 1, 2], "are all alike"),
        (np.ones((1, 3)), [0], "at least 2 descriptors, got 1"),
        (np.eye(3), [0, 1, 2], r"at least 1 matching pairs \(equal labels, or pairs\), got 0"),
        (np.eye(3), None, r"'lw' learns from what matches: expected labels \(y\) or pairs"),
        (np.eye(3) * np.nan, [0, 0, 1], r"X\[0\] has NaN"),
        (np.empty((0, 3)), [], "at least 2 descriptors, got 0"),
    ],
)
def test_hopeless_data_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        Whitening("lw").fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"method": "zca"}, "method: expected one of pca, pcawt, pcaws, lw, gda, got 'zca'"),
        ({"dims": 0}, "dims: expected an integer >= 1, got 0"),
        ({"method": "pcaws", "shrinkage": 8}, "shrinkage: expected an index below 8"),
        ({"method": "pcaws", "shrinkage": 1.5}, "shrinkage: expected a value between"),
    ],
)
def test_bad_parameters_are_refused(data, params, message):
    with pytest.raises(ValueError, match=message):
        Whitening(**params).fit(*data)


@pytest.mark.parametrize("method", ["lw", "pca"])
def test_what_is_projected_to_zero_stays_zero(method):
    """Exactly the mean, in binary fractions: nothing is divided by a norm of zero."""
    X = np.array([[0.5, 2.0], [1.5, 4.0], [2.5, 1.0], [3.5, 5.0]])
    whitening = Whitening(method, 2).fit(X, pairs=([0, 1, 2], [1, 2, 3]))
    found = whitening.transform([[2.0, 3.0], [2.0, 3.5]])
    np.testing.assert_array_equal(found[0], np.zeros(2))
    assert np.linalg.norm(found[1]) == pytest.approx(1)


def test_a_second_fit_forgets_the_first(data):
    X, labels = data
    whitening = Whitening("lw", 4).fit(X[:600] ** 3, labels[:600])
    twice = whitening.fit(X, labels)
    assert twice.statistics_.n == len(X)
    once = Whitening("lw", 4).fit(X, labels)
    np.testing.assert_array_equal(twice.transform(X), once.transform(X))


def test_data_after_fit_count(data):
    X, labels = data
    half = len(X) // 2
    whitening = Whitening("gda", 4).fit(X[:half] ** 3, labels[:half])
    before = whitening.transform(X)
    after = whitening.partial_fit(X[half:], labels[half:]).transform(X)
    both = np.concatenate([X[:half] ** 3, X[half:]])
    np.testing.assert_allclose(
        after, Whitening("gda", 4).fit(both, labels).transform(X), atol=1e-5
    )
    assert np.abs(after - before).max() > 0.01
    with pytest.raises(ValueError, match=r"X: expected shape \(N, 8\), got \(1200, 7\)"):
        whitening.partial_fit(X[:, 1:], labels)


@pytest.mark.parametrize(
    ("name", "value"), [("dims", 2), ("method", "gda"), ("ridge", 0.5), ("method", "pcawt")]
)
@pytest.mark.parametrize("how", ["set_params", "attribute", "in a descriptor"])
def test_parameters_changed_after_fit_count(data, name, value, how):
    X, labels = data
    whitening = Whitening("lw", 4).fit(X, labels)
    before = whitening.transform(X)
    if how == "set_params":
        whitening.set_params(**{name: value})
    elif how == "attribute":
        setattr(whitening, name, value)
    else:
        MKD(whitening=whitening).set_params(**{f"whitening__{name}": value})
    expected = Whitening(**whitening.get_params()).fit(X, labels).transform(X)
    found = whitening.transform(X)
    np.testing.assert_array_equal(found, expected)
    assert found.shape != before.shape or np.abs(found - before).max() > 1e-3


def test_parameters_that_statistics_do_not_allow_are_named(data):
    X, labels = data
    whitening = Whitening("lw", 4).fit(X, labels)
    expected = whitening.transform(X)
    whitening.set_params(power=0.5)
    for use in (whitening.transform, lambda X: whitening.partial_fit(X, labels)):
        with pytest.raises(ValueError, match=r"power.* 1\.0|powers 1\.0 and 0\.5"):
            use(X)
    np.testing.assert_array_equal(whitening.set_params(power=1).transform(X), expected)
    alone = Whitening.of_head(whitening.head_, method="lw", dims=4)
    np.testing.assert_array_equal(alone.transform(X), expected)
    with pytest.raises(ValueError, match=r"dims: .* learned with 4 and has no statistics"):
        alone.set_params(dims=3).transform(X)
    with pytest.raises(ValueError, match="no statistics to add to"):
        alone.set_params(dims=4).partial_fit(X, labels)
    assert alone.fit(X, labels).statistics_.n == len(X)


def test_statistics_of_another_power_are_refused(data):
    X, labels = data
    with pytest.raises(ValueError, match=r"power: expected statistics of 0\.75, got .* with 1"):
        Whitening("lw", 4, power=0.75).fit_statistics(Statistics(8).update(X, labels))


def test_statistics_that_were_given_stay_as_they_are(data):
    X, labels = data
    given = Statistics(8).update(X, labels)
    scatter = given.scatter.copy()
    Whitening("lw", 4).fit_statistics(given).partial_fit(X + 1, labels)
    assert given.n == len(X)
    np.testing.assert_array_equal(given.scatter, scatter)


def test_a_fit_that_fails_leaves_what_was_learned(data):
    X, labels = data
    whitening = Whitening("lw", 4).fit(X, labels)
    before = whitening.transform(X)
    with pytest.raises(ValueError, match="are all alike"):
        whitening.fit(np.zeros((4, 8)), [0, 0, 1, 1])
    np.testing.assert_array_equal(whitening.transform(X), before)


def test_not_fitted(data):
    with pytest.raises(ValueError, match="call fit first"):
        Whitening().transform(data[0])
    with pytest.raises(ValueError, match="call fit first"):
        MKD(patch_size=8, whitening=Whitening()).transform(np.zeros((2, 8, 8)))


def test_in_a_pipeline_with_the_descriptor(rng):
    patches = np.repeat(rng.random((300, 8, 8)), 2, axis=0) + rng.normal(0, 0.01, (600, 8, 8))
    labels = np.repeat(np.arange(300), 2)
    pipeline = make_pipeline(MKD("cartesian", patch_size=8), Whitening("gda", 16))
    expected = pipeline.fit(patches, labels).transform(patches)
    joint = MKD("cartesian", patch_size=8, whitening=pipeline[-1])
    np.testing.assert_allclose(joint.transform(patches), expected, atol=1e-5)
    # The whitening of a descriptor survives cloning and pickling.
    for copy in (clone(joint), pickle.loads(pickle.dumps(joint))):
        np.testing.assert_allclose(copy.transform(patches), expected, atol=1e-5)


WORDING = "refused as it should be, in the words of this package instead of scikit-learn's"
EXPECTED = {
    "check_complex_data": WORDING,
    "check_dtype_object": "object arrays are refused, even of numbers",
    "check_estimator_sparse_array": WORDING,
    "check_estimator_sparse_matrix": WORDING,
    "check_estimator_sparse_tag": WORDING,
    "check_estimators_empty_data_messages": WORDING,
    "check_fit2d_1sample": WORDING,
    "check_fit2d_predict1d": WORDING,
    "check_n_features_in_after_fitting": WORDING,
}


def test_scikit_learn_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks use tiny, singular data
        results = check_estimator(Whitening("pca"), expected_failed_checks=EXPECTED, on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) >= 30


def test_statistics_are_what_is_learned_from(data):
    X, labels = data
    statistics = Statistics(8).update(X, labels)
    a = Whitening("lw", 4).fit_statistics(statistics).transform(X)
    np.testing.assert_array_equal(a, Whitening("lw", 4).fit(X, labels).transform(X))


def test_the_power_comes_first(data):
    X, labels = data
    rooted = unit(np.sign(X) * np.abs(X) ** 0.75)
    expected = Whitening("gda", 4).fit(rooted, labels).transform(rooted)
    found = Whitening("gda", 4, power=0.75).fit(X, labels).transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ValueError, match="power: expected a number > 0 and <= 1"):
        Whitening(power=0).fit(X, labels)
