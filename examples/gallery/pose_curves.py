"""Pose curves.

Of each two of the eight views, the second camera is found relative to the first from 500
keypoints each. How large is the error of its rotation and direction? The cameras of this drawn
room are known. Each curve says which share of the 28 pairs is within an error.
"""

from itertools import combinations

import cv2
import numpy as np
from matplotlib.figure import Figure

import mkdesc
from mkdesc.images.demo import scene_views

views = scene_views()
camera = np.array([[600, 0, 319.5], [0, 600, 239.5], [0, 0, 1]])
methods = {
    "mkdesc": mkdesc.Features(500),
    "SIFT": cv2.SIFT_create(500),
    "ORB": cv2.ORB_create(500),
}


def rotation_of(view):
    sin = view.centre[0] / 10
    cos = np.sqrt(1 - sin**2)
    return np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])


def angle(a, b):
    return np.degrees(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1)))


figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
for name, features in methods.items():
    seen = [features.detectAndCompute(view.image, None) for view in views]
    errors = []
    for i, j in combinations(range(len(views)), 2):
        pairs = mkdesc.match_descriptors(seen[i][1], seen[j][1], bits=name == "ORB").pairs
        here = np.array([seen[i][0][k].pt for k in pairs[:, 0]])
        there = np.array([seen[j][0][k].pt for k in pairs[:, 1]])
        found, inliers = cv2.findEssentialMat(here, there, camera, cv2.USAC_MAGSAC, 0.9999, 1.0)
        _, rotation, direction, _ = cv2.recoverPose(found[:3], here, there, camera, mask=inliers)
        a, b = rotation_of(views[i]), rotation_of(views[j])
        truth = b @ a.T
        turned = np.degrees(np.linalg.norm(cv2.Rodrigues(rotation @ truth.T)[0]))
        errors.append(max(turned, angle(direction[:, 0], b @ (views[i].centre - views[j].centre))))
    axes.step([0, *sorted(errors), 20], [*np.linspace(0, 1, len(errors) + 1), 1], label=name)
axes.set(xlabel="error of the pose, degrees", ylabel="share of pairs", xlim=(0, 3), ylim=(0, 1.03))
axes.legend()
figure.savefig("pose_curves.png", dpi=100)
