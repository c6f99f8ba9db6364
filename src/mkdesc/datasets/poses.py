"""Pairs of photographs whose cameras are known: COLMAP's models, Strecha's, lists.

======================================  ===========================================================
``sparse/`` and ``images/``             a COLMAP model, text or binary, and its images
``cameras/NAME.camera``, ``images/``    Strecha's: matrix, rotation, centre and size of each camera
``FILE.txt``, images beside it          pairs of names with intrinsics and relative pose: 38 words
                                        a line (SuperGlue: ScanNet, YFCC), or 32 (MegaDepth-1500
                                        as glue-factory has it)
``calibration/``, ``images/``           IMC Phototourism: ``calibration_NAME.h5`` with K, R, T, and
                                        the pairs of ``new-vis-pairs/keys-th-0.1.npy``
======================================  ===========================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import read_text
from mkdesc._support.npy import BROKEN, array_of, reason_of
from mkdesc._support.optional import needed
from mkdesc._support.text import shorten
from mkdesc.datasets.colmap import read_model
from mkdesc.geometry.cameras import Camera
from mkdesc.images.reading import image_size

#: Pairs of views whose directions differ by more degrees have too little in common.
MAX_ANGLE = 75.0

#: Of IMC: the file of pairs that see enough of the same.
IMC_PAIRS = "new-vis-pairs/keys-th-0.1.npy"

#: Numbers of cameras and places are smaller; and how far rotations in files may be off.
LARGEST, TURNED = 1e12, 1e-2

Floats = NDArray[np.float64]


class PosePair(NamedTuple):
    """Two photographs with known cameras.

    Attributes
    ----------
    scene
        Where they were taken.
    images
        Their files.
    cameras
        Of either.
    rotation, translation
        (3, 3), (3,): the second camera sees X at ``rotation @ X + translation``, the first at X.
    """

    scene: str
    images: tuple[Path, Path]
    cameras: tuple[Camera, Camera]
    rotation: Floats
    translation: Floats

    @property
    def name(self) -> str:
        """Short, for tables: ``fountain 0001-0003``."""
        return f"{self.scene} {self.images[0].stem}-{self.images[1].stem}"


class _View(NamedTuple):
    image: Path
    camera: Camera
    rotation: Floats
    translation: Floats


def read_pose_pairs(truth: str | Path, max_angle: float = MAX_ANGLE) -> list[PosePair]:
    """Pairs of photographs with known cameras.

    Parameters
    ----------
    truth
        A folder or a file in one of the layouts at the top of this module.
    max_angle
        Of models and Strecha's cameras: pairs whose viewing directions differ by more degrees
        are left out.
    """
    path = Path(truth)
    if path.is_file():
        pairs = list(_listed_pairs(path))
    elif (path / "cameras").is_dir():
        pairs = _pairs_of(path, _strecha_views(path), max_angle)
    elif (path / "calibration").is_dir():
        pairs = _imc_pairs(path)
    elif path.is_dir():
        pairs = _pairs_of(path, _colmap_views(path), max_angle)
    else:
        raise ValueError(f"{path}: no such file or folder")
    if not pairs:
        raise ValueError(f"{path}: no pair of photographs within {max_angle:g} degrees")
    return pairs


def _pairs_of(folder: Path, views: list[_View], max_angle: float) -> list[PosePair]:
    found = []
    for a, b in itertools.combinations(views, 2):
        turned = np.degrees(np.arccos(np.clip(a.rotation[2] @ b.rotation[2], -1, 1)))
        if turned <= max_angle:
            found.append(_pair(folder.resolve().name, a, b))
    return found


def _pair(scene: str, a: _View, b: _View) -> PosePair:
    rotation = b.rotation @ a.rotation.T
    translation = b.translation - rotation @ a.translation
    return PosePair(
        scene, (a.image, b.image), (a.camera, b.camera), rotation, np.ravel(translation)
    )


def _strecha_views(folder: Path) -> list[_View]:
    views = []
    for file in sorted((folder / "cameras").glob("*.camera")):
        image = folder / "images" / file.stem
        numbers = _numbers(file, file.read_text(encoding="utf-8", errors="replace").split(), 26)
        matrix, rotation = numbers[:9].reshape(3, 3), numbers[12:21].reshape(3, 3).T
        if not (numbers[24:26] >= 1).all():
            raise ValueError(f"{file}: expected a width and a height, got {numbers[24:26]}")
        _check_pose(file, rotation, numbers[21:24])
        width, height = (int(side) for side in numbers[24:26])
        size = image_size(_existing(image))
        camera = _camera(file, matrix, width, height).resized(*size)
        views.append(_View(image, camera, rotation, -rotation @ numbers[21:24]))
    return views


def _colmap_views(folder: Path) -> list[_View]:
    inside = folder / "sparse"
    model = read_model(inside if inside.is_dir() else folder)
    views = []
    for image in sorted(model.images.values(), key=lambda one: str(one.name)):
        pose = image.cam_from_world()
        path = folder / "images" / str(image.name)
        views.append(
            _View(
                _existing(path),
                Camera.from_colmap(image.camera),
                np.asarray(pose.rotation.matrix(), np.float64),
                np.asarray(pose.translation, np.float64),
            )
        )
    return views


def _listed_pairs(file: Path) -> Iterator[PosePair]:
    """Lines of SuperGlue's layout, or of glue-factory's."""
    for number, line in enumerate(read_text(file).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        where = f"{file}, line {number}"
        if len(words) == 38:  # names, turns, matrices, pose (4, 4)
            if _numbers(where, words[2:4], 2).any():
                raise ValueError(f"{where}: rotated images are not supported (expected 0 0)")
            numbers = _numbers(where, words[4:], 34)
            pose = numbers[18:].reshape(4, 4)
            rotation, translation = pose[:3, :3], pose[:3, 3]
        elif len(words) == 32:  # names, matrices, rotation, translation
            numbers = _numbers(where, words[2:], 30)
            rotation, translation = numbers[18:27].reshape(3, 3), numbers[27:]
        else:
            raise ValueError(
                f"{where}: expected 38 words (SuperGlue's pairs) or 32 (names, two matrices, "
                f"rotation, translation), got {len(words)}"
            )
        images = _listed_image(file, words[0]), _listed_image(file, words[1])
        first, second = (_camera(where, k) for k in numbers[:18].reshape(2, 3, 3))
        _check_pose(where, rotation, translation)
        scene = Path(words[0]).parts[0] if "/" in words[0] else file.stem
        yield PosePair(scene, images, (first, second), rotation, translation)


def _listed_image(file: Path, name: str) -> Path:
    inside = file.parent / "images" / name
    return inside if _is_file(inside) else _existing(file.parent / name)


def _imc_pairs(folder: Path) -> list[PosePair]:
    with needed("IMC's calibrations need h5py", "hloc"):
        import h5py
    try:
        listed = array_of((folder / IMC_PAIRS).read_bytes())
    except BROKEN as error:
        why = reason_of(error, folder / IMC_PAIRS)
        raise ValueError(f"{folder / IMC_PAIRS}: not a list of pairs ({why})") from None
    views: dict[str, _View] = {}

    def view(name: str) -> _View:
        if name not in views:
            file = _existing(folder / "calibration" / f"calibration_{name}.h5")
            try:
                with h5py.File(file, "r") as stored:
                    arrays = {key: np.asarray(stored[key][()], np.float64) for key in "KRT"}
            except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
                why = reason_of(error, file)
                raise ValueError(f"{file}: not a calibration ({why})") from None
            shapes = [array.size for array in arrays.values()]
            if shapes != [9, 9, 3]:
                raise ValueError(f"{file}: not a calibration (expected K, R and T)")
            arrays = {key: array.reshape(-1, 3) for key, array in arrays.items()}
            _check_pose(file, arrays["R"], arrays["T"])
            image = _existing(folder / "images" / f"{name}.jpg")
            views[name] = _View(
                image, _camera(file, arrays["K"]), arrays["R"], np.ravel(arrays["T"])
            )
        return views[name]

    scene = folder.resolve().parent.name
    names = [str(pair).split("-") for pair in np.ravel(listed).tolist()]
    if any(len(pair) != 2 for pair in names):
        raise ValueError(f"{folder / IMC_PAIRS}: not a list of pairs (expected names as a-b)")
    return [_pair(scene, view(a), view(b)) for a, b in names]


def _numbers(where: object, words: list[str], least: int) -> Floats:
    try:
        numbers = np.array(words, np.float64)
    except ValueError:
        numbers = np.empty(0)
    if len(numbers) < least or not np.isfinite(numbers).all():
        raise ValueError(f"{where}: expected {least} finite numbers, got {' '.join(words)[:80]!r}")
    return numbers


def _camera(
    where: object, matrix: Floats, width: int | None = None, height: int | None = None
) -> Camera:
    try:
        return Camera.from_matrix(matrix, width, height)
    except ValueError as error:
        raise ValueError(f"{where}: {str(error).removeprefix('camera: ')}") from None


def _check_pose(where: object, rotation: Floats, translation: Floats) -> None:
    """Refuse numbers that are no rotation, or no place."""
    small = (abs(rotation) < 2).all()
    if not (
        small
        and np.allclose(rotation @ rotation.T, np.eye(3), atol=TURNED)
        and np.linalg.det(rotation) > 0
    ):
        raise ValueError(f"{where}: expected a rotation, got {rotation.tolist()}")
    if not (abs(translation) < LARGEST).all():
        raise ValueError(f"{where}: expected a translation, got {translation.tolist()}")


def _existing(path: Path) -> Path:
    if not _is_file(path):
        raise ValueError(f"{shorten(str(path), 300)}: no such file")
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # of names that are too long
        return False
