"""Structure from motion with mkdesc beside COLMAP's own SIFT, with as many keypoints.

COLMAP takes its limit of keypoints for a hint and finds up to half as many more; mkdesc gets as
many as COLMAP really has in the mean image.

Rotation errors are of relative rotations, over all pairs of registered images, against the true
cameras (fountain-P11) or the model that comes with the images (lund-door). Positions are compared
after a similarity: millimetres of the survey, or thousandths of that model's unit. Both sides use
the same mapper, options and seed. ``--intrinsics true`` gives the true cameras to both, and keeps
them.

Seconds are of the wall, and of all cores together: the latter hardly depend on what else runs.

    python benchmarks/reconstruction.py [--data ../shared/data] [--keypoints 4096]
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pycolmap

from mkdesc.features import Settings
from mkdesc.models import DEFAULT_MODEL
from mkdesc.sfm import SfmOptions, match_images, reconstruct

#: Of an image: the rotation from the world to its camera, and where that is.
Pose = tuple[np.ndarray, np.ndarray]


class Truth(NamedTuple):
    """Poses by image name, and the camera of all images: COLMAP's model and parameters."""

    poses: dict[str, Pose]
    camera: tuple[str, list[float]]


def truth_of(folder: Path) -> Truth:
    if (folder / "sparse").is_dir():
        model = pycolmap.Reconstruction(str(folder / "sparse"))
        (camera,) = model.cameras.values()
        return Truth(poses_of(model), (camera.model.name, list(camera.params)))
    found = {}
    for image in sorted((folder / "images").iterdir()):
        text = (folder / "cameras" / f"{image.name}.camera").read_text().split()
        numbers = np.array(text, float)
        found[image.name] = numbers[12:21].reshape(3, 3).T, numbers[21:24]
        (fx, _, cx), (_, fy, cy), _ = numbers[:9].reshape(3, 3) / 2  # photographs were halved
    return Truth(found, ("PINHOLE", [fx, fy, cx, cy]))


def poses_of(model: Any) -> dict[str, Pose]:
    images = [image for image in model.images.values() if image.has_pose]
    return {
        image.name: (image.cam_from_world().rotation.matrix(), image.projection_center())
        for image in images
    }


def rotation_errors(found: dict[str, Pose], true: dict[str, Pose]) -> np.ndarray:
    """Degrees between relative rotations, of all pairs."""
    errors = []
    for a, b in itertools.combinations(sorted(found.keys() & true.keys()), 2):
        rest = found[b][0] @ found[a][0].T @ (true[b][0] @ true[a][0].T).T
        errors.append(np.rad2deg(np.arccos(np.clip((np.trace(rest) - 1) / 2, -1, 1))))
    return np.array(errors)


def position_errors(found: dict[str, Pose], true: dict[str, Pose]) -> np.ndarray:
    """Thousandths of a unit between positions, after the similarity that fits them best."""
    names = sorted(found.keys() & true.keys())
    here = np.array([found[name][1] for name in names])
    there = np.array([true[name][1] for name in names])
    fit = pycolmap.estimate_sim3d(here, there)
    return 1000 * np.linalg.norm([fit * xyz for xyz in here] - there, axis=1)


def fixed_cameras(options: Any) -> None:
    """Let COLMAP keep cameras as they are."""
    options.ba_refine_focal_length = options.ba_refine_extra_params = False


def colmap_sift(
    images: Path, output: Path, keypoints: int, cameras: str, true: Truth | None
) -> tuple[Any, int]:
    """COLMAP's extractor, matcher and mapper; only the limits for large sets are lifted.

    Returns the largest model and the mean number of keypoints.
    """
    base = output / "database.db"
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.sift.max_num_features = keypoints
    mode = pycolmap.CameraMode.SINGLE if cameras == "single" else pycolmap.CameraMode.AUTO
    reader = pycolmap.ImageReaderOptions()
    if true is not None:
        mode, reader.camera_model = pycolmap.CameraMode.SINGLE, true.camera[0]
        reader.camera_params = ",".join(map(str, true.camera[1]))
    pycolmap.extract_features(
        base, images, camera_mode=mode, reader_options=reader, extraction_options=extraction
    )
    pycolmap.match_exhaustive(base)
    with pycolmap.Database.open(base) as file:
        mean = round(file.num_keypoints() / file.num_images())
    return mapped(base, images, output, true is not None), mean


