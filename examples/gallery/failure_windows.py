"""Failure: a facade of equal windows.

Every window looks like every other. Many matches agree on one geometry, but another one, a
window further, fits as well. The verdict is "ambiguous", not "verified".
"""

import cv2
import numpy as np

import mkdesc
from mkdesc.images import draw_matches

rng = np.random.default_rng(0)
facade = np.full((420, 900), 170, np.uint8)
for top in range(30, 380, 95):
    for left in range(30, 860, 75):
        cv2.rectangle(facade, (left, top), (left + 44, top + 64), 60, -1)
        cv2.line(facade, (left + 22, top), (left + 22, top + 64), 220, 3)
        cv2.line(facade, (left, top + 22), (left + 44, top + 22), 220, 3)
facade = cv2.GaussianBlur(facade, (0, 0), 1.0)
a, b = (facade[:, left : left + 560] + rng.normal(0, 4, (420, 560)) for left in (20, 250))
a, b = (np.clip(image, 0, 255).astype(np.uint8) for image in (a, b))
found = mkdesc.match_images(a, b)
print(found.verdict, "-", found.reason)
picture = draw_matches(a, b, found.points_a, found.points_b, f"verdict: {found.verdict}")
cv2.imwrite("failure_windows.jpg", picture)
