"""Structure from motion with mkdesc beside COLMAP's own SIFT, with as many keypoints.

COLMAP takes its limit of keypoints for a hint and finds up to half as many more; mkdesc gets as
many as COLMAP really has in the mean image.

Rotation errors are of relative rotations, over all pairs of registered images, against the true
cameras (fountain-P11) or the model that comes with the images (lund-door). Both sides use the
same mapper, options and seed.

    python benchmarks/reconstruction.py [--data ../shared/data] [--keypoints 4096]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from mkdesc.features import Settings
from mkdesc.models import DEFAULT_MODEL
from mkdesc.sfm import SfmOptions, reconstruct


def true_rotations(folder: Path) -> dict[str, np.ndarray]:
    """Rotations from the world to the camera, by image name."""
    if (folder / "sparse").is_dir():
        model = pycolmap.Reconstruction(str(folder / "sparse"))
        return rotations(model)
    found = {}
    for image in sorted((folder / "images").iterdir()):
        numbers = (folder / "cameras" / f"{image.name}.camera").read_text().split()
        found[image.name] = np.array(numbers[12:21], float).reshape(3, 3).T
    return found


def rotations(model: Any) -> dict[str, np.ndarray]:
    images = [image for image in model.images.values() if image.has_pose]
    return {image.name: image.cam_from_world().rotation.matrix() for image in images}


def rotation_errors(found: dict[str, np.ndarray], true: dict[str, np.ndarray]) -> np.ndarray:
    """Degrees between relative rotations, of all pairs."""
    errors = []
    for a, b in itertools.combinations(sorted(found.keys() & true.keys()), 2):
        rest = found[b] @ found[a].T @ (true[b] @ true[a].T).T
        errors.append(np.rad2deg(np.arccos(np.clip((np.trace(rest) - 1) / 2, -1, 1))))
    return np.array(errors)


def colmap_sift(images: Path, output: Path, keypoints: int, cameras: str) -> tuple[Any, int]:
    """COLMAP's extractor, matcher and mapper; only the limits for large sets are lifted.

    Returns the largest model and the mean number of keypoints.
    """
    base = output / "database.db"
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.sift.max_num_features = keypoints
    mode = pycolmap.CameraMode.SINGLE if cameras == "single" else pycolmap.CameraMode.AUTO
    pycolmap.extract_features(base, images, camera_mode=mode, extraction_options=extraction)
    pycolmap.match_exhaustive(base)
    options = pycolmap.IncrementalPipelineOptions()
    options.min_model_size = 3
    options.triangulation.ignore_two_view_tracks = False
    options.random_seed = 0
    models = pycolmap.incremental_mapping(base, images, output, options)
    with pycolmap.Database.open(base) as file:
        mean = round(file.num_keypoints() / file.num_images())
    return max(models.values(), key=lambda model: model.num_reg_images()), mean


def line(name: str, model: Any, true: dict[str, np.ndarray], seconds: float) -> str:
    errors = rotation_errors(rotations(model), true)
    return (
        f"  {name:<24} {model.num_reg_images():>3} of {len(true):<3} {model.num_points3D():>7} "
        f"{model.compute_num_observations():>8} {model.compute_mean_track_length():>6.2f} "
        f"{model.compute_mean_reprojection_error():>6.2f} {np.median(errors):>7.3f} "
        f"{errors.max():>6.2f} {seconds:>6.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="+", default=["fountain-P11", "lund-door"])
    parser.add_argument("--keypoints", type=int, default=4096, help="COLMAP's limit")
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.95])
    parser.add_argument("--cameras", default="auto", choices=["auto", "single"])
    parser.add_argument("--models", nargs="+", default=[DEFAULT_MODEL])
    parser.add_argument("--detectors", nargs="+", default=["learned", "dog", "sift"])
    options = parser.parse_args()
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    pycolmap.set_random_seed(0)
    for scene in options.scenes:
        folder = options.data / "multiview" / scene
        true = true_rotations(folder)
        print(f"\n{scene}, COLMAP's limit {options.keypoints}, cameras: {options.cameras}")
        print(
            f"  {'':<24} {'images':>9} {'points':>7} {'observ.':>8} {'track':>6} {'px':>6} "
            f"{'rot. md':>7} {'max':>6} {'s':>6}"
        )
        with tempfile.TemporaryDirectory() as temporary:
            start = time.perf_counter()
            best, mean = colmap_sift(
                folder / "images", Path(temporary), options.keypoints, options.cameras
            )
            seconds = time.perf_counter() - start
            print(line(f"COLMAP SIFT ({mean})", best, true, seconds), flush=True)
        for detector, model, ratio in itertools.product(
            options.detectors, options.models, options.ratios
        ):
            settings = Settings(detector, max_keypoints=mean, sensitive=True, model=model)
            sfm_options = SfmOptions(settings, ratio=ratio, cameras=options.cameras)
            with tempfile.TemporaryDirectory() as temporary:
                start = time.perf_counter()
                reconstruct(folder / "images", temporary, options=sfm_options)
                seconds = time.perf_counter() - start
                best = pycolmap.Reconstruction(f"{temporary}/sparse/0")
                name = f"{detector}, {model}, {ratio:g}"
                print(line(name, best, true, seconds), flush=True)


if __name__ == "__main__":
    main()
