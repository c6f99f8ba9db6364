"""A picture of two patches: their gradients, and where their similarity comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.descriptor import MKD, check_one_square
from mkdesc.images.reading import read_gray
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.kernels.patches import SMALLEST, one_patch, resize_patches
from mkdesc.kernels.pixelvalues import pixel_values
from mkdesc.kernels.preparation import Preparation
from mkdesc.visual.colours import DIVERGING, colour_map
from mkdesc.visual.inspection import contributions, product_scores
from mkdesc.visual.plotting import add_scale, draw_image, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Array = NDArray[np.float64]

#: Images of more pixels than this are not taken for patches.
MAX_PIXELS = 4_000_000


class Inspection(NamedTuple):
    """Two patches and why they are alike.

    Attributes
    ----------
    patches
        Both (W, W), as the descriptor takes them.
    maps
        (2, S, S): what each pixel adds to the score.
    score
        The cosine of the descriptors.
    products
        The cosines of the raw descriptors, product by product.
    preparation
        How the patches are prepared.
    """

    patches: tuple[NDArray[Any], NDArray[Any]]
    maps: Array
    score: float
    products: dict[str, float]
    preparation: Preparation


def read_patch(path: str | Path, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Read an image file as a square gray patch (W, W)."""
    image = read_gray(path, max_pixels)
    height, width = image.shape
    if height != width or width < SMALLEST:
        raise ValueError(
            f"{path}: expected a square patch of at least {SMALLEST} x {SMALLEST} px, got "
            f"{width} x {height}"
        )
    return image


def inspect_pair(p: ArrayLike, q: ArrayLike, mkd: MKD) -> Inspection:
    """Compare two patches (W, W) of any sizes by a descriptor; they are resampled to its size.

    Examples
    --------
    >>> p, q = np.random.default_rng(0).random((2, 64, 64))
    >>> found = inspect_pair(p, q, MKD("polar"))
    >>> bool(np.isclose(found.maps[0].sum(), found.score))
    True
    """
    check_one_square(mkd.fit(), "mkd", "an inspection")
    whole, size = as_parametrization(mkd.parametrization), int(mkd.patch_size)
    p, q = (
        patch if np.shape(patch)[-1:] == (size,) else resize_patches(patch, size)
        for patch in (np.asarray(p), np.asarray(q))
    )
    map_p, map_q, score = contributions(p, q, whole, mkd.effective_head())
    patches = one_patch(p, "p")[0], one_patch(q, "q")[0]
    maps = np.stack([map_p, map_q])
    return Inspection(patches, maps, score, product_scores(p, q, whole), whole.preparation)


def _gradient_picture(patch: NDArray[Any], preparation: Preparation) -> Array:
    """Gradients as colours (S, S, 3): hue by direction, the stronger the brighter."""
    from matplotlib.colors import hsv_to_rgb

    block, scale = one_patch(patch, "patch")
    values = pixel_values(block, preparation, scale)
    weight = values["weight"]
    hue = values["theta"] / (2 * np.pi) % 1
    picture: Array = hsv_to_rgb(np.stack([hue, np.ones_like(hue), weight / weight.max()], axis=-1))
    return picture


def _direction_wheel(axes: Any) -> None:
    """Which hue is which direction, in a corner of axes: a gradient points from bright to dark."""
    from matplotlib.colors import hsv_to_rgb

    y, x = np.mgrid[-1:1:65j, -1:1:65j]
    hue = np.arctan2(y, x) / (2 * np.pi) % 1
    ring = (np.hypot(x, y) <= 1).astype(float)
    colours = np.dstack([hsv_to_rgb(np.dstack([hue, ring, ring])), ring])
    draw_image(axes.inset_axes((0.02, 0.02, 0.2, 0.2), frameon=False), colours)


def inspection_figure(found: Inspection, names: tuple[str, str], title: str = "") -> Figure:
    """Two rows of pictures: patch, gradients, and what each pixel adds to the similarity."""
    figure = new_figure(7.6, 5.0)
    # Names of files may have dollar signs, which are not mathematics here.
    figure.suptitle(title, fontsize="medium", parse_math=False)
    grid = figure.subplots(2, 3)
    most = float(np.abs(found.maps).max()) or 1.0
    for axes, patch, values, name in zip(grid, found.patches, found.maps, names, strict=True):
        draw_image(axes[0], patch)
        axes[0].set_ylabel(name, parse_math=False)
        draw_image(axes[1], _gradient_picture(patch, found.preparation))
        image = draw_image(axes[2], values, cmap=colour_map(DIVERGING), vmin=-most, vmax=most)
    _direction_wheel(grid[0, 1])
    headings = (
        "patch",
        "gradients, from bright to dark\n(wheel: direction)",
        "what pixels add to the\nsimilarity: orange adds",
    )
    for axes, heading in zip(grid[0], headings, strict=True):
        axes.set_title(heading, fontsize="medium")
    scale = add_scale(figure, image, grid[:, 2], shrink=0.6)
    scale.set_label(f"per pixel; all of a patch add up to {found.score:.3g}", fontsize="small")
    return figure
