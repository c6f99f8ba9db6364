"""What somebody who uses the package writes, for mypy (strict) and pyright; it runs, too.

A comment ``type: ignore`` that is not needed is an error, so misspelt names must stay one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, assert_type

import cv2
import numpy as np
from numpy.typing import NDArray

import mkdesc
from mkdesc.evaluation import Results, run_hpatches
from mkdesc.features import extract_to
from mkdesc.sfm import reconstruct
from mkdesc.visual import Contributions, contributions


def patches_to_descriptors(patches: NDArray[np.uint8]) -> NDArray[np.float32]:
    descriptors = mkdesc.describe(patches, model="extended")
    assert_type(descriptors, NDArray[np.float32])
    model = mkdesc.load_model("extended")
    assert_type(model, mkdesc.MKD)
    assert_type(mkdesc.bundled_models(), list[str])
    assert model.transform(patches).shape == descriptors.shape
    return descriptors


def kernels(patches: NDArray[np.uint8]) -> float:
    mine = mkdesc.POLAR + mkdesc.product(rho=mkdesc.VonMises(kappa=4, n=2))
    assert_type(mine, mkdesc.Parametrization)
    found = contributions(patches[0], patches[1], "polar+cartesian", "paper")
    assert_type(found, Contributions)
    assert_type(found.score, float)
    assert_type(mkdesc.match_kernel(patches[0, :8, :8], patches[1, :8, :8], "polar"), float)
    assert_type(mkdesc.patch_map((20, 20), "polar"), NDArray[np.float64])
    return found.score


def photographs(image: NDArray[np.uint8]) -> int:
    features = mkdesc.Features(500, upright=True)
    keypoints, descriptors = features.detectAndCompute(image, None)
    assert_type(keypoints, tuple[cv2.KeyPoint, ...])
    assert_type(descriptors, NDArray[Any])  # of the type that `output` says
    matches = mkdesc.match_descriptors(descriptors, descriptors)
    assert_type(matches.pairs, NDArray[np.int64])
    assert_type(list(matches), list[tuple[int, int, float]])
    places = np.array([keypoint.pt for keypoint in keypoints])
    verified = mkdesc.verify_matches(places, places, "homography")
    assert_type(verified.inliers, NDArray[np.bool_])
    assert_type(verified.geometry, str | None)
    for match in matches.to_opencv():
        assert_type(match.trainIdx, int)
    found = mkdesc.match_images(image, image, features)
    assert_type(found, mkdesc.ImageMatches)
    assert_type(found.points_a, NDArray[np.float64])
    assert_type(found.flow().field, NDArray[np.float32])
    laid_over = mkdesc.align(image, image, features)
    assert_type(laid_over.by, str | None)
    assert_type(laid_over.seen, NDArray[np.bool_])
    return int(found.inliers.sum())


def collection(folder: Path) -> list[str]:
    found = mkdesc.Index(folder).find("photo.jpg", k=10)
    return [photograph.name for photograph in found]


def learning(folder: Path, patches: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
    whitening = mkdesc.Whitening("gda", dims=8, ridge=1e-3).fit(
        mkdesc.MKD("polar", patch_size=16).transform(patches), labels
    )
    assert_type(whitening, mkdesc.Whitening)
    assert_type(mkdesc.Statistics(8) + mkdesc.Statistics(8), mkdesc.Statistics)
    np.savez(folder / "labelled.npz", patches=patches, labels=labels)
    learned = mkdesc.learn.learn_patches(
        folder / "labelled.npz",
        mkdesc.MKD("polar", patch_size=16),
        whitening=mkdesc.Whitening("gda", dims=8, ridge=1e-3),
    )
    assert_type(learned, mkdesc.learn.Learned)
    assert_type(learned.report, mkdesc.learn.Report)
    learned.save(folder / "mine.safetensors")
    assert_type(mkdesc.models.read_card(folder / "mine.safetensors"), mkdesc.models.Card)


def that_take_long(folder: Path) -> None:
    """Only checked, not run."""
    assert_type(mkdesc.learn.learn_photos(folder), mkdesc.learn.Learned)
    assert_type(run_hpatches(folder, ["paper", "rootsift"]), Results)
    print(extract_to([folder], folder / "features.h5"), reconstruct(folder, folder / "out").points)
    print(mkdesc.torch.MKDescriptor("extended"))


def misspelt() -> None:
    """Only checked, not run: each of these is an error that a checker must see."""
    print(mkdesc.learn.learn_photo)  # type: ignore[attr-defined]
    print(mkdesc.describes)  # type: ignore[attr-defined]
    print(mkdesc.learns)  # type: ignore[attr-defined]
    mkdesc.Features(keypoints=500)  # type: ignore[arg-type]
    print(mkdesc.describe([[0.0]]).shapes)  # type: ignore[attr-defined]


def main() -> None:
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (100, 64, 64), np.uint8)
    print(patches_to_descriptors(patches).shape, kernels(patches))
    image = rng.integers(0, 256, (80, 100), np.uint8)
    print(photographs(cv2.resize(image, (400, 320)).astype(np.uint8)))
    with tempfile.TemporaryDirectory() as folder:
        small = np.repeat(rng.integers(0, 256, (200, 16, 16), np.uint8), 2, axis=0)
        learning(Path(folder), small, np.repeat(np.arange(200), 2))


if __name__ == "__main__":
    main()
