"""Every reader of the package, and small good files for it.

A target makes a folder of good files, says which of them may be damaged, and reads them all.
"""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TARGETS", "Target"]

Change = Callable[[bytes], bytes]


def _as_it_is(name: str, data: bytes, change: Change) -> bytes:
    """Damage the bytes of the file."""
    return change(data)


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes
    ----------
    name
        What it reads.
    prepare
        Makes good files in a folder.
    victims
        Names of those that may be damaged.
    read
        Reads them.
    damage
        Called with a name, bytes and what changes bytes: for what checksums protect.
    named
        Whether errors must name the file.
    share
        How many cases it gets, relative to others; slow ones get fewer.
    """

    name: str
    prepare: Callable[[Path], object]
    victims: Sequence[str]
    read: Callable[[Path], object]
    damage: Callable[[str, bytes, Change], bytes] = _as_it_is
    named: bool = True
    share: float = 1.0


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


@cache
def _picture(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Something with edges, so that it has keypoints."""
    import cv2

    noise = cv2.GaussianBlur(_rng().random((height, width)), (0, 0), 2)
    scaled: NDArray[np.uint8] = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(
        np.uint8
    )
    return scaled


def _encoded(suffix: str, colour: bool = False, *options: int) -> bytes:
    import cv2

    picture = _picture()
    image = (
        np.dstack([picture, picture.T.reshape(picture.shape), 255 - picture])
        if colour
        else picture
    )
    data: bytes = cv2.imencode(suffix, image, list(options))[1].tobytes()
    return data


def _images(name: str, files: dict[str, Callable[[], bytes]], **more: Any) -> Target:
    """A target of files of one format, in variants."""

    def prepare(folder: Path) -> None:
        for file, make in files.items():
            (folder / file).write_bytes(make())

    def read(folder: Path) -> None:
        from mkdesc.images.exif import focal_length
        from mkdesc.images.reading import read_gray

        for file in files:
            focal_length((folder / file).read_bytes(), 80)
            read_gray(folder / file)

    return Target(name, prepare, list(files), read, **more)


def _png_sums(name: str, data: bytes, change: Change) -> bytes:
    """A damaged PNG file, every second one with the checksums that it claims to have."""
    changed = change(data)
    if zlib.crc32(changed) % 2:
        return changed
    fixed, position = bytearray(changed), 8
    while position + 12 <= len(fixed):
        (length,) = struct.unpack_from(">I", fixed, position)
        end = position + 8 + length
        if end + 4 > len(fixed):
            break
        struct.pack_into(">I", fixed, end, zlib.crc32(fixed[position + 4 : end]))
        position = end + 4
    return bytes(fixed)


def _with_exif(jpeg: bytes) -> bytes:
    """A JPEG file with a focal length and an orientation."""
    inner = struct.pack("<HHHIHHI", 1, 0xA405, 3, 1, 28, 0, 0)
    outer = struct.pack("<HHHIIHHIII", 2, 0x112, 3, 1, 6, 0x8769, 4, 1, 38, 0)
    block = b"Exif\0\0II*\0\x08\0\0\0" + outer + inner
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:]


def _models(folder: Path) -> None:
    from mkdesc import MKD, Whitening, save_model
    from mkdesc.heads.head import L2, Affine, Head, Relu
    from mkdesc.heads.whitening import linear_head

    kernels, matrix = "x(1,1)*theta(8,2)", _rng().normal(size=(15, 4)).astype(np.float32)
    plain = MKD(kernels)
    head = linear_head(matrix[:, 0].copy(), matrix, square_root=True)
    plain.whitening = Whitening.of_head(head, method="pca", dims=4)
    save_model(plain, folder / "linear.safetensors", {"source": "photographs", "count": 3})
    stages = (Affine(matrix), Relu(2), Affine(matrix[:4].copy(), matrix[3]), L2())
    save_model(MKD(kernels, head=Head(stages)), folder / "hidden.safetensors")


def _read_models(folder: Path) -> None:
    from mkdesc.models import load_model, read_card

    for file in folder.iterdir():
        load_model(file)
        "\n".join(read_card(file).lines())


