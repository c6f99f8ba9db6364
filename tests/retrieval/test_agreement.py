"""Whether two images show the same, by their features alone."""

import numpy as np

from mkdesc.features.image_features import ImageFeatures
from mkdesc.retrieval.agreement import agree


def features(xy, descriptors):
    keypoints = np.column_stack([xy, np.full(len(xy), 2.0), np.zeros(len(xy))])
    scores = np.linspace(1, 0.5, len(xy))
    return ImageFeatures(
        keypoints.astype(np.float32), scores.astype(np.float32), descriptors, np.array([640, 480])
    )


def test_a_surface_that_is_no_plane_agrees_as_a_whole(rng):
    """A camera that moves sideways past hills: no homography has more than a part of them."""
    here = rng.uniform([20, 20], [500, 460], (400, 2))
    height = 0.5 + 0.5 * np.sin(here[:, 0] / 90) * np.cos(here[:, 1] / 90)
    there = here + np.column_stack([20 + 80 * height, np.zeros(400)])
    described = rng.normal(size=(400, 32)).astype(np.float32)
    found = agree(features(here, described), features(there, described))
    assert found.verdict.name == "verified"
    assert len(found.here) > 350
    np.testing.assert_allclose(found.here[:, 1], found.there[:, 1], atol=1e-3)


def test_images_of_other_things_do_not_agree(rng):
    one, other = (
        features(rng.uniform(0, 480, (200, 2)), rng.normal(size=(200, 32)).astype(np.float32))
        for _ in range(2)
    )
    found = agree(one, other)
    assert found.verdict.name == "unverified"
    assert len(found.here) == len(found.there) == 0
