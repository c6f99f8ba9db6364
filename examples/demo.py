"""Match a photograph with a strong warp of itself, and count the matches that are right.

The photograph comes with matplotlib. The warp (turn, zoom, perspective, darkening, blur, noise) is
known, so every match can be checked. The same SIFT keypoints are described by OpenCV's SIFT, by
RootSIFT and by the bundled model. A picture goes to demo-output/matches.png, the two photographs
beside it, and a third one: slanted.png, the same seen from so far aside (a tilt of six) that only
`mkdesc match --wide` matches it.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np
from matplotlib import cbook

import mkdesc
from mkdesc.images.drawing import draw_matches

OUTPUT = Path("demo-output")
#: Keypoints per image, and how far in pixels a right match may be off.
KEYPOINTS, RIGHT = 1500, 3.0


def photograph() -> np.ndarray:
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        return cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_GRAYSCALE)


def warp(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A changed copy of the image and the homography from the image to it."""
    height, width = image.shape
    corners = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    moved = np.float32(
        [[150, 40], [width - 20, 130], [width - 90, height - 20], [10, height - 150]]
    )
    homography = cv2.getPerspectiveTransform(corners, moved)
    turn = np.eye(3)
    turn[:2] = cv2.getRotationMatrix2D((width / 2, height / 2), 35, 0.8)
    homography = turn @ homography
    copy = cv2.warpPerspective(image, homography, (width, height), flags=cv2.INTER_AREA)
    copy = cv2.GaussianBlur(copy, (0, 0), 0.8).astype(np.float32)
    copy = 255 * (copy / 255) ** 1.6 + np.random.default_rng(0).normal(0, 5, copy.shape)
    return np.clip(copy, 0, 255).astype(np.uint8), homography


def slant(image: np.ndarray) -> np.ndarray:
    """The photograph from far aside: compressed by six along a diagonal, in perspective."""
    height, width = image.shape
    turn = np.eye(3)
    turn[:2] = cv2.getRotationMatrix2D((width / 2, height / 2), 40, 1.0)
    middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    squeeze = np.array([[0.25, 0, width / 2], [0, 1.5, height / 2], [0, 4e-4, 1]])
    fine = np.array([[4, 0, 1.5], [0, 4, 1.5], [0, 0, 1]])
    large = cv2.warpPerspective(
        image, fine @ squeeze @ middle @ turn, (4 * width, 4 * height), flags=cv2.INTER_CUBIC
    )
    seen = cv2.resize(large, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32)
    seen = 255 * (seen / 255) ** 1.4 + np.random.default_rng(1).normal(0, 4, seen.shape)
    return np.clip(seen, 0, 255).astype(np.uint8)


class RootSIFT:
    """What SIFT's descriptors become by Arandjelovic and Zisserman's square root."""

    def __init__(self) -> None:
        self.sift = cv2.SIFT_create()

    def compute(
        self, image: np.ndarray, keypoints: list[cv2.KeyPoint]
    ) -> tuple[list[cv2.KeyPoint], np.ndarray]:
        """Keypoints, as they came, and their descriptors."""
        keypoints, found = self.sift.compute(image, keypoints)
        return keypoints, np.sqrt(found / found.sum(axis=1, keepdims=True))


def main() -> None:
    image = photograph()
    copy, homography = warp(image)
    features = mkdesc.Features(max_keypoints=KEYPOINTS)
    features.detectAndCompute(image)  # load the compiled code (compiled the first time)
    keypoints = [features.detect(picture) for picture in (image, copy)]
    xy = [np.array([point.pt for point in points]) for points in keypoints]
    truth = cv2.perspectiveTransform(xy[0][None], homography)[0]
    reachable = (np.linalg.norm(truth[:, None] - xy[1], axis=2).min(axis=1) <= RIGHT).sum()
    print(f"{len(xy[0])} and {len(xy[1])} keypoints; {reachable} have a true partner")
    for name, describer in {
        "OpenCV SIFT": cv2.SIFT_create(),
        "RootSIFT": RootSIFT(),
        "mkdesc": features,
    }.items():
        start = time.perf_counter()
        a, b = (
            describer.compute(picture, points)[1]
            for picture, points in zip((image, copy), keypoints, strict=True)
        )
        seconds = time.perf_counter() - start
        first, second = mkdesc.match_descriptors(a, b).pairs.T
        right = np.linalg.norm(truth[first] - xy[1][second], axis=1) <= RIGHT
        counted = f"{right.sum()} right of {len(first)} mutual matches ({100 * right.mean():.0f}%)"
        print(f"{name:<12} {counted}, described in {1000 * seconds:.0f} ms")
    picture = draw_matches(
        image, copy, xy[0][first[right]], xy[1][second[right]], f"mkdesc: {counted}"
    )
    OUTPUT.mkdir(exist_ok=True)
    pictures = {
        "photo.png": image,
        "warped.png": copy,
        "slanted.png": slant(image),
        "matches.png": picture,
    }
    for name, pixels in pictures.items():
        cv2.imwrite(str(OUTPUT / name), pixels)
    print(f"picture of the right ones: {OUTPUT / 'matches.png'}")


if __name__ == "__main__":
    main()
