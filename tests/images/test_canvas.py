"""What is drawn is where it was asked for, as large and as dark."""

import numpy as np
import pytest

from mkdesc.images.canvas import Canvas, text_width, write_text

INK = (200, 100, 40)


def ink(canvas):
    """How much of every pixel is covered, by each channel, and the centre of that."""
    share = canvas.picture() / np.array(INK)
    np.testing.assert_allclose(share.max(axis=2), share.min(axis=2), atol=0.03)
    share = share[..., 0]
    y, x = np.indices(share.shape)
    return share, ((share * x).sum() / share.sum(), (share * y).sum() / share.sum())


@pytest.fixture
def canvas():
    return Canvas(np.zeros((40, 60, 3), np.uint8))


@pytest.mark.parametrize("centre", [(20, 15), (20.4, 15.7)])
def test_discs(canvas, centre):
    canvas.disc(centre, 8, INK)
    share, middle = ink(canvas)
    assert share.sum() == pytest.approx(np.pi * 8**2, rel=0.05)
    assert middle == pytest.approx(centre, abs=0.2)


def test_circles(canvas):
    canvas.circle((30, 20), 12, INK, width=2)
    share, middle = ink(canvas)
    assert share.sum() == pytest.approx(np.pi * (13**2 - 11**2), rel=0.08)
    assert middle == pytest.approx((30, 20), abs=0.1)
    assert share[20, 30] == 0


@pytest.mark.parametrize("opacity", [1, 0.5])
def test_lines(canvas, opacity):
    canvas.line((10, 5), (46, 32), INK, width=2, opacity=opacity)
    share, middle = ink(canvas)
    assert share.sum() == pytest.approx(2 * opacity * np.hypot(36, 27), rel=0.1)
    assert share.max() == pytest.approx(opacity, abs=0.01)
    assert middle == pytest.approx((28, 18.5), abs=0.2)
    y, x = share.nonzero()
    assert np.abs((x - 10) * 27 - (y - 5) * 36).max() < 2 * np.hypot(36, 27)  # px off the line


def test_what_is_not_drawn_on_stays(rng):
    picture = rng.integers(0, 256, (30, 40, 3), np.uint8)
    canvas = Canvas(picture)
    canvas.disc((35, 25), 3, INK)
    np.testing.assert_array_equal(canvas.picture()[:20], picture[:20])


def test_text_takes_as_much_room_as_said():
    picture = np.full((40, 400, 3), 255, np.uint8)
    write_text(picture, "477 matches, in all", (8, 29), 17, (40, 40, 40))
    rows, columns = (picture < 128).any(axis=2).nonzero()
    assert columns.min() >= 8
    assert 0 <= 8 + text_width("477 matches, in all", 17) - columns.max() < 4
    assert rows.min() > 29 - 17
    assert 29 < rows.max() < 29 + 6  # the comma
