"""How far a picture may turn or shrink.

The portrait is turned, or made smaller, and matched with itself. A match is right within 3 px of
where the point really went, and right ones within 2 px of each other count once. All three find
up to 1,000 keypoints.
"""

import cv2
import numpy as np
from matplotlib.figure import Figure

import mkdesc
from mkdesc.evaluation.photographs.homography_scores import distinct_positions

image = cv2.imread("demo/photo.png", cv2.IMREAD_GRAYSCALE)
height, width = image.shape
methods = {
    "mkdesc": mkdesc.Features(1000),
    "SIFT": cv2.SIFT_create(1000),
    "ORB": cv2.ORB_create(1000),
}


def right_matches(name, features, degrees, scale):
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, scale)
    turn[:, 2] += 120  # room for corners
    copy = cv2.warpAffine(image, turn, (width + 240, height + 240), flags=cv2.INTER_AREA)
    (points_a, a), (points_b, b) = (features.detectAndCompute(i, None) for i in (image, copy))
    pairs = mkdesc.match_descriptors(a, b, bits=name == "ORB").pairs
    here = np.array([points_a[i].pt for i in pairs[:, 0]])
    there = np.array([points_b[j].pt for j in pairs[:, 1]])
    right = np.linalg.norm(here @ turn[:, :2].T + turn[:, 2] - there, axis=1) < 3
    return len(distinct_positions(here[right], 2.0))


figure = Figure(figsize=(8, 3.4), layout="constrained")
left, right = figure.subplots(1, 2, sharey=True)
degrees, scales = np.arange(0, 181, 15), np.linspace(1.0, 0.3, 8)
for name, features in methods.items():
    left.plot(degrees, [right_matches(name, features, d, 1.0) for d in degrees], label=name)
    right.plot(scales, [right_matches(name, features, 0, s) for s in scales], label=name)
left.set(xlabel="turned by, degrees", ylabel="right matches", ylim=(0, None))
right.set(xlabel="scale")
right.invert_xaxis()
left.legend()
figure.savefig("turning.png", dpi=100)
