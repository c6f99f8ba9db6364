"""The figures show what they say."""

import numpy as np
import pytest

from mkdesc import VonMises, patch_map
from mkdesc.visual.extended import surroundings
from mkdesc.visual.figures import (
    choose_whitenings,
    combination_figure,
    draw_figures,
    kernels_figure,
    parametrizations_figure,
    whitening_figure,
)
from mkdesc.visual.plotting import add_scale, draw_map, new_figure, write_figure

pytest.importorskip("matplotlib")


def marks(figure):
    """Where pixels are marked: (x, y) by axes."""
    return [axes.lines[-1].get_xydata()[0].tolist() for axes in maps(figure)]


def maps(figure):
    """The axes that are no colour bars."""
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def test_the_kernels_drawn_are_the_paper_s():
    shown = [axes.get_title().split("\n") for axes in kernels_figure().axes]
    assert [words for words, _ in shown] == [
        "gradient angle",
        "polar position",
        "cartesian position",
    ]
    assert [numbers.strip("$") for _, numbers in shown] == [
        rf"\kappa = {k},\ N = {n}" for k, n in ((8, 3), (8, 2), (1, 1))
    ]
    for axes, (kappa, n) in zip(kernels_figure().axes, ((8, 3), (8, 2), (1, 1)), strict=True):
        exact, used = (line.get_xydata().T for line in axes.lines[:2])
        bessel = (np.exp(kappa * np.cos(exact[0])) - np.exp(-kappa)) / (2 * np.sinh(kappa))
        np.testing.assert_allclose(exact[1], bessel, atol=1e-12)
        a, b = VonMises(kappa, n).feature_map([0.0, used[0][40]])
        assert used[1][40] == pytest.approx(a @ b)


def test_every_map_has_ten_isocontours_and_its_pixel_marked():
    figure = parametrizations_figure()
    assert len(maps(figure)) == 8
    scales = [axes.child_axes for axes in figure.axes]
    assert [len(each) for each in scales] == [1] * 8  # each is on its own scale, with a colour bar
    assert "colour: how similar to p" in figure.get_supxlabel()
    assert marks(figure) == [[20, 20]] * 8
    values = patch_map((20, 30), "cartesian")
    axes = new_figure(2, 2).subplots()
    draw_map(axes, values, (20, 30))
    levels = axes.collections[-1].levels
    steps = np.diff([values.min(), *levels, values.max()])
    assert len(levels) == 10
    np.testing.assert_allclose(steps, steps[0])
    assert axes.lines[0].get_xydata().tolist() == [[30, 20]]  # x is the column
    assert axes.yaxis_inverted()


def test_grids_are_labelled():
    chosen = choose_whitenings()
    assert [axes.get_title() for axes in maps(whitening_figure(chosen))[:3]] == [
        "polar,\nraw",
        "polar,\nPCA",
        "polar,\nwhitened (LW)",
    ]
    combination = combination_figure(chosen)
    assert len(maps(combination)) == 18
    assert sum("(LW)" in axes.get_ylabel() for axes in combination.axes) == 3
    assert sum(axes.get_title().startswith("pixel p at") for axes in combination.axes) == 3
    assert combination.get_figwidth() < 8  # in a page, letters of wider pictures are too small
    assert len({tuple(mark) for mark in marks(combination)}) == 3


def test_zero_is_marked_and_ticks_are_round():
    """A map of two signs: where it is zero is known."""
    column = np.arange(9.0) - 4
    figure = new_figure(2, 2)
    axes = figure.subplots()
    bar = add_scale(figure, draw_map(axes, np.tile(100.3 * column, (9, 1))), axes)
    zero = next(c for c in axes.collections if list(getattr(c, "levels", [])) == [0])
    assert {x for path in zero.get_paths() for x, _ in path.vertices} == {4.0}
    assert [line.get_ydata()[0] for line in bar.ax.lines] == [0]
    assert set(bar.get_ticks()) >= {-200.0, 0.0, 200.0}
    draw_map(axes := new_figure(2, 2).subplots(), np.tile(column + 4, (9, 1)))
    assert all(list(getattr(c, "levels", [])) != [0] for c in axes.collections)


def test_given_whitenings_take_the_place_of_bundled_ones(tmp_path, shared):
    authors = shared / "golden/mkd-polar-64.safetensors"
    chosen = choose_whitenings([f"{authors}:liberty:pcawt", f"{authors}:liberty:lw", "paper"])
    assert chosen["polar-pca"].whitening.method == "pcawt"
    assert chosen["polar-cartesian-lw"].whitening.method == "gda"
    labels = [axes.get_title() for axes in maps(whitening_figure(chosen))[:3]]
    assert labels == ["polar,\nraw", "polar,\nPCAWT", "polar,\nwhitened (LW)"]
    with pytest.raises(ValueError, match=r"extended: learned on standard.* expected polar, cart"):
        choose_whitenings(["extended"])


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_files_are_of_their_kind_and_the_same_each_time(tmp_path, kind):
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    files = [tmp_path / f"{i}.{kind}" for i in range(2)]
    first, second = (write_figure(kernels_figure(), file).read_bytes() for file in files)
    assert first == second
    assert first.startswith(starts[kind])
    write_figure(kernels_figure(), files[1], few_colours=True)
    assert kind != "png" or files[1].stat().st_size < len(first) / 2


def test_bad_requests_write_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"formats: expected any of png, pdf, svg, got \['gif'\]"):
        draw_figures(tmp_path / "x", ["gif"])
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file: is a file, expected a folder"):
        draw_figures(tmp_path / "file")
    with pytest.raises(ValueError, match="output: expected a name ending in"):
        write_figure(new_figure(1, 1), tmp_path / "picture.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_flat_map_can_be_drawn():
    axes = new_figure(2, 2).subplots()
    draw_map(axes, np.zeros((8, 8)))
    assert not axes.lines


def test_surroundings_have_the_derivatives_they_are_drawn_for():
    small = 1e-3  # where tanh is nearly the identity
    picture = surroundings(np.pi / 2, 0.0, (small, 0.0, 0.0)) - surroundings(
        np.pi / 2, 0.0, (0.0, 0.0, 0.0)
    )
    assert picture[16, 16] == pytest.approx(0)
    assert picture[16, 0] > 0
    assert picture[16, 0] == pytest.approx(picture[16, 32])
    slope = surroundings(0.0, 0.0, (0.0, 0.0, 0.0))
    assert (np.diff(slope, axis=1) < 0).all()  # from bright on the left to dark
    assert (np.diff(slope, axis=0) == 0).all()
