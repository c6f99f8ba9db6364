"""Match a photograph with a strong warp of itself, and count the matches that are right.

The photograph comes with matplotlib. The warp (turn, zoom, perspective, darkening, blur, noise) is
known, so every match can be checked. The same SIFT keypoints are described by OpenCV's SIFT, by
RootSIFT and by the bundled model. A picture goes to demo-output/matches.png.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np
from matplotlib import cbook

import mkdesc
from mkdesc.images.cutting import cut_patches
from mkdesc.images.keypoints import detect_keypoints

OUTPUT = Path("demo-output")
#: Keypoints per image, side of a patch in units of sigma, and how far a right match may be off.
KEYPOINTS, SIDE, RIGHT = 1500, 20, 3.0


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


def mutual_matches(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    similarity = a @ b.T
    forward, backward = similarity.argmax(axis=1), similarity.argmax(axis=0)
    first = np.flatnonzero(backward[forward] == np.arange(len(a)))
    return first, forward[first]


def main() -> None:
    image = photograph()
    copy, homography = warp(image)
    keypoints = [detect_keypoints(picture, KEYPOINTS) for picture in (image, copy)]
    sift = cv2.SIFT_create()

    def describe_sift(picture: np.ndarray, points: list[cv2.KeyPoint]) -> np.ndarray:
        found = sift.compute(picture, points)[1]
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def describe_rootsift(picture: np.ndarray, points: list[cv2.KeyPoint]) -> np.ndarray:
        found = sift.compute(picture, points)[1]
        return np.sqrt(found / found.sum(axis=1, keepdims=True))

    def describe_mkdesc(picture: np.ndarray, points: list[cv2.KeyPoint]) -> np.ndarray:
        return mkdesc.describe(cut_patches(picture, points, 64, SIDE))

    describe_mkdesc(image, keypoints[0][:1])  # load the compiled code (compiled the first time)
    xy = [np.array([point.pt for point in points]) for points in keypoints]
    truth = cv2.perspectiveTransform(xy[0][None], homography)[0]
    reachable = (np.linalg.norm(truth[:, None] - xy[1], axis=2).min(axis=1) <= RIGHT).sum()
    print(f"{len(xy[0])} and {len(xy[1])} keypoints; {reachable} have a true partner")
    for name, describe in {
        "OpenCV SIFT": describe_sift,
        "RootSIFT": describe_rootsift,
        "mkdesc": describe_mkdesc,
    }.items():
        start = time.perf_counter()
        a, b = (describe(*pair) for pair in zip((image, copy), keypoints, strict=True))
        seconds = time.perf_counter() - start
        first, second = mutual_matches(a, b)
        right = np.linalg.norm(truth[first] - xy[1][second], axis=1) <= RIGHT
        print(
            f"{name:<12} {right.sum():>4} right of {len(first)} mutual matches "
            f"({100 * right.mean():.0f}%), described in {1000 * seconds:.0f} ms"
        )
    matches = [
        cv2.DMatch(int(i), int(j), 0) for i, j in zip(first[right], second[right], strict=True)
    ]
    picture = cv2.drawMatches(
        image, keypoints[0], copy, keypoints[1], matches, None, matchColor=(80, 200, 80), flags=2
    )
    OUTPUT.mkdir(exist_ok=True)
    cv2.imwrite(str(OUTPUT / "matches.png"), picture)
    print(f"picture of the right ones: {OUTPUT / 'matches.png'}")


if __name__ == "__main__":
    main()