def _card(name: str, data: bytes, change: Change) -> bytes:
    """A model file whose card alone is damaged, with a true fingerprint where it can have one."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    card = change(header["__metadata__"]["mkdesc"].encode()).decode("utf-8", "replace")
    header["__metadata__"]["mkdesc"] = card
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def _kornia(folder: Path) -> None:
    from safetensors.numpy import save_file

    rng = _rng()
    tensors: dict[str, NDArray[Any]] = {}
    for kind in ("lw", "pca"):
        tensors[f"liberty.{kind}.mean"] = rng.normal(size=63).astype(np.float32)
        tensors[f"liberty.{kind}.eigvecs"] = rng.normal(size=(63, 63)).astype(np.float32)
        tensors[f"liberty.{kind}.eigvals"] = rng.random(63).astype(np.float32) + 1
    save_file(tensors, folder / "mkd.safetensors")


def _read_kornia(folder: Path) -> None:
    from mkdesc.models import load_model

    for method in ("lw", "pca"):
        load_model(folder / "mkd.safetensors", "liberty", method, 16)


def _statistics(folder: Path) -> None:
    from mkdesc import Statistics

    labels = np.repeat(np.arange(10), 2)
    Statistics(5).update(_rng().normal(size=(20, 5)), labels).save(folder / "s.safetensors")


def _read_statistics(folder: Path) -> None:
    from mkdesc import Statistics

    _ = Statistics.load(folder / "s.safetensors").covariance


def _subset(folder: Path) -> None:
    from mkdesc.datasets.phototourism.layout import Interest
    from mkdesc.datasets.phototourism.writing import draw_pairs, write_subset

    labels = np.repeat(np.arange(6), 2)
    numbers = np.arange(12.0)
    interest = Interest(np.arange(12), numbers, numbers, numbers, numbers)
    patches = _rng().integers(0, 256, (12, 64, 64), np.uint8)
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
    from mkdesc.datasets.hpatches.layout import IMAGES, write_sequence
    from mkdesc.datasets.hpatches.task_lists import draw_retrieval, draw_verification, write_task

    strips = {image: _rng().integers(0, 256, (4, 16, 16), np.uint8) for image in IMAGES}
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

    write_csv(folder, "v_wall", "ref", _rng().normal(size=(5, 4)))


def _read_csv(folder: Path) -> None:
    from mkdesc.datasets.hpatches.csv_files import read_csv

    read_csv(folder, "v_wall", "ref")


def _arrays(folder: Path) -> None:
    patches = _rng().integers(0, 256, (6, 16, 16), np.uint8)
    np.save(folder / "bytes.npy", patches)
    np.save(folder / "floats.npy", patches.astype(">f8"))
    np.save(folder / "fortran.npy", np.asfortranarray(patches))


def _read_arrays(folder: Path) -> None:
    from mkdesc.datasets.patch_files import open_patches

    for file in folder.iterdir():
        for _ in open_patches(file).blocks():
            pass


def _archives(folder: Path) -> None:
    patches = _rng().integers(0, 256, (6, 16, 16), np.uint8)
    labels = np.repeat(np.arange(3), 2)
    np.savez(folder / "plain.npz", patches=patches, labels=labels)
    np.savez_compressed(folder / "small.npz", patches=patches, labels=labels)


def _read_archives(folder: Path) -> None:
    from mkdesc.learn.sources import _labels

    _read_arrays(folder)
    for file in folder.iterdir():
        _labels(file, 6)


def _in_archive(name: str, data: bytes, change: Change) -> bytes:
    """A damaged archive: every second one has true checksums around damaged arrays."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        members = {member: old.read(member) for member in old.namelist()}
        inner = {member: change(content) for member, content in members.items()}
        if zlib.crc32(b"".join(inner.values())) % 2:
            return change(data)
        for member, content in inner.items():
            new.writestr(member, content)
    return out.getvalue()


def _colmap(suffix: str) -> Callable[[Path], None]:
    """A model of two images and some points."""

    def prepare(folder: Path) -> None:
        import pycolmap

        model = pycolmap.Reconstruction()
        camera = pycolmap.Camera.create_from_model_name(1, "SIMPLE_RADIAL", 50.0, 80, 60)
        model.add_camera_with_trivial_rig(camera)
        for number in (1, 2):
            xy = _rng().random((6, 2)) * 50
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
    from mkdesc.datasets.hpatches.make_strips import read_homography

    read_homography(folder / "H_1_2")


