"""What a descriptor sees.

Twelve verified matches of two views: the square around each keypoint, turned upright by its
angle, above its partner in the other view. These pixels are all that the descriptors are made
of.
"""

import cv2
import numpy as np

import mkdesc
from mkdesc.images import cut_patches

names = "demo/views/1.png", "demo/views/6.png"
found = mkdesc.match_images(*names, mkdesc.Features(1000))
large = found.inliers & (found.keypoints_a[found.pairs[:, 0], 2] > 3)
chosen = np.random.default_rng(1).permutation(found.pairs[large])[:12]
rows = []
for name, keypoints, which in zip(
    names, (found.keypoints_a, found.keypoints_b), chosen.T, strict=True
):
    image = cv2.imread(name, cv2.IMREAD_GRAYSCALE)
    patches = cut_patches(image, keypoints[which], 76, 20.0)
    framed = [cv2.copyMakeBorder(one, 3, 3, 3, 3, 0, value=255) for one in patches]
    rows.append(np.hstack(framed))
cv2.imwrite("patches.jpg", np.vstack(rows))
