"""Pairs solved from wide viewpoints: RootSIFT, OpenCV's AffineFeature, mkdesc plain and wide.

A pair is solved if the mean error of the first image's corners is under 10 px; of slanted pairs,
whose corners may lie beyond the horizon, that of what both images show. Right matches are
verified ones within 3 px of where the true homography puts them, each pair of places once (3 px).
All sides look for a homography with MAGSAC++ at 2 px; RootSIFT and AffineFeature (OpenCV's ASIFT,
with SIFT) by mutual nearest neighbours, AffineFeature's by Lowe's ratio of 0.8 as in OpenCV's
sample. What there is:

    sequences  the first image with the others, or --all-pairs
    slanted    a photograph seen from two sides at once, with blur, noise and other light
    unrelated  photographs of different scenes, and facades that look alike, which must be refused
    truth      pairs of the sequences that mkdesc, wide, has not solved: what the pixels say

    python benchmarks/wide.py [sequences slanted unrelated truth] [--data ../shared/data]

Results are kept in a file after each pair; what is in it is not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from scipy.spatial import cKDTree
from wide_pairs import Pair, mapped, sequences, slanted, unrelated
from wide_refused import refuse
from wide_truth import check

import mkdesc

SOLVED, RIGHT, SAME = 10.0, 3.0, 3.0
KINDS = ("sequences", "slanted", "unrelated", "truth")
WIDE = "mkdesc, wide"

Row = dict[str, Any]


class Found(NamedTuple):
    a: np.ndarray
    b: np.ndarray
    matrix: np.ndarray | None


Match = Callable[[np.ndarray, np.ndarray], Found]


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


def ours(keypoints: int, **options: Any) -> Match:
    features = mkdesc.Features(keypoints)

    def match(a: np.ndarray, b: np.ndarray) -> Found:
        found = mkdesc.match_images(a, b, features, geometry="homography", **options)
        return Found(found.points_a[found.inliers], found.points_b[found.inliers], found.matrix)

    return match


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


class Kept:
    """Rows by kind, pair and side, written to a file as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = json.loads(path.read_text()) if path.exists() else []

    def find(self, **known: object) -> Row | None:
        return next((row for row in self.rows if known.items() <= row.items()), None)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self._path.write_text(json.dumps(self.rows))


def timed(match: Match, a: np.ndarray, b: np.ndarray) -> tuple[Found, Row]:
    start, cpu = time.perf_counter(), time.process_time()
    found = match(a, b)
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    return found, took


def measure(kind: str, pairs: Iterator[Pair], sides: dict[str, Match], kept: Kept) -> None:
    print("pair: error / right matches / seconds of CPU time of " + ", ".join(sides))
    shown: dict[str, list[Row]] = {name: [] for name in sides}
    for pair in pairs:
        for name, match in sides.items():
            row = kept.find(kind=kind, pair=pair.name, side=name)
            if row is None:
                found, took = timed(match, pair.a, pair.b)
                row = {"kind": kind, "pair": pair.name, "side": name, **took}
                row["error"] = error_of(pair, found.matrix)
                row["right"], row["verified"] = count_right(pair, found), len(found.a)
                row["matrix"] = None if found.matrix is None else found.matrix.tolist()
                kept.add(row)
            shown[name].append(row)
        cells = [rows[-1] for rows in shown.values()]
        line = "  ".join(f"{c['error']:7.1f} {c['right']:5d} {c['cpu']:5.1f}" for c in cells)
        print(f"{pair.name:<22} {line}", flush=True)
    for name, rows in shown.items():
        solved = sum(row["error"] < SOLVED for row in rows)
        right = sum(row["right"] for row in rows)
        verified = sum(row["verified"] for row in rows)
        cpu = [row["cpu"] for row in rows] or [0.0]
        print(
            f"{kind:<10} {name:<14} {solved:3d} of {len(rows)} solved, {right:6d} right of "
            f"{verified:6d}, CPU {np.median(cpu):5.2f} s (median), {max(cpu):5.1f} s at most"
        )


def ask_the_pixels(pairs: Iterator[Pair], kept: Kept) -> None:
    """Of pairs that are not solved: is it the homography that was found, or the given one?"""
    print("correlation by the given homography, ours, the given one refined by ECC;")
    print("the last one's distance to the given one and to ours, px")
    for pair in pairs:
        row = kept.find(kind="sequences", pair=pair.name, side=WIDE)
        if row is not None and row["matrix"] is not None and row["error"] >= SOLVED:
            found = check(pair, np.array(row["matrix"]))
            cells = "  ".join(f"{x:.3f}" for x in found[:3])
            print(f"{pair.name:<22} {cells}  {found.from_given:5.1f} {found.from_ours:5.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[], metavar="kind", help=", ".join(KINDS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--scenes", nargs="*", help="sequences; default: all of them")
    parser.add_argument("--all-pairs", action="store_true", help="not only with the first image")
    parser.add_argument("--slanted", type=int, default=8, help="slanted pairs")
    parser.add_argument("--unrelated", type=int, default=300, help="unrelated pairs")
    parser.add_argument("--minutes", type=float, default=600, help="of wide searches in those")
    parser.add_argument("--part", default="1/1", help="K/N of the unrelated pairs")
    parser.add_argument("--without", nargs="*", default=[], help="sides to leave out")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results-wide.json"))
    options = parser.parse_args()
    kinds = options.kinds or KINDS
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"kinds: expected some of {', '.join(KINDS)}, got {unknown}")
    sides: dict[str, Match] = {
        "RootSIFT": rootsift(options.keypoints),
        "AffineFeature": asift(options.keypoints),
        "mkdesc": ours(options.keypoints),
        WIDE: ours(options.keypoints, wide=True, limit=600),
    }
    sides = {name: match for name, match in sides.items() if name not in options.without}
    if {"sequences", "slanted"} & set(kinds):
        noise = np.random.default_rng(0).integers(0, 256, (200, 200), np.uint8)
        for match in sides.values():
            match(noise, noise)  # compiles
    kept = Kept(options.output)

    def of_sequences() -> Iterator[Pair]:
        return sequences(options.data, options.scenes, options.all_pairs)

    if "sequences" in kinds:
        measure("sequences", of_sequences(), sides, kept)
    if "slanted" in kinds:
        measure("slanted", slanted(options.data, options.slanted), sides, kept)
    if "unrelated" in kinds:
        features = mkdesc.Features(options.keypoints)
        part, parts = map(int, options.part.split("/"))
        pairs = unrelated(options.data, options.unrelated)[part - 1 :: parts]
        refuse(options.data, pairs, options.minutes, features, kept.find, kept.add)
    if "truth" in kinds:
        ask_the_pixels(of_sequences(), kept)


if __name__ == "__main__":
    main()
