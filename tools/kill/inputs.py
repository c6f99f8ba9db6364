"""Small inputs for every command that writes, and the commands."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tools

from layouts import draw_pairs, write_subset

__all__ = ["COMMANDS", "earlier", "make_inputs"]

#: Commands by name, run in an empty folder. ``{data}`` is the folder of inputs.
COMMANDS = {
    "demo": "demo photos",
    "describe": "describe {data}/patches.npy -o out.npy --raw cartesian",
    "describe-zarr": "describe {data}/patches.npy -o out.zarr --raw cartesian",
    "describe-parquet": "describe {data}/patches.npy -o out.parquet --raw cartesian",
    "learn": "learn patches {data}/train.npz -o m.safetensors --dims 8 --ridge 1e-3",
    "learn-photos": "learn photos {data}/photos -o m.safetensors --keypoints 40 --dims 16",
    "learn-phototourism": "learn phototourism {data}/subsets/castle -o m.safetensors --dims 8",
    "learn-hpatches": "learn hpatches {data}/strips -o m.safetensors --dims 8",
    "learn-descriptor": "learn descriptor {data}/photos -o m.safetensors --steps 2 --device cpu"
    " --head linear --dims 16 --parametrization cartesian --sides 20",
    "learn-keypoints": "learn keypoints {data}/photos -o w.safetensors --steps 2 --device cpu",
    "learn-ratio": "learn ratio photo {data}/demo/views -o m.safetensors",
    "match": "match {data}/photos/a.png {data}/photos/b.png -o m.png -o m.npz -o m.csv -o m.svg",
    "match-jpg": "match {data}/photos/a.png {data}/photos/b.png -o m.jpg",
    "align": "align {data}/photos/a.png {data}/photos/b.png -o a.png --blink b.gif",
    "align-jpg": "align {data}/photos/a.png {data}/photos/b.png -o a.jpg --difference d.png",
    "features": "features {data}/photos -o out --keypoints 50",
    "features-h5": "features {data}/photos -o out.h5 --keypoints 50",
    "features-db": "features {data}/photos -o out.db --keypoints 50",
    "index": "index {data}/photos -o index --keypoints 50",
    "find": "find {data}/photos/a.png {data}/index -o sheet.jpg",
    "groups": "groups {data}/index -o scenes --least 1",
    "pairs": "pairs {data}/photos -o pairs.txt --index index",
    "sfm": "sfm {data}/photos -o model --stop-after matches --keypoints 200",
    "sfm-whole": "sfm {data}/demo/views -o model --keypoints 1000 --seed 1",
    "make-hpatches": "make-hpatches {data}/graf {data}/wall -o strips --max-patches 20",
    "export-csv": "export hpatches-csv {data}/strips -o csv",
    "evaluate": "evaluate hpatches {data}/strips -o run -d mkd-raw,paper --tasks matching",
    "evaluate-pairs": "evaluate phototourism {data}/subsets -o run -d mkd-raw,paper",
    "evaluate-planes": "evaluate homography {data}/sequences -o run -m rootsift,mkdesc",
    "evaluate-poses": "evaluate pose {data}/posed -o run -m rootsift,mkdesc",
    "compare": "compare {data}/run1 {data}/run2 -o both",
    "inspect": "inspect {data}/patch-a.png {data}/patch-b.png -o i.png",
    "export-onnx": "export onnx paper-64 -o m.onnx",
    "export-page": "explore --export page.html",
    "figures": "figures -o figures --formats png",
}
#: Inputs that commands make, in the order in which they are needed.
_EARLIER = {
    "demo": COMMANDS["demo"].replace("photos", "{data}/demo"),
    "index": COMMANDS["index"].replace("-o ", "-o {data}/"),
    "strips": COMMANDS["make-hpatches"].replace("-o ", "-o {data}/"),
    "run1": COMMANDS["evaluate"].replace("-o run", "-o {data}/run1"),
    "run2": COMMANDS["evaluate"].replace("-o run -d mkd-raw", "-o {data}/run2 -d paper-64"),
}


def earlier(names: Iterable[str]) -> list[str]:
    """Commands that make what others need."""
    found: dict[str, str] = {}
    wanted = [COMMANDS[name] for name in names]
    for name, command in reversed(_EARLIER.items()):
        if any(f"{{data}}/{name}" in one for one in wanted):
            found[name] = command
            wanted.append(command)
    return list(reversed(found.values()))


def _noise(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Something with keypoints."""
    import cv2

    noise = cv2.GaussianBlur(rng.random(shape), (0, 0), 2)
    scaled = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
    return np.asarray(scaled, np.uint8)


def make_inputs(data: Path) -> None:
    """Photographs, patches with labels, two sequences and two subsets."""
    import cv2

    rng = np.random.default_rng(0)
    (data / "photos").mkdir(parents=True)
    scene = _noise(rng, (300, 400))
    for number, name in enumerate("abcde"):
        cv2.imwrite(str(data / "photos" / f"{name}.png"), scene[10 * number :, : 400 - 9 * number])
        cv2.imwrite(str(data / f"patch-{name}.png"), scene[10 * number :, :64][:64])
    np.save(data / "patches.npy", rng.integers(0, 256, (20_000, 16, 16), np.uint8))
    points = np.repeat(rng.random((60, 16, 16)), 3, axis=0)
    noisy = np.clip(points + rng.normal(0, 0.05, points.shape), 0, 1)
    labels = np.repeat(np.arange(60), 3)
    np.savez(data / "train.npz", patches=(255 * noisy).astype(np.uint8), labels=labels)
    for name in ("graf", "wall"):
        (data / name).mkdir()
        view = _noise(rng, (200, 200))
        for k in range(1, 7):
            cv2.imwrite(str(data / name / f"{k}.png"), view)
            np.savetxt(data / name / f"H_1_{k}", np.eye(3))
        shutil.copytree(data / name, data / "sequences" / name)
    _write_posed(data / "posed", scene)
    for name in ("castle", "door"):
        _write_subset(data / "subsets" / name, rng)


def _write_posed(folder: Path, scene: NDArray[np.uint8]) -> None:
    """Two photographs of a plane, with Strecha's cameras."""
    import cv2

    for part in ("images", "cameras"):
        (folder / part).mkdir(parents=True)
    for number in range(2):
        view = scene[:240, 20 * number : 320 + 20 * number]
        cv2.imwrite(str(folder / "images" / f"{number}.png"), view)
        rows = ["300 0 160", "0 300 120", "0 0 1", "0 0 0", "1 0 0", "0 1 0", "0 0 1"]
        text = "\n".join([*rows, f"{number} 0 0", "320 240"])
        (folder / "cameras" / f"{number}.png.camera").write_text(text, encoding="utf-8")


def _write_subset(folder: Path, rng: np.random.Generator) -> None:
    """A subset in the Phototourism layout: 60 points, two patches of each."""
    folder.parent.mkdir(exist_ok=True)
    labels = np.repeat(np.arange(60), 2)
    noisy = np.repeat(rng.random((60, 64, 64)), 2, axis=0) + rng.normal(0, 0.05, (120, 64, 64))
    patches = (255 * np.clip(noisy, 0, 1)).astype(np.uint8)
    write_subset(folder, patches, labels, pairs={50: draw_pairs(labels, 50)})
