"""Matches grown by the photographs: how many are right, how exact, and what they cost.

``python benchmarks/growing.py graf bark`` for these sequences of ../shared/data/sequences, all
without a name; ``--parts speed`` and no others. Sequences to choose by: bark, bikes, graf, ubc.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch

import mkdesc
from mkdesc.datasets.poses import read_pose_pairs
from mkdesc.evaluation.photographs.homography_scores import (
    DISTINCT,
    RIGHT,
    area_under_errors,
    distinct_positions,
    moved,
)
from mkdesc.geometry import Camera
from mkdesc.images import read_gray
from mkdesc.matching.growing.dense import grow_dense
from mkdesc.matching.growing.fitting import EXACT, ROUGH, fit_places
from mkdesc.matching.growing.fitting_torch import make_fitter
from mkdesc.matching.growing.grow import grow_matches
from mkdesc.matching.growing.pyramid import make_pyramid

Floats = np.ndarray
#: Pixels of the longer side of photographs of scenes, and degrees up to which poses count.
SIDE, DEGREES = 1024, (1.0, 2.0, 5.0, 10.0)


class Seen(NamedTuple):
    """A photograph with its keypoints (N, 4) and descriptors."""

    image: Any
    points: Floats
    descriptors: Floats


class Methods:
    """Ways to keypoints and descriptors; CPU seconds that each took, and for how many images."""

    def __init__(self, keypoints: int) -> None:
        self.keypoints = keypoints
        self.features, self.sift = mkdesc.Features(keypoints), cv2.SIFT_create(keypoints)
        self.seconds = {"rootsift": [], "default": [], "half size": []}

    def see(self, method: str, image: Floats) -> Seen:
        start = time.process_time()
        seen = getattr(self, f"_{method.replace(' ', '_')}")(image)
        self.seconds[method].append(time.process_time() - start)
        return seen

    def _rootsift(self, image: Floats) -> Seen:
        keypoints, found = self.sift.detectAndCompute(image, None)
        points = mkdesc.images.Keypoints.from_opencv(keypoints)
        chosen = points.strongest_first(self.keypoints)  # OpenCV gives more if some are equal
        roots = np.sqrt(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-9))
        return Seen(image, points.points[chosen], roots[chosen].astype(np.float32))

    def _default(self, image: Floats) -> Seen:
        found, descriptors = self.features.extract(image)
        return Seen(image, found.points, descriptors)

    def _half_size(self, image: Floats) -> Seen:
        """Found and described in the photograph of half the size."""
        height, width = image.shape
        half = cv2.resize(image, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
        _, points, descriptors = self._default(half)
        share = np.array([width / half.shape[1], height / half.shape[0]])
        places = (points[:, :2] + 0.5) * share - 0.5
        return Seen(image, np.column_stack([places, 2 * points[:, 2], points[:, 3]]), descriptors)


class Found(NamedTuple):
    points_a: Floats
    points_b: Floats
    seconds: float


def match(a: Seen, b: Seen, grown: bool, threads: int = 1) -> Found:
    pairs = mkdesc.match_descriptors(a.descriptors, b.descriptors, ratio=None).pairs
    start = time.process_time()
    if not grown:
        return Found(a.points[pairs[:, 0], :2], b.points[pairs[:, 1], :2], 0)
    found = grow_matches(a.image, b.image, a.points, b.points, pairs, n_threads=threads)
    return Found(found.points_a, found.points_b, time.process_time() - start)


def speed(data: Path, rounds: int = 5) -> None:
    """Of a fit, of both pyramids, and of a pair with 2000 keypoints each; the best of rounds."""
    a, b = (read_gray(data / "sequences" / "graf" / f"{k}.png") for k in (1, 3))
    big = tuple(cv2.resize(image, (1400, 1071)) for image in (a, b))
    methods = Methods(2000)
    for name, images in (("graf 1-3, 800 x 640", (a, b)), ("the same, 1400 x 1071", big)):
        one, two = (methods.see("default", image) for image in images)
        pairs = mkdesc.match_descriptors(one.descriptors, two.descriptors, ratio=None).pairs
        pyramids = [make_pyramid(image) for image in images]
        tensors = make_fitter(torch.device("cpu"), *pyramids)
        found = grow_matches(*pyramids, one.points, two.points, pairs, n_threads=1)
        guess = np.column_stack([found.points_b + 0.7, found.maps.reshape(-1, 4)])
        print(f"\n{name}, {len(one.points)} and {len(two.points)} keypoints, {len(pairs)} pairs")
        k = one.points, two.points, pairs
        seconds = fastest(lambda images=images: [make_pyramid(i) for i in images], rounds)
        print(f"pyramids of both, ms: {1e3 * seconds:.1f}")
        seconds = fastest(lambda i=images, k=k: grow_matches(*i, *k, n_threads=1), rounds)
        print(f"grown from both, with pyramids, ms: {1e3 * seconds:.1f}")
        for label, level, rule in (("rough", 1, ROUGH), ("exact", 0, EXACT)):
            arguments = *pyramids, found.points_a, guess, level, rule
            for how, fit in (("", fit_places), (" by PyTorch", tensors)):
                seconds = fastest(lambda fit=fit, given=arguments: fit(*given), rounds)
                print(f"one {label} fit{how} from 1 px away, us: {1e6 * seconds / len(guess):.2f}")
        for grid in (8, 4):
            arguments = *pyramids, found, grid
            seconds = fastest(lambda given=arguments: grow_dense(*given, n_threads=1), 2)
            dense = grow_dense(*pyramids, found, grid)
            print(f"grid={grid}, s of CPU: {seconds:.2f}, {len(dense.points_a)} places")


def fastest(call: Any, rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def planes(data: Path, names: list[str], keypoints: int) -> None:
    """Right matches that are 2 px apart in the first photograph, beside RootSIFT's."""
    rows = [
        ("rootsift", False),
        ("default", False),
        ("rootsift", True),
        ("default", True),
        ("half size", True),
    ]
    methods = Methods(keypoints)
    scores: dict[tuple[str, bool], dict[str, Floats]] = {row: {} for row in rows}
    for name in names:
        folder = data / "sequences" / name
        images = [read_gray(folder / f"{k}.png") for k in range(1, 7)]
        for method in ("rootsift", "default", "half size"):
            seen = [methods.see(method, image) for image in images]
            for grown in (False, True):
                if (method, grown) not in rows:
                    continue
                score = np.zeros(5)
                for k in range(1, 6):
                    truth = np.loadtxt(folder / f"H_1_{k + 1}")
                    truth /= truth[2, 2]
                    found = match(seen[0], seen[k], grown)
                    off = np.linalg.norm(moved(found.points_a, truth) - found.points_b, axis=1)
                    right = found.points_a[off <= RIGHT]
                    distinct = len(distinct_positions(right, DISTINCT))
                    score += [distinct, len(right), len(off), (off <= 1).sum(), found.seconds]
                scores[method, grown][name] = score
    print(f"\n{keypoints} keypoints; {', '.join(names)}")
    print("| | distinct right | x RootSIFT | precision | within 1 px | ms a pair | by sequence |")
    print("|---|---|---|---|---|---|---|")
    base = sum(scores["rootsift", False].values())[0]
    for (method, grown), by_name in scores.items():
        distinct, right, count, near, seconds = sum(by_name.values())
        each = "; ".join(
            f"{name} {score[0] / scores['rootsift', False][name][0]:.2f} {score[1] / score[2]:.3f}"
            for name, score in by_name.items()
        )
        print(
            f"| {method}{', grown' if grown else ''} | {distinct:.0f} | {distinct / base:.2f} "
            f"| {right / count:.3f} | {near:.0f} | {1e3 * seconds / 5 / len(names):.0f} | {each} |"
        )
    for method, seconds in methods.seconds.items():
        print(f"{method}: {1e3 * np.median(seconds):.1f} ms of CPU a photograph")


