"""Photographs laid over each other, where the truth is known, beside OpenCV and scikit-image.

Real photographs of up to a megapixel are warped in known ways, and get another exposure and noise.
Each method finds where the pixels of the first are in the second. Counted are pixels that both
show: what share is found to a pixel (holes and refusals count as wrong), and the median error of
what is found. All in one thread, CPU seconds.

``python benchmarks/aligning.py``; ``--photographs 2`` for fewer. scikit-image is optional. What is
chosen in ``mkdesc.features.flow`` was chosen on ../shared/data/photos; these are others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

import mkdesc

try:
    from skimage.registration import optical_flow_tvl1, phase_cross_correlation
except ImportError:
    optical_flow_tvl1 = None

Array = np.ndarray
#: Pixels of a photograph, about; gain, offset and noise of the first one.
PIXELS, GAIN, OFFSET, NOISE = 1e6, 0.8, 12.0, 3.0
#: Photographs of a folder of data.
PHOTOGRAPHS = (
    "sequences/boat/1.png",
    "multiview/fountain-P11/images/0005.jpg",
    "sequences/leuven/1.png",
    "multiview/lund-door/images/DSC_0001.JPG",
    "sequences/trees/1.png",
    "multiview/fountain-P11/images/0000.jpg",
    "sequences/wall/1.png",
)


class Pair(NamedTuple):
    """Two photographs, and where each pixel of the first is in the second, less where it is."""

    first: Array
    second: Array
    field: Array

    def shown(self) -> Array:
        height, width = self.second.shape
        y, x = np.mgrid[: self.first.shape[0], : self.first.shape[1]]
        u, v = x + self.field[..., 0], y + self.field[..., 1]
        return (u >= 0) & (u <= width - 1) & (v >= 0) & (v <= height - 1)


def smooth_field(shape: tuple[int, int], most: float, rng: np.random.Generator) -> Array:
    """Displacements (H, W, 2) of at most so many pixels, that change over some 60 pixels."""
    field = np.stack([gaussian_filter(rng.normal(size=shape), 60) for _ in range(2)], axis=-1)
    return field * (most / np.linalg.norm(field, axis=2).max())


def by_matrix(shape: tuple[int, int], matrix: Array) -> Array:
    """Displacements (H, W, 2) by a homography."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    u, v, w = np.moveaxis(np.stack([x, y, np.ones(shape)], axis=-1) @ matrix.T, -1, 0)
    return np.stack([u / w - x, v / w - y], axis=-1)


def viewpoint(
    shape: tuple[int, int],
    rng: np.random.Generator,
    degrees: tuple[float, float] = (-20, 20),
    scales: tuple[float, float] = (0.8, 1.2),
) -> Array:
    """A homography (3, 3): turned, scaled, slanted, shifted."""
    height, width = shape
    angle, scale = np.deg2rad(rng.uniform(*degrees)), rng.uniform(*scales)
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    slant = rng.uniform(-0.15, 0.15, 2) / max(shape)
    middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    turned = np.array([[c, -s, 0], [s, c, 0], [*slant, 1]])
    shift = np.eye(3)
    shift[:2, 2] = np.array([width, height]) / 2 + rng.uniform(-40, 40, 2)
    return shift @ turned @ middle


def shifted(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    return np.full((*shape, 2), rng.uniform(-30, 30, 2))


#: Ways to move a photograph, by name.
WARPS: dict[str, Callable[[tuple[int, int], np.random.Generator], Array]] = {
    "a shift, up to 30 px": shifted,
    "small motion: a field, up to 4 px": lambda shape, rng: smooth_field(shape, 4, rng),
    "a homography: turned by up to 20 degrees, scaled by .8 to 1.2": lambda shape, rng: by_matrix(
        shape, viewpoint(shape, rng)
    ),
    "the same, and a field, up to 15 px": lambda shape, rng: (
        by_matrix(shape, viewpoint(shape, rng)) + smooth_field(shape, 15, rng)
    ),
    "a homography: turned by 40 to 90 degrees, scaled by .5 to .7": lambda shape, rng: by_matrix(
        shape, viewpoint(shape, rng, (40, 90), (0.5, 0.7))
    ),
}


def make_pair(file: Path, warp: str, rng: np.random.Generator) -> Pair:
    """A photograph, and the same warped, with another exposure and noise."""
    image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    scale = np.sqrt(PIXELS / image.size)
    second = image
    if scale < 1:
        second = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    field = WARPS[warp](second.shape, rng)
    y, x = np.mgrid[: second.shape[0], : second.shape[1]]
    at = [y + field[..., 1], x + field[..., 0]]
    seen = map_coordinates(second.astype(float), at, order=3, mode="constant")
    noisy = GAIN * seen + OFFSET + rng.normal(0, NOISE, seen.shape)
    return Pair(noisy.clip(0, 255).astype(np.uint8), second, field)


def by_mkdesc(way: str) -> Callable[[Array, Array], Array | None]:
    features = mkdesc.Features(2000, n_threads=1)

    def find(first: Array, second: Array) -> Array | None:
        geometry = "homography" if way == "homography" else "auto"
        grid = None if way == "homography" else 8
        found = mkdesc.match_images(first, second, features, geometry=geometry, grid=grid)
        if not found.verified:
            return None
        if way == "homography":
            return by_matrix(first.shape, found.matrix)
        return found.flow().field

    return find


def by_sift(first: Array, second: Array) -> Array | None:
    sift = cv2.SIFT_create(2000, enable_precise_upscale=True)
    (a, one), (b, two) = (sift.detectAndCompute(image, None) for image in (first, second))
    near = cv2.BFMatcher().knnMatch(one, two, k=2)
    good = [m for m, n in near if m.distance < 0.8 * n.distance]
    here, there = (
        np.array([points[i].pt for i in rows])
        for points, rows in (
            (a, [m.queryIdx for m in good]),
            (b, [m.trainIdx for m in good]),
        )
    )
    if len(good) < 4:
        return None
    matrix, _ = cv2.findHomography(here, there, cv2.USAC_MAGSAC, 2.0)
    return None if matrix is None else by_matrix(first.shape, matrix)


def by_ecc(first: Array, second: Array) -> Array | None:
    criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 100, 1e-6)
    start = np.eye(3, dtype=np.float32)
    try:
        _, matrix = cv2.findTransformECC(
            first, second, start, cv2.MOTION_HOMOGRAPHY, criteria, None, 5
        )
    except cv2.error:  # it did not converge
        return None
    return by_matrix(first.shape, matrix.astype(float))


