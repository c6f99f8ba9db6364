"""From photograph to match: everybody's own keypoints and descriptors, in one run.

Planes (sequences with homographies): right matches at distinct places, precision, coverage, solved
homographies. Depth (views with known cameras): relative poses. Time: CPU seconds per megapixel,
and ``detectAndCompute`` by the clock beside OpenCV's SIFT and ORB.

    python benchmarks/matching.py [--data ../shared/data] [--peers ../shared/peers]
        [--keypoints 500 1000 2000 4000] [--draw PHOTOGRAPH PICTURE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import mkdesc
from mkdesc._support.installed import versions
from mkdesc.evaluation.photographs.base import Photograph, PhotographOptions
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.photographs.methods import get_method
from mkdesc.evaluation.photographs.pose import run_pose
from mkdesc.images.reading import read_gray

OURS = (
    "mkdesc",
    "mkdesc+photo-net",
    "mkdesc+upright",
    "mkdesc+photo-net+upright",
    "mkdesc+photo-64",
    "mkdesc+photo-bits+bits",
    "dog+photo-net",
    "sift+photo",
    "sift+photo-net",
)
#: Networks of others, by the beginning of their files.
PEERS = ("aliked", "xfeat")
PHOTOGRAPHS = (
    "multiview/fountain-P11/images/0003.jpg",
    "photos/castle_02.jpg",
    "photos/sacrecoeur_03.jpg",
)


def methods_with(peers: Path) -> list[str]:
    """RootSIFT first, with which all are compared; peers whose weights are not there are left."""
    found = [
        f"{kind}:{file}" for kind in PEERS for file in sorted(peers.glob(f"{kind}*.safetensors"))
    ]
    if not found:
        print(f"no weights of {', '.join(PEERS)} in {peers}: left out")
    return ["rootsift", *OURS, "orb", *found]


def planes(data: Path, methods: list[str], keypoints: int) -> dict[str, Any]:
    results = run_homography(
        data / "sequences", methods, options=PhotographOptions(keypoints), progress=_tell
    )
    print(f"\n{keypoints} keypoints\n\n{results.markdown()}", flush=True)
    return results.to_dict()


def depth(scene: Path, methods: list[str], keypoints: int) -> dict[str, Any]:
    options = PhotographOptions(keypoints, 1024)
    results = run_pose(scene, methods, options=options, progress=_tell)
    print(f"\n{scene.name}, {keypoints} keypoints\n\n{results.markdown()}", flush=True)
    return results.to_dict()


def _tell(what: str, done: int, total: int) -> None:
    if done in (1, total):
        print(f"  {time.strftime('%H:%M:%S')} {what} {done} of {total}", flush=True)


def timed_photographs(data: Path) -> Iterator[tuple[str, np.ndarray, int]]:
    """Photographs of one and two megapixels, and a frame of a video."""
    for name in PHOTOGRAPHS:
        image = read_gray(data / name)
        for pixels, keypoints in ((1e6, 2000), (2e6, 2000), (640 * 480, 1000)):
            scale = (pixels / image.size) ** 0.5
            how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
            small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=how)
            yield f"{Path(name).stem}, {small.shape[1]} x {small.shape[0]}", small, keypoints


def speed(image: np.ndarray, keypoints: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of detectAndCompute, the best of all rounds: by the clock, and of CPU."""
    contenders: dict[str, Any] = {
        "OpenCV SIFT": cv2.SIFT_create(keypoints),
        "OpenCV ORB": cv2.ORB_create(keypoints),
        "mkdesc": mkdesc.Features(keypoints),
        "mkdesc, photo-net": mkdesc.Features(keypoints, model="photo-net"),
        "mkdesc, dog": mkdesc.Features("dog", keypoints),
        "mkdesc, sift": mkdesc.Features("sift", keypoints),
    }
    found = {name: len(one.detectAndCompute(image, None)[0]) for name, one in contenders.items()}
    times: dict[str, list[list[float]]] = {name: [] for name in contenders}
    order = np.random.default_rng(0)
    for _ in range(rounds):
        # In a new order each time: what ran before leaves its traces in caches and clocks.
        for name in order.permutation(list(contenders)):
            start = time.perf_counter(), time.process_time()
            contenders[name].detectAndCompute(image, None)
            end = time.perf_counter(), time.process_time()
            times[name].append([1000 * (b - a) for a, b in zip(start, end, strict=True)])
    best = {name: np.min(rows, axis=0) for name, rows in times.items()}
    for name, (wall, cpu) in best.items():
        shares = best[name] / best["OpenCV SIFT"]
        print(
            f"  {name:<20} {found[name]:>5} keypoints  {wall:>6.1f} ms  {shares[0]:.2f} x SIFT"
            f"  {cpu:>6.1f} ms of CPU  {shares[1]:.2f} x SIFT",
            flush=True,
        )
    return {name: times.tolist() for name, times in best.items()}


def draw(photograph: Path, methods: list[str], picture: Path, keypoints: int = 300) -> None:
    """The keypoints of each method on one photograph, side by side, two in a row."""
    gray = read_gray(photograph)
    tiles = []
    for name in methods:
        found = get_method(name).extract(Photograph(photograph.name, gray), keypoints)
        tile = cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)
        for x, y in found.keypoints[:, :2]:
            cv2.circle(tile, (round(16 * x), round(16 * y)), 48, (0, 80, 255), 2, 16, 4)
        title = f"{name.partition(':')[0]}, {len(found.keypoints)}"
        cv2.putText(tile, title, (8, 24), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (0, 255, 255), 2, 16)
        tiles.append(tile)
    tiles += [np.zeros_like(tiles[0])] * (len(tiles) % 2)
    rows = [np.hstack(tiles[i : i + 2]) for i in range(0, len(tiles), 2)]
    cv2.imwrite(str(picture), np.vstack(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--peers", type=Path, default=Path("../shared/peers"))
    parser.add_argument("--methods", nargs="+", help="instead of ours and the peers")
    parser.add_argument("--keypoints", nargs="+", type=int, default=[500, 1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--parts", nargs="+", default=["speed", "planes", "depth"])
    parser.add_argument(
        "--draw",
        nargs=2,
        type=Path,
        metavar=("PHOTOGRAPH", "PICTURE"),
        help="only draw the keypoints of all methods on a photograph",
    )
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results-matching.json"))
    options = parser.parse_args()
    print(versions())
    methods = options.methods or methods_with(options.peers)
    if options.draw is not None:
        draw(options.draw[0], methods, options.draw[1])
        return
    results: dict[str, Any] = {"versions": versions()}
    if "speed" in options.parts:
        for title, image, keypoints in timed_photographs(options.data):
            print(f"\ndetectAndCompute, {title}")
            results[title] = speed(image, keypoints, options.rounds)
    for keypoints in options.keypoints if "planes" in options.parts else ():
        results[f"planes, {keypoints}"] = planes(options.data, methods, keypoints)
    for name in ("fountain-P11", "lund-door") if "depth" in options.parts else ():
        scene = options.data / "multiview" / name
        results[name] = depth(scene, methods, 1000)
    options.output.write_text(json.dumps(results, indent=1))
    print(f"\nwritten: {options.output}")


if __name__ == "__main__":
    main()
