"""Match a photograph with a strong warp of itself, and count the matches that are right.

The photographs are those of `mkdesc demo`, written to demo-output/ too. The warp (turn, zoom,
perspective, darkening, blur, noise) is known, so every match can be checked. The same SIFT
keypoints are described by OpenCV's SIFT, by RootSIFT and by the bundled model. A picture goes to
demo-output/matches.png.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np

import mkdesc
from mkdesc.images import draw_matches
from mkdesc.images.demo import photograph, warped, write_demo

OUTPUT = Path("demo-output")
#: Keypoints per image, and how far in pixels a right match may be off.
KEYPOINTS, RIGHT = 1500, 3.0


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
    copy, homography = warped(image)
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
    write_demo(OUTPUT)
    cv2.imwrite(str(OUTPUT / "matches.png"), picture)
    print(f"picture of the right ones: {OUTPUT / 'matches.png'}")


if __name__ == "__main__":
    main()
