"""Keypoints beside SIFT's.

The 300 strongest of either detector, with size and angle. SIFT's are blobs, some of them twice
at one place with two angles. The learned ones are what was found again in other views during
training, each place once. (`mkdesc features demo/street_a.jpg -o keypoints.jpg` draws such a
picture, too.)
"""

import cv2
import numpy as np

import mkdesc
from mkdesc.images import Keypoints, draw_keypoints

photograph = cv2.imread("demo/street_a.jpg")
gray = cv2.imread("demo/street_a.jpg", cv2.IMREAD_GRAYSCALE)
pictures = []
for name, detector in [("mkdesc", mkdesc.Features(300)), ("SIFT", cv2.SIFT_create(300))]:
    found = Keypoints.from_opencv(detector.detect(gray, None)).strongest(300)
    pictures.append(draw_keypoints(photograph, found.points, f"{name}: {len(found)} keypoints"))
gap = np.full((len(pictures[0]), 16, 3), 255, np.uint8)
cv2.imwrite("keypoints.jpg", np.hstack([pictures[0], gap, pictures[1]]))
