"""One photograph as another sees it.

The second photograph of a street is laid over the first. No homography can do that: the camera
moved, so near things shift more than far ones, and the half-timbered house is doubled in the mean
of both. The field of displacements that ``by="flow"`` makes of matches follows depth; it has holes
where the other photograph shows nothing of it, or nothing with texture.
"""

import numpy as np
from matplotlib.figure import Figure

import mkdesc

names = "demo/street_a.jpg", "demo/street_b.jpg"
plane = mkdesc.align(*names, by="homography")
field = mkdesc.align(*names, by="flow")
print(plane.summary())
print(field.summary())


def mean_of_both(found):
    """Paler where only the first photograph shows something."""
    both = found.first / 2.0 + found.image / 2.0
    return np.where(found.seen[..., None], both, 150 + 0.4 * found.first)


pictures = {
    "A": plane.first,
    "B": mkdesc.align(names[1], names[1]).first,
    "mean of A and B by a homography": mean_of_both(plane),
    "mean of A and B by the field": mean_of_both(field),
}
figure = Figure(figsize=(10, 7.9), layout="constrained")
for axes, (title, picture) in zip(figure.subplots(2, 2).flat, pictures.items(), strict=True):
    axes.imshow(picture[..., ::-1].astype(np.uint8))
    axes.set_title(title, fontsize=11)
    axes.axis("off")
figure.savefig("align.jpg", dpi=100, pil_kwargs={"quality": 85})
