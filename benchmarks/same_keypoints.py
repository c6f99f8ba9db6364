"""Descriptors on the same keypoints: right matches between photographs, beside RootSIFT's.

From photograph to match, with everybody's own keypoints: benchmarks/matching.py.

Planar scenes (sequences with homographies) and true 3-D ones (views with known cameras). Every
descriptor gets the same keypoints; what is counted are mutual nearest neighbours, and those of
them that are right: within 3 px of where the homography says, or within 2 px of the epipolar
line. The first column of the planar tables is how many keypoints have a true partner at all.

    python benchmarks/same_keypoints.py [--data ../shared/data] [--models photo default] [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

import mkdesc
from mkdesc.features.choices import SIDE
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.registry import make_detector
from mkdesc.images.reading import read_gray

SIDES = (12, 16, 20, 24, 28)
#: Keypoints per image; pixels a right match may be off, planar and from the epipolar line.
KEYPOINTS, PLANAR, EPIPOLAR = 1000, 3.0, 2.0
#: Views of a 3-D scene that are at most so many apart are matched.
GAP = 3

Describe = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Pair(NamedTuple):
    """Two images, and which of given matches (M, 2), (M, 2) are right."""

    scene: str
    images: tuple[Path, Path]
    right: Callable[[np.ndarray, np.ndarray], np.ndarray]
    homography: np.ndarray | None = None


def planar_pairs(data: Path) -> Iterator[Pair]:
    for folder in sorted((data / "sequences").iterdir()):
        for k in range(2, 7):
            homography = np.loadtxt(folder / f"H_1_{k}")

            def right(a: np.ndarray, b: np.ndarray, h: np.ndarray = homography) -> np.ndarray:
                return np.linalg.norm(moved(a, h) - b, axis=1) <= PLANAR

            images = (folder / "1.png", folder / f"{k}.png")
            yield Pair(folder.name, images, right, homography)


def moved(xy: np.ndarray, homography: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(xy[:, None].astype(float), homography)[:, 0]


def epipolar_pairs(scene: str, cameras: dict[Path, Any]) -> Iterator[Pair]:
    """Pairs of views; a camera is the projection (3, 4) and what undoes the lens distortion."""
    views = sorted(cameras.items())
    for (i, (a, (p, plain_a))), (j, (b, (q, plain_b))) in itertools.combinations(
        enumerate(views), 2
    ):
        if j - i > GAP:
            continue
        centre = np.linalg.svd(p)[2][-1]
        x, y, z = q @ centre
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        fundamental = cross @ q @ np.linalg.pinv(p)

        def right(
            xa: np.ndarray,
            xb: np.ndarray,
            f: np.ndarray = fundamental,
            plain: Any = (plain_a, plain_b),
        ) -> np.ndarray:
            one = np.column_stack([plain[0](xa), np.ones(len(xa))])
            two = np.column_stack([plain[1](xb), np.ones(len(xb))])
            along, back = one @ f.T, two @ f
            value = np.abs((two * along).sum(axis=1))
            length = np.minimum(
                np.linalg.norm(along[:, :2], axis=1), np.linalg.norm(back[:, :2], axis=1)
            )
            return value <= EPIPOLAR * length

        yield Pair(scene, (a, b), right)


def strecha_cameras(folder: Path) -> dict[Path, Any]:
    cameras = {}
    for image in sorted((folder / "images").iterdir()):
        rows = (folder / "cameras" / f"{image.name}.camera").read_text().split()
        numbers = np.array(rows, float)
        k, r, centre = numbers[:9].reshape(3, 3), numbers[12:21].reshape(3, 3), numbers[21:24]
        k = np.diag([0.5, 0.5, 1]) @ k  # the images are half of what the cameras say
        cameras[image] = k @ np.column_stack([r.T, -r.T @ centre]), lambda xy: xy
    return cameras


def colmap_cameras(folder: Path) -> dict[Path, Any]:
    import pycolmap

    model = pycolmap.Reconstruction(str(folder / "sparse"))
    cameras = {}
    for image in model.images.values():
        camera = pycolmap.Camera(image.camera.todict())  # its own would die with the model
        k = camera.calibration_matrix()

        def plain(xy: np.ndarray, camera: Any = camera, k: np.ndarray = k) -> np.ndarray:
            rays = np.array(camera.cam_from_img(xy + 0.5))  # COLMAP's pixel centres
            return rays[:, :2] @ k[:2, :2].T + k[:2, 2]

        cameras[folder / "images" / image.name] = (k @ image.cam_from_world().matrix(), plain)
    return cameras


def sift(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    keypoints = Keypoints(points, np.zeros(len(points))).to_opencv()
    found, descriptors = cv2.SIFT_create().compute(image, keypoints)
    assert len(found) == len(points)
    return descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True).clip(1e-9)


def rootsift(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    descriptors = sift(image, points)
    return np.sqrt(descriptors / descriptors.sum(axis=1, keepdims=True).clip(1e-9))


def ours(model: str, side: float, output: str = "float32") -> Describe:
    """A model at a side; one of several squares at its own, in proportion."""
    own = mkdesc.Features(model=model).sides
    sides = tuple(side * one / own[0] for one in own)
    used = sides if len(sides) > 1 else side
    return mkdesc.Features(model=model, side=used, output=output).describe


def keypoints_of(image: np.ndarray, detector: str, upright: bool) -> np.ndarray:
    points = make_detector(detector).detect(image).strongest(KEYPOINTS).points
    if detector == "orb":
        points[:, 2] /= 6  # its size is that of its patch, not of a blob
    if detector == "gftt":
        points[:, 2] = 2.0
    if upright:
        points[:, 3] = 0
        points = np.unique(points, axis=0)  # one place may have had several orientations
    return points


def table(
    title: str, pairs: list[Pair], describers: dict[str, Describe], detector: str, upright: bool
) -> dict[str, Any]:
    """Count matches of all pairs, print the totals and the ratios to RootSIFT by scene."""
    images, points = {}, {}
    for path in {path for pair in pairs for path in pair.images}:
        images[path] = read_gray(path)
        points[path] = keypoints_of(images[path], detector, upright)
    scenes = list(dict.fromkeys(pair.scene for pair in pairs))
    counts = {name: {scene: np.zeros(2, int) for scene in scenes} for name in describers}
    for name, describe in describers.items():
        described = {path: describe(images[path], points[path]) for path in images}
        for pair in pairs:
            a, b = pair.images
            matches = mkdesc.match_descriptors(described[a], described[b]).pairs
            right = pair.right(points[a][matches[:, 0], :2], points[b][matches[:, 1], :2])
            counts[name][pair.scene] += (right.sum(), len(matches))
    print(f"\n{title}: {len(pairs)} pairs")
    possible = sum(reachable(pair, points) for pair in pairs)
    if possible:
        print(f"  keypoints with a true partner: {possible}")
    base = counts["RootSIFT"]
    total = sum(base[scene][0] for scene in scenes)
    print(f"  {'':<20} {'right':>6} {'prec.':>6}  x RootSIFT  by scene: {' '.join(scenes)}")
    for name, found in counts.items():
        right, made = sum(found.values())
        shares = " ".join(f"{found[s][0] / max(base[s][0], 1):>{len(s)}.2f}" for s in scenes)
        print(
            f"  {name:<20} {right:>6} {right / max(made, 1):>6.3f}  {right / total:>10.3f}"
            f"            {shares}"
        )
    return {
        name: {scene: [int(n) for n in row] for scene, row in found.items()}
        for name, found in counts.items()
    }


def reachable(pair: Pair, points: dict[Path, np.ndarray]) -> int:
    """Keypoints of the first image that some keypoint of the second is a right match for."""
    if pair.homography is None:
        return 0
    a, b = (points[path][:, :2] for path in pair.images)
    distances = np.linalg.norm(moved(a, pair.homography)[:, None] - b, axis=2)
    return int((distances.min(axis=1) <= PLANAR).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--models", nargs="+", default=["photo", "photo-net", "extended", "paper-32px"]
    )
    parser.add_argument("--sides", nargs="+", type=float, default=SIDES)
    parser.add_argument("--kinds", nargs="+", default=["planar", "3-D"])
    parser.add_argument("--quick", action="store_true", help="SIFT keypoints only")
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results-same-keypoints.json")
    )
    options = parser.parse_args()

    planar = list(planar_pairs(options.data))
    multiview = options.data / "multiview"
    solid = [
        *epipolar_pairs("fountain-P11", strecha_cameras(multiview / "fountain-P11")),
        *epipolar_pairs("lund-door", colmap_cameras(multiview / "lund-door")),
    ]
    describers: dict[str, Describe] = {"RootSIFT": rootsift, "SIFT": sift}
    for model in options.models:
        for side in options.sides:
            describers[f"{model}, {side:g} sigma"] = ours(model, side)
        describers[f"{model}, {SIDE:g}, uint8"] = ours(model, SIDE, "uint8")
    settings = [("SIFT keypoints", "sift", False)]
    if not options.quick:
        settings += [
            ("SIFT keypoints, upright", "sift", True),
            ("ORB corners", "orb", False),
            ("ORB corners, upright", "orb", True),
            ("GFTT corners, upright", "gftt", True),
        ]
    results: dict[str, Any] = {}
    for title, detector, upright in settings:
        for kind in options.kinds:
            pairs = planar if kind == "planar" else solid
            name = f"{title}, {kind}"
            results[name] = table(name, pairs, describers, detector, upright)
    options.output.write_text(json.dumps(results, indent=2))
    print(f"\nwritten: {options.output}")


if __name__ == "__main__":
    main()
