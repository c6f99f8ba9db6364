"""Maps that are known, and OpenCV's."""

import cv2
import numpy as np

from mkdesc.geometry.least_squares import fit_affine, fit_homography

PLANE = np.array([[0.5, 0.3, 60], [-0.4, 0.9, 150], [2e-4, 1e-4, 1]])


def test_homographies_are_those_of_opencv(rng):
    here = rng.uniform(0, 600, (80, 2))
    there = cv2.perspectiveTransform(here[:, None], PLANE)[:, 0] + rng.normal(0, 0.3, (80, 2))
    expected, _ = cv2.findHomography(here, there, 0)
    found = fit_homography(here, there)
    corners = np.array([[[0.0, 0], [600, 0], [600, 600], [0, 600]]])
    one, other = (cv2.perspectiveTransform(corners, matrix) for matrix in (found, expected))
    assert np.linalg.norm(one - other, axis=2).max() < 0.3


def test_one_outlier_in_five_moves_an_affine_map_little(rng):
    here = rng.uniform(0, 600, (100, 2))
    there = here @ [[0.8, 0.2], [-0.3, 1.1]] + [20, -10] + rng.normal(0, 1, (100, 2))
    there[:20] = rng.uniform(0, 600, (20, 2))
    found = fit_affine(here, there, 20.0)
    np.testing.assert_allclose(found[:2, :2], [[0.8, -0.3], [0.2, 1.1]], atol=0.02)
