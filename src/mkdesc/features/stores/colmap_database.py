"""Features and matches in a COLMAP database.

COLMAP has descriptors of 128 unsigned bytes of length 512, and compares angles. Ours have signs:
the same number is added to all, so that distances stay and angles are those of vectors that all
lean to one side, smaller but in the same order. COLMAP's matchers work on these.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_choice
from mkdesc._support.files import Damaged, atomic_path, saying_what_failed
from mkdesc._support.isolation import run_isolated
from mkdesc._support.text import shorten
from mkdesc._support.workfolder import check_settings
from mkdesc.datasets.colmap import pycolmap_module, to_colmap_pixels
from mkdesc.features.image_features import ImageFeatures, load_features
from mkdesc.heads.quantise import unit_vectors

#: Of COLMAP's descriptors: numbers and length; and what is added to ours, three times the
#: standard deviation of their numbers.
DIMS, LENGTH, LEAN = 128, 512, 0.25
#: How databases begin; and those whose beginning never reached the disk.
_BEGINNINGS = (b"SQLite format 3\0", bytes(16))
#: Which images share a camera, by COLMAP's names.
CAMERAS = {
    "auto": "AUTO",
    "single": "SINGLE",
    "per-image": "PER_IMAGE",
    "per-folder": "PER_FOLDER",
}


def common_folder(images: Mapping[str, Path]) -> Path:
    """The folder that the names of images are paths from; there must be one for COLMAP.

    Examples
    --------
    >>> common_folder({"a.jpg": Path("x/a.jpg"), "b/c.jpg": Path("x/b/c.jpg")}).as_posix()
    'x'
    """
    roots = {}
    for name, file in images.items():
        roots[Path(*file.parts[: len(file.parts) - len(Path(name).parts)])] = file
    if len(roots) > 1:
        one, other, *_ = roots.values()
        raise ValueError(f"{one} and {other}: COLMAP expects all images below one folder")
    return next(iter(roots))


def stored_images(path: Path, settings: str) -> dict[str, str]:
    """Images in a database, and their fingerprints; none if there is no database.

    Parameters
    ----------
    path
        Of the database; an error that says so if it is damaged.
    settings
        How its features must have been made.
    """
    if not path.exists():
        return {}
    with path.open("rb") as file:
        if file.read(16) not in _BEGINNINGS:
            raise ValueError(f"{path}: not a COLMAP database written by mkdesc")
    try:
        with closing(sqlite3.connect(path)) as base:
            (state,) = base.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise Damaged(f"{path}: damaged ({shorten(state)})")
            found = base.execute("SELECT settings FROM mkdesc").fetchone()
            fields = "images.name, source FROM images LEFT JOIN mkdesc_images USING (name)"
            images = dict(base.execute(f"SELECT {fields}").fetchall())
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        reason = shorten(str(error))
        if reason.startswith("no such table"):  # it is whole, but somebody else's
            raise ValueError(
                f"{path}: not a COLMAP database written by mkdesc ({reason})"
            ) from None
        raise Damaged(f"{path}: damaged ({reason})") from None
    check_settings(path, found[0] if found else "", json.loads(settings))
    return images


def check_cameras(cameras: str, camera_model: str) -> None:
    """Refuse unknown names, as for :func:`add_features`."""
    check_choice("cameras", cameras, CAMERAS)
    models = [name for name in pycolmap_module().CameraModelId.__members__ if name != "INVALID"]
    check_choice("camera_model", camera_model, models)


def add_features(
    path: Path,
    folder: Path,
    names: Iterable[str],
    settings: str,
    images: Path,
    cameras: str = "auto",
    camera_model: str = "SIMPLE_RADIAL",
) -> None:
    """Add images, their keypoints and descriptors (if of 128 numbers) to a database, or make it.

    Parameters
    ----------
    path
        Of the database; replaced as a whole at the end.
    folder
        What :func:`mkdesc.features.extract_features` wrote.
    names
        Of the images.
    settings
        How the features were made.
    images
        Folder of the photographs.
    cameras
        Which images share a camera, one of :data:`CAMERAS`; auto: all of them, if they are of
        one size and their EXIF data tell of one focal length or none.
    camera_model
        COLMAP's name of the camera model.
    """
    check_cameras(cameras, camera_model)
    new = sorted(names)
    failing = saying_what_failed(path, RuntimeError, sqlite3.Error)
    with failing, atomic_path(path) as partial:
        if path.exists():
            shutil.copyfile(path, partial)
        elif cameras == "auto" and _one_camera(images, new):
            cameras = "single"
        write_features(partial, folder, new, settings, images, cameras, camera_model)


def write_features(
    partial: Path,
    folder: Path,
    new: Sequence[str],
    settings: str,
    images: Path,
    cameras: str,
    camera_model: str,
) -> None:
    """As :func:`add_features`, but right into a database, or a file that is empty."""
    pycolmap = pycolmap_module()
    # Where COLMAP finds no room for these it ends the process.
    mode = CAMERAS[cameras]
    run_isolated(_import_images, str(partial), str(images), mode, list(new), camera_model)
    sources = {}
    with pycolmap.Database.open(partial) as base:
        known = {image.name: image for image in base.read_all_images()}
        for name in new:
            if name not in known:
                raise ValueError(f"{images / name}: COLMAP cannot read this image")
            found = load_features(folder, name)
            sources[name] = str(found.source)
            camera = base.read_camera(known[name].camera_id)
            if [camera.width, camera.height] != found.image_size.tolist():
                raise ValueError(
                    f"{images / name}: {camera.width} x {camera.height} px for COLMAP, but "
                    f"its features are of {found.image_size[0]} x {found.image_size[1]} px"
                )
            base.write_keypoints(known[name].image_id, colmap_keypoints(found))
            if found.descriptors.shape[1] == DIMS:
                kind = pycolmap.FeatureExtractorType.SIFT
                data = colmap_descriptors(found.descriptors)
                described = pycolmap.FeatureDescriptors(kind, data)
                base.write_descriptors(known[name].image_id, described)
    with closing(sqlite3.connect(partial)) as base:
        base.execute("CREATE TABLE IF NOT EXISTS mkdesc (settings TEXT)")
        base.execute("DELETE FROM mkdesc")
        base.execute("INSERT INTO mkdesc VALUES (?)", (settings,))
        base.execute("CREATE TABLE IF NOT EXISTS mkdesc_images (name TEXT, source TEXT)")
        base.executemany("INSERT INTO mkdesc_images VALUES (?, ?)", sources.items())
        base.commit()


def _import_images(base: str, images: str, mode: str, names: list[str], camera_model: str) -> None:
    pycolmap = pycolmap_module()
    reader = pycolmap.ImageReaderOptions(camera_model=camera_model)
    pycolmap.import_images(base, images, getattr(pycolmap.CameraMode, mode), names, reader)


def _one_camera(images: Path, names: Iterable[str]) -> bool:
    """Whether photographs look as if one camera took them."""
    pycolmap = pycolmap_module()
    kinds = set()
    for name in names:
        camera = pycolmap.infer_camera_from_image(images / name)
        kinds.add((camera.width, camera.height, round(camera.mean_focal_length(), 3)))
    return len(kinds) == 1


def colmap_keypoints(found: ImageFeatures) -> NDArray[np.float32]:
    """Keypoints (N, 4) as COLMAP has them: x, y, scale, orientation in radians."""
    xy, sigma, angle = np.split(found.keypoints, [2, 3], axis=1)
    return np.hstack([to_colmap_pixels(xy), sigma, np.deg2rad(angle)]).astype(np.float32)


def colmap_descriptors(descriptors: NDArray[Any]) -> NDArray[np.uint8]:
    """Descriptors (N, 128) as COLMAP has them: unsigned bytes, of length 512 to a few per cent.

    From each its mean is taken, so that all lean as far to one side, and a quarter added.

    Parameters
    ----------
    descriptors
        Unit vectors, or bytes of them.

    Examples
    --------
    >>> colmap_descriptors(np.zeros((1, 128), np.float32))[0, :3]
    array([43, 43, 43], dtype=uint8)
    """
    unit = unit_vectors(descriptors)
    level = unit - unit.mean(axis=1, keepdims=True)
    scale = LENGTH / np.sqrt(1 + DIMS * LEAN**2)
    return np.rint((level + LEAN) * scale).clip(0, 255).astype(np.uint8)
