"""A figure of our own: what the planes of the extended descriptor respond to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels.parametrization import EXTENDED, Parametrization
from mkdesc.visual.colours import LINES
from mkdesc.visual.patchmaps import patch_map
from mkdesc.visual.plotting import add_scale, draw_image, draw_map, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Array = NDArray[np.float64]

#: The pixel of the maps, (row, column).
PIXEL = (20, 20)

#: Second derivatives of unit strength: a bright line, upright and level, a dark upright line, a
#: bright blob, and a saddle.
_LINE = (-(0.5**0.5), -(0.5**0.5), 0.0)
_LEVEL = (-(0.5**0.5), 0.5**0.5, 0.0)
_VALLEY = (0.5**0.5, 0.5**0.5, 0.0)
_BLOB = (-1.0, 0.0, 0.0)
_SADDLE = (0.0, -1.0, 0.0)

#: How p looks in the maps: a bright line whose right side is darker.
LOOK: dict[str, Any] = {"theta": 0.0, "intensity": 0.5, "shape": _LINE}
#: What is different in q.
CHANGES: dict[str, dict[str, Any]] = {
    "q looks like p": {},
    "gradient turned": {"theta": np.pi / 2},
    "gradient reversed": {"theta": np.pi},
    "dark": {"intensity": -0.5},
    "line turned": {"shape": _LEVEL},
    "dark line": {"shape": _VALLEY},
}


def surroundings(theta: float, intensity: float, shape: tuple[float, float, float]) -> Array:
    """A picture (33, 33) of a pixel's surroundings: brightness, slope and curvature."""
    y, x = np.mgrid[-1:1:33j, -1:1:33j]
    l, d, e = shape  # noqa: E741
    curved = (l + d) * x**2 + (l - d) * y**2 + 2 * e * x * y
    slope = -(np.cos(theta) * x + np.sin(theta) * y) / 2
    picture: Array = np.tanh(intensity + slope + curved)
    return picture


def _product(index: int) -> Parametrization:
    return Parametrization((EXTENDED.products[index],), EXTENDED.preparation)


def _at_p(product: int, p: dict[str, Any], q: dict[str, Array]) -> Array:
    """The response of p to pixels at its own position whose looks are arrays (K,) or (K, 3)."""
    # The position plays no part here, so looks of q are looks of p, by symmetry.
    positions = np.tile(PIXEL, (len(next(iter(q.values()))), 1))
    looks = {f"p_{name}": value for name, value in (p | q).items()}
    looks |= {f"q_{name}": value for name, value in p.items()}
    return patch_map(positions, _product(product), **looks)[:, PIXEL[0], PIXEL[1]]


def _curves(panels: Any) -> None:
    """How the four products respond to what they look at, at p's own position."""
    turn = np.linspace(-np.pi, np.pi, 181)
    degrees = np.rad2deg(turn)
    gradient, intensity, shape, both = panels
    for axes in panels:
        axes.set_prop_cycle(color=LINES)
    gradient.plot(degrees, _at_p(0, LOOK, {"theta": turn}))
    gradient.set_title("gradient")
    z = np.linspace(-0.95, 0.95, 181)
    for value, name in ((0.5, "p bright"), (-0.5, "p dark")):
        look = LOOK | {"intensity": value}
        intensity.plot(z, _at_p(1, look, {"intensity": z}), label=name)
        both.plot(
            degrees,
            _at_p(3, LOOK, {"theta": turn, "intensity": np.full(181, value)}),
            label=name.replace("p", "q"),
        )
    intensity.set_title("intensity")
    intensity.set_xlabel("squeezed intensity z of q")
    half = turn / 2  # a line turned by half a turn is the same line
    lines = -np.stack([np.ones(181), np.cos(2 * half), np.sin(2 * half)], axis=-1) / np.sqrt(2)
    for form, name in ((_LINE, "p a line"), (_BLOB, "p a blob"), (_SADDLE, "p a saddle")):
        shape.plot(
            np.rad2deg(half), _at_p(2, LOOK | {"shape": form}, {"shape": lines}), label=name
        )
    shape.set_title("shape")
    shape.set_xlabel("angle of q, a line (degrees)")
    shape.set_xticks([-90, 0, 90])
    both.set_title(r"intensity $\times$ gradient")
    for axes in (gradient, both):
        axes.set_xlabel("gradient angle of q (degrees)")
        axes.set_xticks([-180, -90, 0, 90, 180])
    gradient.set_ylabel("response")
    for axes in panels:
        axes.axhline(0, color="0.5", linewidth=0.8, zorder=0)
        axes.tick_params(labelsize="small")
        axes.xaxis.label.set_size("small")
        if axes is not gradient:
            axes.margins(y=0.35 if axes is shape else 0.2)  # its legend has two lines
            axes.legend(fontsize="x-small", frameon=False, loc="lower center", ncols=2)


def extended_figure() -> Figure:
    """What the products of the extended descriptor respond to, and the maps of their sum."""
    figure = new_figure(9.6, 7.6)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[1, 2])[:, 0]
    _curves(top.subplots(1, 4))
    grid = bottom.subplots(3, len(CHANGES))
    p = {f"p_{name}": value for name, value in LOOK.items()}
    looks = [{f"q_{name}": value for name, value in (LOOK | c).items()} for c in CHANGES.values()]
    for axes, (name, change) in zip(grid[0], CHANGES.items(), strict=True):
        draw_image(axes, surroundings(**(LOOK | change)), vmin=-1, vmax=1)
        axes.set_title(name, fontsize="medium")
    rows = ((None, "similarity to p,\nraw"), ("extended", "similarity to p,\nwhitened"))
    for line, (whitening, title) in zip(grid[1:], rows, strict=True):
        maps = [patch_map(PIXEL, EXTENDED, whitening=whitening, **p, **look) for look in looks]
        limits = min(m.min() for m in maps), max(m.max() for m in maps)
        for axes, values in zip(line, maps, strict=True):
            image = draw_map(axes, values, PIXEL, limits)
        line[0].set_ylabel(title)
        add_scale(bottom, image, line, aspect=12)
    grid[0][0].set_ylabel("surroundings of q")
    return figure
