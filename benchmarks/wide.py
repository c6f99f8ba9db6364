"""Pairs solved from wide viewpoints: RootSIFT, OpenCV's AffineFeature, mkdesc plain and wide.

A pair is solved if the mean error of the first image's corners is under 10 px; of slanted pairs,
whose corners may lie beyond the horizon, that of what both images show. Right matches are
verified ones within 3 px of where the true homography puts them, each pair of places once (3 px).
All sides look for a homography with MAGSAC++ at 2 px; RootSIFT and AffineFeature (OpenCV's ASIFT,
with SIFT) by mutual nearest neighbours, AffineFeature's by Lowe's ratio of 0.8 as in OpenCV's
sample. Beside the sequences there are slanted ones: a photograph seen from two sides at once, with
blur, noise and other light. And unrelated photographs, which must be refused.

    python benchmarks/wide.py [--data ../shared/data] [--keypoints 2000] [--all]
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from scipy.spatial import cKDTree

import mkdesc
from mkdesc.images.reading import read_gray

SOLVED, RIGHT, SAME = 10.0, 3.0, 3.0
#: Tilts of the two views of a slanted pair.
TILTS = ((1, 4), (1, 8), (2, 4), (2, 6), (3, 5), (4, 4), (3, 7), (5, 5))


class Pair(NamedTuple):
    name: str
    a: np.ndarray
    b: np.ndarray
    truth: np.ndarray
    #: Where in the first image the error is measured, (N, 2).
    places: np.ndarray


class Found(NamedTuple):
    a: np.ndarray
    b: np.ndarray
    matrix: np.ndarray | None


Match = Callable[[np.ndarray, np.ndarray], Found]


def sequences(data: Path, scenes: list[str] | None, all_pairs: bool) -> Iterator[Pair]:
    for folder in sorted((data / "sequences").iterdir()):
        if scenes is not None and folder.name not in scenes:
            continue
        to = {1: np.eye(3)} | {k: np.loadtxt(folder / f"H_1_{k}") for k in range(2, 7)}
        for i, j in itertools.combinations(range(1, 7), 2):
            if i == 1 or all_pairs:
                a, b = (read_gray(folder / f"{k}.png") for k in (i, j))
                height, width = a.shape
                corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
                truth = to[j] @ np.linalg.inv(to[i])
                yield Pair(f"{folder.name} {i}-{j}", a, b, truth, np.array(corners, float))


def seen_from(
    shape: tuple[int, int], tilt: float, rng: np.random.Generator, size: tuple[int, int]
) -> np.ndarray:
    """The homography of a camera that looks at the middle of a photograph from aside."""
    around = rng.uniform(0, 2 * np.pi)
    slant, roll = np.arccos(1 / tilt), rng.uniform(-0.6, 0.6) - around
    zoom = np.sqrt(np.prod(size) / np.prod(shape)) * rng.uniform(0.8, 1.4) * tilt**0.4
    focal = 1.3 * size[1]

    def turn(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    c, s = np.cos(slant), np.sin(slant)
    rotation = turn(roll) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ turn(around)
    plane = np.column_stack([rotation[:, :2], [0, 0, focal / zoom]])
    camera = np.array([[focal, 0, size[1] / 2], [0, focal, size[0] / 2], [0, 0, 1]])
    centre = np.array([[1, 0, -shape[1] / 2], [0, 1, -shape[0] / 2], [0, 0, 1]])
    return camera @ plane @ centre


def slanted(data: Path, count: int, seed: int = 0) -> Iterator[Pair]:
    rng = np.random.default_rng(seed)
    photos = sorted((data / "photos").glob("*.jpg"))
    size = (750, 1000)
    fine = np.array([[3, 0, 1], [0, 3, 1], [0, 0, 1.0]])
    for number in range(count):
        tilts = TILTS[number % len(TILTS)]
        path = photos[rng.integers(len(photos))]
        photo = read_gray(path)
        matrices = [seen_from(photo.shape, tilt, rng, size) for tilt in tilts]
        views = []
        for matrix in matrices:
            large = cv2.warpPerspective(
                photo, fine @ matrix, (3 * size[1], 3 * size[0]), flags=cv2.INTER_CUBIC
            )
            view = cv2.resize(large, size[::-1], interpolation=cv2.INTER_AREA)
            view = cv2.GaussianBlur(view, (0, 0), rng.uniform(0.5, 1.5)).astype(float)
            light = 255 * (view / 255) ** rng.uniform(0.6, 1.6) * rng.uniform(0.5, 1)
            noisy = light + rng.normal(0, rng.uniform(1, 5), size)
            views.append(np.clip(noisy, 0, 255).astype(np.uint8))
        grid = np.stack(np.meshgrid(*(np.linspace(0, n, 50) for n in photo.shape[::-1])), -1)
        shown = [mapped(grid.reshape(-1, 2), matrix) for matrix in matrices]
        both = np.all([(xy > 0) & (xy < size[::-1]) for xy in shown], axis=(0, 2))
        truth = matrices[1] @ np.linalg.inv(matrices[0])
        yield Pair(f"{path.stem} {tilts[0]}-{tilts[1]}", *views, truth, shown[0][both])


def unrelated(data: Path, count: int, seed: int = 0) -> Iterator[tuple[str, Path, Path]]:
    """Photographs of different scenes; lund and door are one place, and entry and castle."""
    photos = sorted((data / "photos").glob("*.jpg"))

    def scene(path: Path) -> str:
        name = path.stem.split("_")[0]
        return {"door": "lund", "entry": "castle"}.get(name, name)

    pairs = [(a, b) for a, b in itertools.combinations(photos, 2) if scene(a) != scene(b)]
    for index in np.random.default_rng(seed).permutation(len(pairs))[:count]:
        a, b = pairs[index]
        yield f"{a.stem} {b.stem}", a, b


def agreed(a: np.ndarray, b: np.ndarray) -> Found:
    found = mkdesc.verify_matches(a, b, "homography")
    return Found(a[found.inliers], b[found.inliers], found.matrix)


def rootsift(keypoints: int) -> Match:
    sift = cv2.SIFT_create(keypoints)

    def match(a: np.ndarray, b: np.ndarray) -> Found:
        (ka, da), (kb, db) = (sift.detectAndCompute(image, None) for image in (a, b))
        da, db = (np.sqrt(d / d.sum(axis=1, keepdims=True).clip(1e-9)) for d in (da, db))
        pairs = mkdesc.match_descriptors(da, db).pairs
        here, there = (np.array([k.pt for k in ks]) for ks in (ka, kb))
        return agreed(here[pairs[:, 0]], there[pairs[:, 1]])

    return match


def asift(keypoints: int) -> Match:
    detector = cv2.AffineFeature_create(cv2.SIFT_create(keypoints))

    def match(a: np.ndarray, b: np.ndarray) -> Found:
        (ka, da), (kb, db) = (detector.detectAndCompute(image, None) for image in (a, b))
        pairs = mkdesc.match_descriptors(da, db, mutual=False, ratio=0.8).pairs
        here, there = (np.array([k.pt for k in ks]) for ks in (ka, kb))
        return agreed(here[pairs[:, 0]], there[pairs[:, 1]])

    return match


def ours(keypoints: int, wide: bool) -> Match:
    features = mkdesc.Features(keypoints)

    def match(a: np.ndarray, b: np.ndarray) -> Found:
        found = mkdesc.match_images(a, b, features, geometry="homography", wide=wide)
        return Found(found.points_a[found.inliers], found.points_b[found.inliers], found.matrix)

    return match


def mapped(xy: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(np.asarray(xy, float).reshape(1, -1, 2), matrix)[0]


def error_of(pair: Pair, matrix: np.ndarray | None) -> float:
    if matrix is None:
        return np.inf
    off = mapped(pair.places, matrix) - mapped(pair.places, pair.truth)
    return float(np.linalg.norm(off, axis=1).mean())


def count_right(pair: Pair, found: Found) -> int:
    if not len(found.a):
        return 0
    near = np.linalg.norm(mapped(found.a, pair.truth) - found.b, axis=1) < RIGHT
    places = np.concatenate([found.a, found.b], axis=1)[near]
    if not len(places):
        return 0
    gone, count = np.zeros(len(places), bool), 0
    for index, others in enumerate(cKDTree(places).query_ball_point(places, SAME)):
        if not gone[index]:
            count, gone[others] = count + 1, True
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--scenes", nargs="*", help="sequences; default: all of them")
    parser.add_argument("--all", action="store_true", help="all pairs, not only with the first")
    parser.add_argument("--slanted", type=int, default=16, help="slanted pairs")
    parser.add_argument("--unrelated", type=int, default=100, help="unrelated photographs")
    parser.add_argument("--without", nargs="*", default=[], help="sides to leave out")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results-wide.json"))
    options = parser.parse_args()
    sides: dict[str, Match] = {
        "RootSIFT": rootsift(options.keypoints),
        "AffineFeature": asift(options.keypoints),
        "mkdesc": ours(options.keypoints, wide=False),
        "mkdesc, wide": ours(options.keypoints, wide=True),
    }
    sides = {name: match for name, match in sides.items() if name not in options.without}
    blank = np.random.default_rng(0).integers(0, 256, (200, 200), np.uint8)
    for match in sides.values():
        match(blank, blank)  # compiles
    rows = []
    kinds = {
        "sequences": sequences(options.data, options.scenes, options.all),
        "slanted": slanted(options.data, options.slanted),
    }
    print("pair: error / right matches / seconds of " + ", ".join(sides))
    for kind, pairs in kinds.items():
        for pair in pairs:
            cells = {}
            for name, match in sides.items():
                start = time.perf_counter()
                found = match(pair.a, pair.b)
                seconds = time.perf_counter() - start
                cells[name] = (error_of(pair, found.matrix), count_right(pair, found), seconds)
            rows.append({"kind": kind, "pair": pair.name, **cells})
            shown = "  ".join(f"{e:7.1f} {n:5d} {s:5.1f}" for e, n, s in cells.values())
            print(f"{pair.name:<22} {shown}", flush=True)
    for kind in kinds:
        for name in sides:
            cells = [row[name] for row in rows if row["kind"] == kind]
            if cells:
                solved = sum(error < SOLVED for error, _, _ in cells)
                right = sum(number for _, number, _ in cells)
                seconds = [s for _, _, s in cells]
                print(
                    f"{kind:<10} {name:<14} {solved:3d} of {len(cells)} solved, {right:6d} right, "
                    f"{np.median(seconds):5.2f} s (median), {max(seconds):5.1f} s at most"
                )
    accepted, slowest = [], 0.0
    features = mkdesc.Features(options.keypoints)
    for name, a, b in unrelated(options.data, options.unrelated):
        start = time.perf_counter()
        if mkdesc.match_images(a, b, features, wide=True).verified:
            accepted.append(name)
        slowest = max(slowest, time.perf_counter() - start)
    if options.unrelated:
        print(
            f"unrelated  {len(accepted)} of {options.unrelated} accepted {accepted}, "
            f"{slowest:.1f} s at most"
        )
    options.output.write_text(json.dumps({"pairs": rows, "accepted": accepted}, indent=1))
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
