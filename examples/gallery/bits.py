"""Bits instead of numbers.

A descriptor of 128 float32 takes 512 bytes, as bytes 128, as signs 16. How many right matches
are left between the portrait and its turned, darkened copy, beside ORB's 32 bytes? Matches
within 2 px of each other count once: ORB finds one place at several scales.
"""

import cv2
import numpy as np
from matplotlib.figure import Figure

import mkdesc
from mkdesc.evaluation.photographs.homography_scores import distinct_positions
from mkdesc.images.demo import photograph, warped

image = photograph()
copy, homography = warped(image)
methods = {
    "float32, 512 bytes": mkdesc.Features(1500),
    "uint8, 128 bytes": mkdesc.Features(1500, output="uint8"),
    "bits, 16 bytes": mkdesc.Features(1500, output="bits"),
    "ORB, 32 bytes": cv2.ORB_create(1500),
}
counts = []
for name, features in methods.items():
    (points_a, a), (points_b, b) = (features.detectAndCompute(i, None) for i in (image, copy))
    bits = "bits" in name or "ORB" in name
    pairs = mkdesc.match_descriptors(a, b, bits=bits).pairs
    here = np.array([points_a[i].pt for i in pairs[:, 0]])
    there = np.array([points_b[j].pt for j in pairs[:, 1]])
    truth = cv2.perspectiveTransform(here[None], homography)[0]
    right = np.linalg.norm(truth - there, axis=1) < 3
    counts.append([len(distinct_positions(here[which], 2.0)) for which in (right, ~right)])
figure = Figure(figsize=(7, 2.6), layout="constrained")
axes = figure.subplots()
right, wrong = np.transpose(counts)
axes.barh([*methods], right, label="right", color="#1f77b4")
axes.barh([*methods], wrong, left=right, label="wrong", color="#d8d8d8")
axes.invert_yaxis()
axes.set_xlabel("mutual nearest neighbours at distinct places")
axes.legend()
figure.savefig("bits.png", dpi=100)