def depth(scene: Path, keypoints: int) -> None:
    """Relative poses by PoseLib, with the true intrinsics and 1 px."""
    import poselib

    methods, images, seen = Methods(keypoints), {}, {}
    pairs = read_pose_pairs(scene)
    for path in {path for pair in pairs for path in pair.images}:
        image = read_gray(path)
        share = SIDE / max(image.shape)
        size = tuple(round(side * share) for side in image.shape[::-1])
        small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        images[path] = small, np.array(small.shape[::-1]) / image.shape[::-1]
    print(f"\n{scene.name}, {len(pairs)} pairs, {keypoints} keypoints: AUC at {DEGREES} degrees")
    for method in ("rootsift", "default", "half size"):
        seen = {path: methods.see(method, image) for path, (image, _) in images.items()}
        for grown in (False, True):
            errors = []
            for pair in pairs:
                found = match(*(seen[path] for path in pair.images), grown)
                cameras = [
                    pinhole(camera, images[path][1], images[path][0].shape)
                    for camera, path in zip(pair.cameras, pair.images, strict=True)
                ]
                errors.append(np.inf)
                if len(found.points_a) >= 5:
                    pose, _ = poselib.estimate_relative_pose(
                        *(found.points_a + 0.5, found.points_b + 0.5, *cameras),
                        *({"max_epipolar_error": 1.0}, {}),
                    )
                    errors[-1] = degrees_off(pose.R, pose.t, pair.rotation, pair.translation)
            areas = " ".join(f"{100 * area:.1f}" for area in area_under_errors(errors, DEGREES))
            print(f"{method}{', grown' if grown else ''}: {areas}")


def pinhole(camera: Camera, share: Floats, shape: tuple[int, int]) -> dict[str, Any]:
    """A camera of PoseLib's, whose first pixel has its centre at one half."""
    focal, centre = camera.matrix[[0, 1], [0, 1]] * share, (camera.matrix[:2, 2] + 0.5) * share
    return {"model": "PINHOLE", "width": shape[1], "height": shape[0], "params": [*focal, *centre]}


def degrees_off(rotation: Floats, shift: Floats, true: Floats, true_shift: Floats) -> float:
    """The larger error, of the rotation and of the direction of the translation."""
    turned = np.arccos(np.clip((np.trace(rotation.T @ true) - 1) / 2, -1, 1))
    cosine = abs(shift @ true_shift) / np.linalg.norm(shift) / np.linalg.norm(true_shift)
    return float(np.degrees(max(turned, np.arccos(np.clip(cosine, 0, 1)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sequences", nargs="*", help="names of sequences; none: all")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keypoints", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", default=["speed", "planes", "depth"])
    options = parser.parse_args()
    if "speed" in options.parts:
        speed(options.data)
    if "planes" in options.parts:
        folders = sorted(path.name for path in (options.data / "sequences").iterdir())
        planes(options.data, options.sequences or folders, options.keypoints)
    for scene in ("fountain-P11", "lund-door") if "depth" in options.parts else ():
        depth(options.data / "multiview" / scene, options.keypoints)


if __name__ == "__main__":
    main()