def by_dis(first: Array, second: Array) -> Array | None:
    return cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM).calc(first, second, None)


def by_phase(first: Array, second: Array) -> Array | None:
    shift, _, _ = phase_cross_correlation(second, first, upsample_factor=20)
    return np.full((*first.shape, 2), shift[::-1])


def by_tvl1(first: Array, second: Array) -> Array | None:
    v, u = optical_flow_tvl1(first, second)
    return np.stack([u, v], axis=-1)


METHODS: dict[str, Callable[[Array, Array], Array | None]] = {
    "mkdesc, flow": by_mkdesc("flow"),
    "mkdesc, homography": by_mkdesc("homography"),
    "SIFT, ratio, MAGSAC homography": by_sift,
    "cv2.findTransformECC, homography": by_ecc,
    "cv2.DISOpticalFlow, medium": by_dis,
}
if optical_flow_tvl1 is not None:
    METHODS |= {
        "scikit-image, phase correlation": by_phase,
        "scikit-image, TV-L1 flow": by_tvl1,
    }


class Score(NamedTuple):
    within: float
    median: float
    covered: float
    seconds: float


def score(method: str, pair: Pair) -> Score:
    start = time.process_time()
    found = METHODS[method](pair.first, pair.second)
    seconds = time.process_time() - start
    if found is None:
        return Score(0, np.nan, 0, seconds)
    off = np.linalg.norm(found - pair.field, axis=2)[pair.shown()]
    known = np.isfinite(off)
    median = float(np.median(off[known])) if known.any() else np.nan
    return Score(float(np.mean(known & (off < 1))), median, float(known.mean()), seconds)


def unrelated(files: list[Path]) -> None:
    """Of two photographs that have nothing in common: the share of pixels that are said to be."""
    print("| photographs of different scenes | found |\n|---|---|")
    images = [
        make_pair(file, next(iter(WARPS)), np.random.default_rng(0)).second for file in files
    ]
    for method, find in METHODS.items():
        shares = []
        for first, other in zip(images, images[1:] + images[:1], strict=True):
            height, width = np.minimum(first.shape, other.shape)  # some need one size
            found = find(first[:height, :width].copy(), other[:height, :width].copy())
            shares.append(0 if found is None else np.isfinite(found[..., 0]).mean())
        print(f"| {method} | {np.mean(shares):.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--photographs", type=int, default=len(PHOTOGRAPHS))
    parser.add_argument("--methods", default="", help="only those with this in their names")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    for method in [one for one in METHODS if arguments.methods not in one]:
        del METHODS[method]
    files = [arguments.data / name for name in PHOTOGRAPHS[: arguments.photographs]]
    for find in METHODS.values():  # compile and load
        small = make_pair(files[0], next(iter(WARPS)), np.random.default_rng(9))
        find(*(image[:200, :300].copy() for image in small[:2]))
    print(
        f"{len(files)} photographs of up to a megapixel; share within 1 px of all that both show,"
    )
    print("median error of what is found, share of what is found, CPU seconds\n")
    for warp in WARPS:
        print(f"| {warp} | within 1 px | median, px | found | s |\n|---|---|---|---|---|")
        pairs = [make_pair(file, warp, np.random.default_rng(k)) for k, file in enumerate(files)]
        for method in METHODS:
            scores = [score(method, pair) for pair in pairs]
            within, _, covered, seconds = np.mean(scores, axis=0)
            medians = [one.median for one in scores if np.isfinite(one.median)]
            median = f"{np.median(medians):.2f}" if medians else "-"
            print(f"| {method} | {within:.3f} | {median} | {covered:.3f} | {seconds:.2f} |")
        print(flush=True)
    unrelated(files)


if __name__ == "__main__":
    main()