@cache
def _settings() -> Any:
    from mkdesc.features.folder import Settings

    return Settings(max_keypoints=20, model="compact", as_stored=True)


def _features(*names: str) -> Callable[[Path], None]:
    """Features of two photographs, in outputs of these names."""

    def prepare(folder: Path) -> None:
        from mkdesc.features.extraction import extract_to

        (folder / "photos").mkdir()
        for name in ("a.png", "b.png"):
            (folder / "photos" / name).write_bytes(_encoded(".png"))
        for name in names:
            extract_to([folder / "photos"], folder / name, _settings(), workers=1)

    return prepare


def _read_features(folder: Path) -> None:
    from mkdesc.features.folder import load_features, refuse_foreign

    refuse_foreign(folder / "out", _settings().to_json())
    load_features(folder / "out", "a.png")


def _read_hdf5(folder: Path) -> None:
    from mkdesc.features.stores.hloc import stored_names

    stored_names(folder / "out.h5", _settings().to_json())


def _read_database(folder: Path) -> None:
    from mkdesc.features.stores.colmap_database import stored_names

    stored_names(folder / "out.db", _settings().to_json())


def _run(folder: Path) -> None:
    from mkdesc.evaluation.report.plots import Plot
    from mkdesc.evaluation.report.runs import Results, open_run, save_results
    from mkdesc.evaluation.report.table import Row, Table

    table = Table("demo", "Scores", ("score",), (Row("ours", (1.5,), (1.2,)),), ("a note",))
    plot = Plot("bars", "Scores", "bars", {"all": {"ours": {"score": 1.5}}})
    results = Results("hpatches", (table,), {"ours": {"score": 1.5}}, (plot,))
    for name in ("one", "two"):
        with open_run(folder / name, {"split": "a", "seed": 3}):
            save_results(folder / name, results)


def _read_runs(folder: Path) -> None:
    from mkdesc.evaluation.report.compare import compare_runs
    from mkdesc.evaluation.report.runs import open_run

    with open_run(folder / "one", {"split": "a", "seed": 3}):
        pass
    try:
        compare_runs([folder / "one", folder / "two"]).markdown()
    except ValueError as error:
        if not str(error).startswith("runs: "):  # of several folders, none of them is named
            raise


def _cached(folder: Path) -> Any:
    from mkdesc import Statistics
    from mkdesc.evaluation.cache import DescriptorCache
    from mkdesc.evaluation.contenders import PatchDescriptor

    mean = PatchDescriptor("mean", lambda patches: patches.mean(axis=(1, 2))[:, None])
    cache = DescriptorCache(folder)
    cache.statistics(mean, "dots", lambda _: Statistics(1).update(np.ones((4, 1))))
    return cache.rows(mean, "dots", 2, lambda: iter([np.ones((2, 8, 8), np.uint8)]))


def _read_cached(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*made again")
        rows = _cached(folder)
    if rows.shape != (2, 1):
        raise RuntimeError(f"descriptors {rows.shape}")


def _report(folder: Path) -> None:
    (folder / "report.json").write_text(
        json.dumps({"mkdesc": "0.1.0", "settings": {"seed": 1}}), encoding="utf-8"
    )


def _read_report(folder: Path) -> None:
    from mkdesc.sfm.report import read_report

    read_report(folder / "report.json")


def _pairs(folder: Path) -> None:
    (folder / "pairs.txt").write_text("# pairs\na.png b.png\nb.png c.png\n", encoding="utf-8")


def _read_pairs(folder: Path) -> None:
    from mkdesc.retrieval.pairs import read_pairs

    read_pairs(folder / "pairs.txt", ["a.png", "b.png", "c.png"])


def _kernels(folder: Path) -> None:
    texts = (
        "polar+cartesian",
        "x(1,1)*theta(8,3) + rho(4,2)*phi(8,2)",
        "standard: x(8,2)*y(8,2)*theta(8,3) + x(8,2)*y(8,2)*intensity(2) + x(8,2)*shape",
    )
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text, encoding="utf-8")


def _read_kernels(folder: Path) -> None:
    from mkdesc import as_parametrization

    for file in folder.iterdir():
        str(as_parametrization(file.read_bytes().decode("utf-8", "replace")))


