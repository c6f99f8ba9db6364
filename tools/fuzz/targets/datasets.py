"""Labelled patches: Phototourism, HPatches, COLMAP, arrays."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tools

from layouts import draw_pairs, write_sequence, write_subset, write_task

from targets.target import Target, encoded, in_archive, png_sums, rng

__all__ = ["DATASETS"]


def _subset(folder: Path) -> None:
    from mkdesc.datasets.phototourism.layout import Interest

    labels = np.repeat(np.arange(6), 2)
    numbers = np.arange(12.0)
    interest = Interest(np.arange(12), numbers, numbers, numbers, numbers)
    patches = rng().integers(0, 256, (12, 64, 64), np.uint8)
    write_subset(folder / "flat", patches, labels, interest, {8: draw_pairs(labels, 8)})


def _read_subset(folder: Path) -> None:
    from mkdesc.datasets.phototourism.layout import Subset

    subset = Subset(folder / "flat")
    subset.labels(), subset.interest(), subset.pairs()


def _read_sheets(folder: Path) -> None:
    from mkdesc.datasets.patch_files import open_patches

    for _ in open_patches(folder / "flat").blocks():
        pass


def _sequences(folder: Path) -> None:
    from mkdesc.datasets.hpatches.layout import IMAGES
    from mkdesc.datasets.hpatches.task_lists import draw_retrieval, draw_verification

    strips = {image: rng().integers(0, 256, (4, 16, 16), np.uint8) for image in IMAGES}
    for name in ("i_dome", "v_wall"):
        write_sequence(folder, name, strips)
    split = {"a": {"name": "a", "test": ["i_dome", "v_wall"], "train": []}}
    (folder / "splits.json").write_text(json.dumps(split), encoding="utf-8")
    textured = {name: np.ones(4, bool) for name in ("i_dome", "v_wall")}
    write_task(folder, "a", draw_verification({"i_dome": 4, "v_wall": 4}, pairs=5))
    write_task(folder, "a", draw_retrieval(textured, queries=2, distractors=3))


def _read_strips(folder: Path) -> None:
    from mkdesc.datasets.hpatches.layout import HPatches
    from mkdesc.datasets.patch_files import open_patches

    sequence = HPatches(folder)["i_dome"]
    sequence.read("ref"), sequence.read("e1")
    for _ in open_patches(folder / "i_dome" / "ref.png").blocks():
        pass


def _read_split(folder: Path) -> None:
    from mkdesc.datasets.hpatches.layout import HPatches

    HPatches(folder).split("a")


_LISTS = ("verif_pos", "verif_neg_intra", "verif_neg_inter", "retr_queries", "retr_distractors")


def _read_lists(folder: Path) -> None:
    from mkdesc.datasets.hpatches.task_lists import read_retrieval, read_verification

    counts = {"i_dome": 4, "v_wall": 4}
    read_verification(folder, "a", counts)
    read_retrieval(folder, "a", counts)


def _csv(folder: Path) -> None:
    from mkdesc.datasets.hpatches.csv_files import write_csv

    write_csv(folder, "v_wall", "ref", rng().normal(size=(5, 4)))


def _read_csv(folder: Path) -> None:
    from mkdesc.datasets.hpatches.csv_files import read_csv

    read_csv(folder, "v_wall", "ref")


def _patches() -> NDArray[np.uint8]:
    return rng().integers(0, 256, (6, 16, 16), np.uint8)


def _arrays(folder: Path) -> None:
    patches = _patches()
    np.save(folder / "bytes.npy", patches)
    np.save(folder / "floats.npy", patches.astype(">f8"))
    np.save(folder / "fortran.npy", np.asfortranarray(patches))


def _read_arrays(folder: Path) -> None:
    from mkdesc.datasets.patch_files import open_patches

    for file in folder.iterdir():
        for _ in open_patches(file).blocks():
            pass


def _archives(folder: Path) -> None:
    patches = _patches()
    labels = np.repeat(np.arange(3), 2)
    np.savez(folder / "plain.npz", patches=patches, labels=labels)
    np.savez_compressed(folder / "small.npz", patches=patches, labels=labels)


def _read_archives(folder: Path) -> None:
    from mkdesc.learn.sources import _labels

    _read_arrays(folder)
    for file in folder.iterdir():
        _labels(file, 6)


def _colmap(suffix: str) -> Callable[[Path], None]:
    """A model of two images and some points."""

    def prepare(folder: Path) -> None:
        import pycolmap

        model = pycolmap.Reconstruction()
        camera = pycolmap.Camera.create_from_model_name(1, "SIMPLE_RADIAL", 50.0, 80, 60)
        model.add_camera_with_trivial_rig(camera)
        for number in (1, 2):
            xy = rng().random((6, 2)) * 50
            image = pycolmap.Image(f"{number}.png", xy, 1, number)
            pose = pycolmap.Rigid3d(np.hstack([np.eye(3), [[number], [0], [0]]]))
            model.add_image_with_trivial_frame(image, pose)
        for point in range(6):
            elements = [pycolmap.TrackElement(1, point), pycolmap.TrackElement(2, point)]
            xyz = np.array([point, 1.0, 5.0])
            model.add_point3D(xyz, pycolmap.Track(elements), np.zeros(3, np.uint8))
        (model.write_binary if suffix == ".bin" else model.write_text)(str(folder))

    return prepare


def _read_colmap(folder: Path) -> None:
    from mkdesc.datasets.colmap import read_observations

    read_observations(folder)


_COLMAP = ("cameras", "images", "points3D", "rigs", "frames")


def _homography(folder: Path) -> None:
    (folder / "H_1_2").write_text("0.9 0.1 3\n-0.1 0.95 4\n1e-5 -2e-5 1\n", encoding="utf-8")


def _read_homography(folder: Path) -> None:
    from mkdesc.datasets.homographies import read_homography

    read_homography(folder / "H_1_2")


_POSES = (
    *("strecha/cameras/a.png.camera", "strecha/cameras/b.png.camera", "strecha/images/a.png"),
    *("listed/superglue.txt", "listed/factory.txt", "imc/set/new-vis-pairs/keys-th-0.1.npy"),
    "imc/set/calibration/calibration_a.h5",
)


def _poses(folder: Path) -> None:
    import h5py

    def text(*arrays: object) -> str:
        return " ".join(str(float(x)) for array in arrays for x in np.ravel(np.asarray(array)))

    places = ("strecha/images", "strecha/cameras", "listed", "imc/set/images")
    for place in (*places, "imc/set/calibration", "imc/set/new-vis-pairs"):
        (folder / place).mkdir(parents=True)
    matrix, turn, shift = np.diag([300.0, 300, 1]), np.eye(3), np.array([1.0, 0, 0.2])
    for name in "ab":
        for place in ("strecha/images", "listed"):
            (folder / place / f"{name}.png").write_bytes(encoded(".png"))
        (folder / f"imc/set/images/{name}.jpg").write_bytes(encoded(".jpg"))
        (folder / f"strecha/cameras/{name}.png.camera").write_text(
            text(matrix, [0, 0, 0], turn, shift, [16, 12]), encoding="utf-8"
        )
        with h5py.File(folder / f"imc/set/calibration/calibration_{name}.h5", "w") as file:
            for key, array in {"K": matrix, "R": turn, "T": shift}.items():
                file[key] = array
    pose = np.eye(4)
    pose[:3, 3] = shift
    lines = {
        "superglue.txt": f"a.png b.png 0 0 {text(matrix, matrix, pose)}\n",
        "factory.txt": f"a.png b.png {text(matrix, matrix, turn, shift)}\n",
    }
    for name, line in lines.items():
        (folder / "listed" / name).write_text(2 * line, encoding="utf-8")
    np.save(folder / "imc/set/new-vis-pairs/keys-th-0.1.npy", np.array(["a-b", "b-a"]))


def _read_poses(folder: Path) -> None:
    from mkdesc.datasets.poses import read_pose_pairs

    for truth in ("strecha", "listed/superglue.txt", "listed/factory.txt", "imc/set"):
        read_pose_pairs(folder / truth)


_CHUNKS = ("zarr.json", "c/0/0/0")


def _zarr(folder: Path) -> None:
    import zarr

    for name, compressors in (("plain", None), ("small", "auto")):
        zarr.create_array(
            store=folder / f"{name}.zarr",
            data=_patches(),
            chunks=(4, 16, 16),
            compressors=compressors,
        )


def _read_stores(folder: Path) -> None:
    """The beginning and the end: chunks that are not there are zeros, for as long as it says."""
    from mkdesc.datasets.patch_files import open_patches

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* chunks are not there, and are read as")  # it is said
        for file in folder.iterdir():
            source = open_patches(file)
            source.read(0, min(3, source.count))
            source.read(max(0, source.count - 3), source.count)


def _parquet(folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = _patches().reshape(6, -1)
    columns = {
        "lists": pa.array(rows.astype(np.float32).tolist(), pa.list_(pa.float32())),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 256),
        "binary": pa.array([row.tobytes() for row in rows]),
    }
    for name, column in columns.items():
        parquet.write_table(pa.table({"patch": column}), folder / f"{name}.parquet")


#: All of them.
DATASETS = (
    Target("sheets", _subset, ("flat/patches0000.bmp", "flat/info.txt"), _read_sheets, share=0.5),
    Target(
        "info",
        _subset,
        [f"flat/{name}" for name in ("info.txt", "interest.txt", "m50_8_8_0.txt")],
        _read_subset,
    ),
    Target("strips", _sequences, ("i_dome/ref.png", "i_dome/e1.png"), _read_strips, png_sums),
    Target("splits", _sequences, ("splits.json",), _read_split),
    Target("lists", _sequences, [f"{name}_split-a.csv" for name in _LISTS], _read_lists),
    Target("csv", _csv, ("v_wall/ref.csv",), _read_csv),
    Target("npy", _arrays, ("bytes.npy", "floats.npy", "fortran.npy"), _read_arrays),
    Target(
        "zarr",
        _zarr,
        [f"{array}.zarr/{file}" for array in ("plain", "small") for file in _CHUNKS],
        _read_stores,
    ),
    Target(
        "parquet",
        _parquet,
        ("lists.parquet", "fixed.parquet", "binary.parquet"),
        _read_stores,
    ),
    Target("npz", _archives, ("plain.npz", "small.npz"), _read_archives, in_archive),
    Target("colmap-text", _colmap(".txt"), [f"{name}.txt" for name in _COLMAP], _read_colmap),
    Target("colmap-binary", _colmap(".bin"), [f"{name}.bin" for name in _COLMAP], _read_colmap),
    Target("poses", _poses, _POSES, _read_poses),
    Target("homographies", _homography, ("H_1_2",), _read_homography),
)
