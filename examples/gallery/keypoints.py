"""Keypoints beside SIFT's.

The 200 strongest of either detector, with size and angle. SIFT's are blobs, some of them twice
at one place with two angles. The learned ones are what was found again in other views during
training, each place once.
"""

import cv2
import numpy as np

import mkdesc

image = cv2.imread("demo/photo.png", cv2.IMREAD_GRAYSCALE)[:360, :400]
large = cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
pictures = []
for name, detector in [("mkdesc", mkdesc.Features(200)), ("SIFT", cv2.SIFT_create(200))]:
    keypoints = [
        cv2.KeyPoint(2 * one.pt[0], 2 * one.pt[1], 2 * one.size, one.angle)
        for one in detector.detect(image, None)
    ]
    rich = cv2.DRAW_MATCHES_FLAGS_DRAW_RICH_KEYPOINTS
    picture = cv2.drawKeypoints(large, keypoints, None, (60, 190, 255), rich)
    cv2.putText(picture, name, (520, 700), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (255, 255, 255), 3, 16)
    pictures.append(picture)
cv2.imwrite("keypoints.jpg", np.hstack(pictures))
