"""Finding photographs: how well, how fast, and how large.

    python benchmarks/retrieval.py quality [--data ../shared/data]
    python benchmarks/retrieval.py cost
    python benchmarks/retrieval.py scale [--most 1000000]

``quality`` mixes the sequences, the multi-view scenes and the single photographs into one folder.
Queries are the images of the sequences and of the multi-view scenes, right answers the other
images of the same (those photographs that show the door of lund-door too); mean average
precision, without and with verification of the first 50. Beside it the same code over RootSIFT of
the same keypoints. Then the pairs: which share of those that exhaustive matching verifies is
among the retrieved ones.

``cost`` indexes 1,000 photographs of a megapixel, made by warps of a few, beside the time that
describing them takes. ``scale`` measures search in synthetic signatures.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from mkdesc.features.image_features import ImageFeatures, features_path, load_features
from mkdesc.images import Keypoints, read_gray
from mkdesc.matching import match_descriptors, verify_matches
from mkdesc.measures import average_precision
from mkdesc.retrieval import Index, build_index, similar_pairs
from mkdesc.retrieval.agreement import agree
from mkdesc.retrieval.codebook import words_for
from mkdesc.retrieval.collecting import learn_from, signatures_of
from mkdesc.retrieval.search import Signatures, best_of
from mkdesc.retrieval.segments import SHARD, Shard, write_shards
from mkdesc.retrieval.signature import Signature

#: Photographs that show a multi-view scene.
SAME = {"door": "lund-door"}


def mixed(data: Path, folder: Path) -> dict[str, str]:
    """Link all photographs into one folder; the scene of each by name."""
    scenes = {}
    groups = [
        *((file.parent.name, file) for file in data.glob("sequences/*/*.png")),
        *((file.parents[1].name, file) for file in data.glob("multiview/*/images/*")),
        *((f"photo {file.stem.rpartition('_')[0]}", file) for file in data.glob("photos/*")),
    ]
    folder.mkdir()
    for scene, file in groups:
        name = f"{scene}-{file.name}".replace(" ", "-")
        (folder / name).symlink_to(file.resolve())
        scenes[name] = SAME.get(scene.removeprefix("photo "), scene)
    return scenes


def rootsift(images: Path, like: Path, folder: Path, names: list[str]) -> None:
    """RootSIFT of the keypoints of other features, in the same files."""
    sift = cv2.SIFT_create()
    for name in names:
        found = load_features(like, name)
        image = read_gray(images / name, as_stored=True)
        _, described = sift.compute(image, Keypoints(found.keypoints, found.scores).to_opencv())
        rooted = np.sqrt(described / np.maximum(described.sum(axis=1, keepdims=True), 1e-9))
        path = features_path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        own = ImageFeatures(found.keypoints, found.scores, rooted, found.image_size)
        with path.open("wb") as file:
            np.savez(file, **vars(own))


def precision(signatures: Signatures, features: Path, scenes: dict[str, str]) -> list[float]:
    """Mean average precision without and with verification."""
    names = signatures.names
    plain, verified = [], []
    for shard in signatures.shards:
        for name, _, own in shard.entries():
            if scenes[name].startswith("photo ") or name.startswith("photo-"):
                continue
            scores = signatures.similarities(own).astype(np.float64)
            keep = np.array([other != name for other in names])
            right = np.array([scenes[other] == scenes[name] for other in names])
            plain.append(average_precision(scores[keep], right[keep]))
            scores[names.index(name)] = -1
            query = load_features(features, name)
            for number in best_of(scores.astype(np.float32), 50):
                scores[number] += len(agree(query, load_features(features, names[number])).here)
            verified.append(average_precision(scores[keep], right[keep]))
    return [float(np.mean(plain)), float(np.mean(verified))]


def quality(data: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        scenes = mixed(data, work / "mix")
        build_index(work / "mix", work / "index")
        index = Index(work / "index")
        names = sorted(scenes)
        print(f"{len(names)} images")
        folders = {"photo": work / "index/features", "RootSIFT": work / "rootsift"}
        rootsift(work / "mix", folders["photo"], folders["RootSIFT"], names)
        for kind, folder in folders.items():
            words = learn_from(folder, names)
            made = signatures_of(folder, names, words)
            (work / kind).mkdir()
            shards = list(write_shards(work / kind, 0, made, len(words)))
            plain, verified = precision(Signatures(words, shards), folder, scenes)
            print(f"{kind:<9} mAP {plain:.4f}, verified {verified:.4f}", flush=True)
        pairs = {*similar_pairs(index.signatures)}
        features = {name: index.features(name) for name in names}
        agreed = {pair for pair in itertools.combinations(names, 2) if verifies(features, *pair)}
        every = len(names) * (len(names) - 1) // 2
        print(
            f"retrieved {len(pairs)} of {every} pairs ({len(pairs) / every:.1%}); of "
            f"{len(agreed)} verified ones {len(pairs & agreed) / len(agreed):.1%}"
        )


def verifies(features: dict[str, ImageFeatures], a: str, b: str) -> bool:
    """Whether two images agree on a fundamental matrix."""
    one, other = features[a], features[b]
    pairs = match_descriptors(one.descriptors, other.descriptors, ratio=0.95).pairs
    places = one.keypoints[pairs[:, 0], :2], other.keypoints[pairs[:, 1], :2]
    return bool(verify_matches(*places).inliers.any())


COST = """
import resource, sys, time
from pathlib import Path
from mkdesc.features import extract_features
from mkdesc.images import find_images
from mkdesc.retrieval import build_index
from mkdesc.retrieval.updating import DEFAULT
images, output = map(Path, sys.argv[2:])
start = time.process_time()
if sys.argv[1] == "describe":
    extract_features(find_images([images]), output, DEFAULT)
