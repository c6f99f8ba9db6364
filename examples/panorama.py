"""Stitch overlapping photographs into one panorama.

Each photograph is matched with the one before it. A camera that only turns moves its pixels by a
homography, which ``match_images`` finds; the product of these maps places every photograph in
the first one's frame. Photographs fade out towards their edges, so that seams do not show.
Without photographs of your own, it takes the two of a street that ``mkdesc demo`` writes. Between
them the camera did not only turn, but moved a little: near the posts on the right, the two differ.

``python examples/panorama.py LEFT.jpg MIDDLE.jpg RIGHT.jpg`` writes panorama.jpg.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import cv2
import numpy as np
from scipy.linalg import expm, logm

import mkdesc


def stitch(photographs: list[np.ndarray]) -> np.ndarray:
    """The panorama of photographs (H, W) or (H, W, 3), each overlapping the one before it."""
    maps = [np.eye(3)]  # from each photograph to the first
    for before, after in pairwise(photographs):
        found = mkdesc.match_images(after, before, geometry="homography")
        print(found)
        if not found.verified:
            raise SystemExit(f"photograph {len(maps) + 1} does not overlap the one before it")
        maps.append(maps[-1] @ found.matrix)
    # Seen along the mean of all directions, so that none is stretched more than it must be.
    unit = [one / np.cbrt(np.linalg.det(one)) for one in maps]
    middle = np.linalg.inv(expm(np.mean([logm(one).real for one in unit], axis=0)))
    maps = [middle @ one for one in maps]
    outlines = [_moved(_corners(image), one) for image, one in zip(photographs, maps, strict=True)]
    low = np.floor(np.min(outlines, axis=(0, 1)))
    width, height = (np.ceil(np.max(outlines, axis=(0, 1))) - low).astype(int)
    shift = np.array([[1, 0, -low[0]], [0, 1, -low[1]], [0, 0, 1]])
    total = np.zeros((height, width, *photographs[0].shape[2:]))
    weights = np.full((height, width), 1e-9)
    for image, one in zip(photographs, maps, strict=True):
        inside = np.pad(np.ones(np.subtract(image.shape[:2], 2), np.uint8), 1)
        fading = cv2.distanceTransform(inside, cv2.DIST_L2, 3)
        weight = cv2.warpPerspective(fading, shift @ one, (width, height))
        moved = cv2.warpPerspective(image, shift @ one, (width, height))
        total += moved * weight.reshape(*weight.shape, *[1] * (image.ndim - 2))
        weights += weight
    whole = total / weights.reshape(*weights.shape, *[1] * (total.ndim - 2))
    return np.clip(whole, 0, 255).astype(np.uint8)


def _corners(image: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    return np.array([[0, 0], [width, 0], [width, height], [0, height]], float)


def _moved(points: np.ndarray, homography: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(points[None], homography)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("photographs", nargs="*", help="default: the street of mkdesc demo")
    names = parser.parse_args().photographs or ["demo/street_b.jpg", "demo/street_a.jpg"]
    photographs = [cv2.imread(name) for name in names]
    for name, photograph in zip(names, photographs, strict=True):
        if photograph is None:
            parser.error(f"{name}: not a readable photograph")
    cv2.imwrite("panorama.jpg", stitch(photographs))
    print("written: panorama.jpg")


if __name__ == "__main__":
    main()
