import numpy as np
import pytest

from mkdesc.pixelfeatures import Intensity, compress, shape_features


def test_intensity_is_squeezed(rng):
    q = rng.normal(0, 5, 50)
    z = compress(q)
    assert np.all(np.abs(z) < 1)
    assert np.all(np.diff(z[np.argsort(q)]) >= 0)
    with pytest.raises(ValueError, match="expected 1 or 2 features, got 3"):
        Intensity(3)


def test_shape_features_turn_as_they_should(rng):
    """Turning a surface by an angle turns (ridge, saddle) by twice the angle."""
    l, d, e = rng.normal(size=(3, 20))  # noqa: E741
    t = 0.7
    turned = shape_features(l, d * np.cos(t) - e * np.sin(t), d * np.sin(t) + e * np.cos(t))
    features = shape_features(l, d, e)
    for group in ([0], [1], [2, 3], [4], [5, 6]):
        np.testing.assert_allclose(
            np.linalg.norm(turned[:, group], axis=1), np.linalg.norm(features[:, group], axis=1)
        )
    # d^2 - e^2 and 2 d e turn as a pair, by twice that.
    for a in (turned, features):
        a[:, 8] *= 2
    np.testing.assert_allclose(
        np.linalg.norm(turned[:, 7:], axis=1), np.linalg.norm(features[:, 7:], axis=1)
    )


def test_no_shape_has_little_weight():
    weak, strong = shape_features(*np.zeros((3, 1))), shape_features(*np.ones((3, 1)))
    assert np.linalg.norm(weak) < 0.2 * np.linalg.norm(strong)
