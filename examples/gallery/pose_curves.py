"""Pose curves.

Of each two of the eight views, the second camera is found relative to the first from 500
keypoints each, always by the same estimator. How large is the error of its rotation and
direction? The cameras of this drawn room are known. Each curve says which share of the 28 pairs
is within an error; dashed, the same matches were grown first.
"""

from itertools import combinations

import cv2
import numpy as np
from matplotlib.figure import Figure

import mkdesc
from mkdesc.images import Keypoints
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
for number, (name, features) in enumerate(methods.items()):
    seen = [features.detectAndCompute(view.image, None) for view in views]
    points = [Keypoints.from_opencv(keypoints) for keypoints, _ in seen]
    errors = {False: [], True: []}
    for i, j in combinations(range(len(views)), 2):
        pairs = mkdesc.match_descriptors(seen[i][1], seen[j][1], bits=name == "ORB").pairs
        both = views[i].image, views[j].image
        grown = mkdesc.grow_matches(*both, points[i], points[j], pairs)
        here, there = points[i].points[pairs[:, 0], :2], points[j].points[pairs[:, 1], :2]
        a, b = rotation_of(views[i]), rotation_of(views[j])
        for is_grown, matched in (False, (here, there)), (True, (grown.points_a, grown.points_b)):
            found = mkdesc.verify_matches(*matched, "essential", 1.0, cameras=(camera, camera))
            if found.matrix is None:
                errors[is_grown].append(np.inf)
                continue
            turned = np.degrees(np.linalg.norm(cv2.Rodrigues(found.rotation @ a @ b.T)[0]))
            moved = angle(found.translation, b @ (views[i].centre - views[j].centre))
            errors[is_grown].append(max(turned, moved))
    for is_grown, ones in errors.items():
        label, style = f"{name}, grown" if is_grown else name, "--" if is_grown else "-"
        shares = [*np.linspace(0, 1, len(ones) + 1), np.isfinite(ones).mean()]
        axes.step([0, *sorted(ones), 20], shares, style, color=f"C{number}", label=label)
axes.set(xlabel="error of the pose, degrees", ylabel="share of pairs", xlim=(0, 1), ylim=(0, 1.03))
axes.legend()
figure.savefig("pose_curves.png", dpi=100)