_ALL = (
    Target("models", _models, ("linear.safetensors", "hidden.safetensors"), _read_models),
    Target("cards", _models, ("linear.safetensors", "hidden.safetensors"), _read_models, _card),
    Target("kornia", _kornia, ("mkd.safetensors",), _read_kornia),
    Target("statistics", _statistics, ("s.safetensors",), _read_statistics),
    Target("sheets", _subset, ("flat/patches0000.bmp", "flat/info.txt"), _read_sheets, share=0.5),
    Target(
        "info",
        _subset,
        [f"flat/{name}" for name in ("info.txt", "interest.txt", "m50_8_8_0.txt")],
        _read_subset,
    ),
    Target("strips", _sequences, ("i_dome/ref.png", "i_dome/e1.png"), _read_strips, _png_sums),
    Target("splits", _sequences, ("splits.json",), _read_split),
    Target("lists", _sequences, [f"{name}_split-a.csv" for name in _LISTS], _read_lists),
    Target("csv", _csv, ("v_wall/ref.csv",), _read_csv),
    Target("npy", _arrays, ("bytes.npy", "floats.npy", "fortran.npy"), _read_arrays),
    Target("npz", _archives, ("plain.npz", "small.npz"), _read_archives, _in_archive),
    _images(
        "png",
        {
            "gray.png": lambda: _encoded(".png"),
            "colour.png": lambda: _encoded(".png", True),
            "bits.png": lambda: _encoded(".png", False, 18, 1),  # IMWRITE_PNG_BILEVEL
        },
        damage=_png_sums,
    ),
    _images(
        "jpeg",
        {
            "gray.jpg": lambda: _encoded(".jpg"),
            "colour.jpg": lambda: _with_exif(_encoded(".jpg", True)),
            "scans.jpg": lambda: _encoded(".jpg", True, 2, 1),  # IMWRITE_JPEG_PROGRESSIVE
            "restarts.jpg": lambda: _encoded(".jpg", True, 4, 2),  # IMWRITE_JPEG_RST_INTERVAL
        },
    ),
    _images(
        "bmp",
        {"gray.bmp": lambda: _encoded(".bmp"), "colour.bmp": lambda: _encoded(".bmp", True)},
    ),
    _images(
        "pnm",
        {
            "gray.pgm": lambda: _encoded(".pgm"),
            "colour.ppm": lambda: _encoded(".ppm", True),
            "text.pgm": lambda: _encoded(".pgm", False, 32, 0),  # IMWRITE_PXM_BINARY
        },
    ),
    _images(
        "webp",
        {
            "lossy.webp": lambda: _encoded(".webp", True, 64, 50),  # IMWRITE_WEBP_QUALITY
            "lossless.webp": lambda: _encoded(".webp", True, 64, 101),
        },
    ),
    _images(
        "tiff",
        {
            "lzw.tif": lambda: _encoded(".tif", True),
            "plain.tif": lambda: _encoded(".tif", False, 259, 1),  # IMWRITE_TIFF_COMPRESSION
            "deflate.tif": lambda: _encoded(".tif", False, 259, 8),
        },
    ),
    Target("colmap-text", _colmap(".txt"), [f"{name}.txt" for name in _COLMAP], _read_colmap),
    Target("colmap-binary", _colmap(".bin"), [f"{name}.bin" for name in _COLMAP], _read_colmap),
    Target("homographies", _homography, ("H_1_2",), _read_homography),
    Target(
        "features",
        _features("out"),
        ("out/a.png.npz", "out/features.json"),
        _read_features,
        lambda name, data, change: (_in_archive if name.endswith("z") else _as_it_is)(
            name, data, change
        ),
    ),
    Target("hdf5", _features("out.h5"), ("out.h5",), _read_hdf5, share=0.05),
    Target("databases", _features("out.db"), ("out.db",), _read_database),
    Target("runs", _run, ("one/config.json", "one/results.json"), _read_runs),
    Target("cache", _cached, ("mean/dots.npy", "mean/dots.statistics.safetensors"), _read_cached),
    Target("reports", _report, ("report.json",), _read_report),
    Target("pairs", _pairs, ("pairs.txt",), _read_pairs),
    Target("kernels", _kernels, ("0", "1", "2"), _read_kernels, named=False),
)
#: By name.
TARGETS = {target.name: target for target in _ALL}