else:
    build_index(images, output)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.process_time() - start:.1f} {peak:.0f}")
"""


def cost(data: Path, count: int) -> None:
    """CPU seconds and memory of an index beside those of describing alone."""
    rng = np.random.default_rng(0)
    sources = [file for file in sorted(data.glob("photos/*")) if "sk_" not in file.name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "images"
        folder.mkdir()
        for number in range(count):
            image = cv2.imread(str(sources[number % len(sources)]), 0)
            corners = np.float32([[0, 0], [1, 0], [1, 1], [0, 1]])
            side = np.float32(image.shape[::-1])
            start = (corners + rng.uniform(-0.1, 0.1, (4, 2)).astype(np.float32)) * side
            warp = cv2.getPerspectiveTransform(start, corners * np.float32([1152, 868]))
            warped = cv2.warpPerspective(image, warp, (1152, 868), borderMode=cv2.BORDER_REFLECT)
            cv2.imwrite(str(folder / f"{number:04d}.jpg"), warped)
        for what in ("describe", "index"):
            command = [sys.executable, "-c", COST, what, str(folder), f"{place}/{what}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, memory = done.stdout.split()
            print(f"{what:<9} {count} images: {seconds} CPU s, {memory} MB", flush=True)


def scale(most: int) -> None:
    """Search in synthetic signatures: 55% of 1,000 keypoints have a word of their own."""
    rng = np.random.default_rng(0)
    count = 1000
    while count <= most:
        words = words_for(count)
        sizes = {1024: 430, 4096: 630, 16384: 800}[words]
        # Words are not equally frequent: their shares fall like those of real collections.
        shares = rng.gamma(2.0, size=words)
        shares /= shares.sum()

        def make(number: int, words: int = words, size: int = sizes, p=shares) -> Signature:
            # Gumbel's trick: different words, likely ones more often.
            keys = np.log(p) - np.log(rng.exponential(size=words))
            chosen = np.sort(np.argpartition(-keys, size)[:size])
            codes = rng.integers(0, 1 << 63, (size, 2), np.uint64, endpoint=True)
            return Signature(chosen, codes)

        pool = [make(number) for number in range(500)]  # making all takes longer than searching
        with tempfile.TemporaryDirectory(dir=os.environ.get("MKDESC_SCRATCH")) as place:
            own = min(count, SHARD)
            names = [f"{number:08d}.jpg" for number in range(own)]
            found = [(name, "", pool[i % 500]) for i, name in enumerate(names)]
            shards = list(write_shards(Path(place), 0, found, words))
            for number in range(1, -(-count // SHARD)):  # copies: on the disk and in memory
                copy = Path(place) / f"shard-{number:06d}"
                shutil.copytree(shards[0].folder, copy)
                shards.append(Shard(copy))
            size = sum(file.stat().st_size for file in Path(place).rglob("*.npy"))
            signatures = Signatures(np.zeros((words, 128), np.float32), shards)
            times, cpu = [], []
            for number in range(8):
                start, used = time.perf_counter(), time.process_time()
                signatures.nearest(pool[number], 10)
                times.append(time.perf_counter() - start)
                cpu.append(time.process_time() - used)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{count:>9,} images, {words:>6,} words: {size / 1e6:>8,.0f} MB of files, "
                f"search {1e3 * np.median(times[2:]):.1f} ms (fastest {1e3 * min(times):.1f}, "
                f"CPU {1e3 * np.median(cpu[2:]):.1f}), process {peak:,.0f} MB",
                flush=True,
            )
        count *= 10


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("quality", "cost", "scale"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--most", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.what == "quality":
        quality(options.data)
    elif options.what == "cost":
        cost(options.data, options.count)
    else:
        scale(options.most)


if __name__ == "__main__":
    main()