def mapped(base: Path, images: Path, output: Path, fixed: bool) -> Any:
    """The largest model of a database."""
    options = pycolmap.IncrementalPipelineOptions()
    options.min_model_size = 3
    options.triangulation.ignore_two_view_tracks = False
    options.random_seed = 0
    if fixed:
        fixed_cameras(options)
    models = pycolmap.incremental_mapping(base, images, output, options)
    return max(models.values(), key=lambda model: model.num_reg_images())


def ours(images: Path, output: Path, options: SfmOptions, true: Truth | None) -> Any:
    """The largest model of ``mkdesc sfm``; with true cameras, what COLMAP maps of its matches."""
    if true is None:
        reconstruct(images, output, options=options)
        return pycolmap.Reconstruction(str(output / "sparse" / "0"))
    base = match_images(images, output, options).database
    model, params = true.camera
    with pycolmap.Database.open(base) as file:
        for camera in file.read_all_cameras():
            camera.model, camera.params = getattr(pycolmap.CameraModelId, model), params
            camera.has_prior_focal_length = True
            file.update_camera(camera)
    pycolmap.geometric_verification(base)
    return mapped(base, images, output, fixed=True)


class Stopwatch:
    """Seconds of the wall, and of all cores: of this process and of those it has started."""

    def __init__(self) -> None:
        self._begun = self._now()

    def _now(self) -> tuple[float, float]:
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        used = [resource.getrusage(who) for who in whose]
        return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used)

    def read(self) -> str:
        wall, cores = (b - a for a, b in zip(self._begun, self._now(), strict=True))
        return f"{wall:>6.1f} {cores:>6.1f}"


def line(name: str, model: Any, true: dict[str, Pose], seconds: str) -> str:
    found = poses_of(model)
    errors, away = rotation_errors(found, true), position_errors(found, true)
    lengths = np.array([point.track.length() for point in model.points3D.values()])
    many = lengths[lengths >= 3]
    return (
        f"  {name:<24} {model.num_reg_images():>3} of {len(true):<3} {model.num_points3D():>7} "
        f"{model.compute_num_observations():>8} {lengths.mean():>6.2f} {len(many):>7} "
        f"{many.mean():>6.2f} {model.compute_mean_reprojection_error():>6.2f} "
        f"{np.median(errors):>7.3f} {errors.max():>6.2f} {away.mean():>6.2f} "
        f"{np.median(away):>6.2f} {away.max():>6.2f} {seconds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="+", default=["fountain-P11", "lund-door"])
    parser.add_argument("--keypoints", type=int, default=4096, help="COLMAP's limit")
    parser.add_argument("--own", type=int, help="mkdesc's limit; default: what COLMAP finds")
    parser.add_argument("--intrinsics", default="estimated", choices=["estimated", "true"])
    parser.add_argument("--refine", nargs="+", default=["tracks"], choices=["none", "tracks"])
    parser.add_argument("--cameras", default="auto", choices=["auto", "single"])
    parser.add_argument("--models", nargs="+", default=[DEFAULT_MODEL])
    parser.add_argument("--detectors", nargs="+", default=["learned", "dog", "sift"])
    options = parser.parse_args()
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    pycolmap.set_random_seed(0)
    for scene in options.scenes:
        folder = options.data / "multiview" / scene
        true = truth_of(folder)
        known = true if options.intrinsics == "true" else None
        print(
            f"\n{scene}, COLMAP's limit {options.keypoints}, cameras: {options.cameras}, "
            f"{options.intrinsics}"
        )
        print(
            f"  {'':<24} {'images':>9} {'points':>7} {'observ.':>8} {'track':>6} {'of 3+':>7} "
            f"{'track':>6} {'px':>6} {'rot. md':>7} {'max':>6} {'mm':>6} {'md':>6} {'max':>6} "
            f"{'s':>6} {'cpu s':>6}"
        )
        with tempfile.TemporaryDirectory() as temporary:
            watch = Stopwatch()
            best, mean = colmap_sift(
                folder / "images", Path(temporary), options.keypoints, options.cameras, known
            )
            print(line(f"COLMAP SIFT ({mean})", best, true.poses, watch.read()), flush=True)
        for detector, model, refine in itertools.product(
            options.detectors, options.models, options.refine
        ):
            count = options.own or mean
            settings = Settings(detector, max_keypoints=count, sensitive=True, model=model)
            sfm_options = SfmOptions(settings, refine=refine, cameras=options.cameras, seed=0)
            with tempfile.TemporaryDirectory() as temporary:
                watch = Stopwatch()
                best = ours(folder / "images", Path(temporary), sfm_options, known)
                name = f"{detector}, {model}, {count}, {refine}"
                print(line(name, best, true.poses, watch.read()), flush=True)


if __name__ == "__main__":
    main()
