"""Patch maps.

How similar is the marked pixel of one patch to a pixel at each place of another? The polar
kernel follows a turn of the gradient around the centre, the cartesian one stays where it is. The
gradient of the second pixel is turned by 0, 22.5 and 45 degrees.
"""

import numpy as np

import mkdesc
from mkdesc.visual.plotting import draw_map, new_figure

pixel, turns = (20, 20), (0, 22.5, 45)
figure = new_figure(7.2, 4.8)
grid = figure.subplots(2, 3)
for row, kind in zip(grid, ("polar", "cartesian"), strict=True):
    for axes, degrees in zip(row, turns, strict=True):
        values = mkdesc.patch_map(pixel, kind, q_theta=-np.radians(degrees))
        draw_map(axes, values, pixel)
        axes.set_title(f"{kind}, {degrees} degrees", fontsize="medium")
figure.savefig("patch_maps.png", dpi=90)
