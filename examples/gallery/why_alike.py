"""Why two patches are alike.

A match of the portrait and its copy that is neither very good nor bad (the median), and what
each pixel adds to the similarity.
"""

import mkdesc
from mkdesc.images import cut_patches
from mkdesc.images.demo import photograph, warped
from mkdesc.visual.inspection_figure import inspect_pair, inspection_figure

image = photograph()
copy, _ = warped(image)
found = mkdesc.match_images(image, copy)
good = found.inliers.nonzero()[0]
i, j = found.pairs[good[found.distances[good].argsort()[len(good) // 2]]]
patches = [
    cut_patches(image, found.keypoints_a[i][None], 64, 20.0)[0],
    cut_patches(copy, found.keypoints_b[j][None], 64, 20.0)[0],
]
inspection = inspect_pair(*patches, mkdesc.load_model("extended"))
figure = inspection_figure(
    inspection, ("portrait", "copy"), f"similarity {inspection.score:.2f} (extended)"
)
figure.savefig("why_alike.png", dpi=90)
