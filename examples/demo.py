"""Match a photograph with a strong warp of itself, and count the matches that are right.

The photographs are those of `mkdesc demo`, written to demo-output/ too. The warp (turn, zoom,
perspective, darkening, blur, noise) is known, so every match can be checked. OpenCV's SIFT,
RootSIFT and mkdesc find and describe keypoints of their own, as many each. Right matches count
once for each place: SIFT repeats places with other angles. A picture goes to
demo-output/matches.png.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np

import mkdesc
from mkdesc.evaluation.photographs.homography_scores import distinct_positions
from mkdesc.images import draw_matches
from mkdesc.images.demo import photograph, warped, write_demo

OUTPUT = Path("demo-output")
#: Keypoints per image; how far in pixels a right match may be off; nearer ones are one place.
KEYPOINTS, RIGHT, PLACE = 1500, 3.0, 2.0


class RootSIFT:
    """What SIFT's descriptors become by Arandjelovic and Zisserman's square root."""

    def __init__(self) -> None:
        self.sift = cv2.SIFT_create(KEYPOINTS)

    def detectAndCompute(
        self, image: np.ndarray, mask: None
    ) -> tuple[list[cv2.KeyPoint], np.ndarray]:
        """Keypoints and their descriptors."""
        keypoints, found = self.sift.detectAndCompute(image, mask)
        return keypoints, np.sqrt(found / found.sum(axis=1, keepdims=True))


def main() -> None:
    image = photograph()
    copy, homography = warped(image)
    contenders = {
        "OpenCV SIFT": cv2.SIFT_create(KEYPOINTS),
        "RootSIFT": RootSIFT(),
        "mkdesc": mkdesc.Features(KEYPOINTS),
    }
    for name, features in contenders.items():
        features.detectAndCompute(image, None)  # compiled the first time, then only loaded
        start = time.perf_counter()
        found = [features.detectAndCompute(picture, None) for picture in (image, copy)]
        seconds = time.perf_counter() - start
        first, second = mkdesc.match_descriptors(found[0][1], found[1][1]).pairs.T
        here = np.array([found[0][0][i].pt for i in first])
        there = np.array([found[1][0][i].pt for i in second])
        truth = cv2.perspectiveTransform(here[None], homography)[0]
        right = np.linalg.norm(truth - there, axis=1) <= RIGHT
        distinct = len(distinct_positions(here[right], PLACE))
        counted = f"{distinct} right matches, precision {right.mean():.2f}"
        print(f"{name:<12} {counted}, {1000 * seconds:.0f} ms for both photographs")
    picture = draw_matches(image, copy, here[right], there[right], f"mkdesc: {counted}")
    write_demo(OUTPUT)
    cv2.imwrite(str(OUTPUT / "matches.png"), picture)
    print(f"picture of the right ones: {OUTPUT / 'matches.png'}")


if __name__ == "__main__":
    main()
