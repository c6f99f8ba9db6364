import numpy as np
import pytest

from mkdesc.kernels.grid import patch_grid


@pytest.mark.parametrize("size", [8, 9, 64, 65])
def test_coordinates(size):
    grid = patch_grid(size)
    np.testing.assert_allclose(grid.x[0, [0, -1]], [-1, 1])
    np.testing.assert_allclose(grid.x, grid.y.T)
    np.testing.assert_allclose(np.diff(grid.x[0]), 2 / (size - 1))
    assert grid.rho.max() == pytest.approx(1)
    np.testing.assert_allclose(grid.rho * np.sqrt(2) * np.cos(grid.phi), grid.x, atol=1e-12)
    np.testing.assert_allclose(grid.rho * np.sqrt(2) * np.sin(grid.phi), grid.y, atol=1e-12)
    np.testing.assert_allclose(grid.window[0, 0], np.exp(-1))


def test_shared_arrays_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        patch_grid(8).x[0, 0] = 5
