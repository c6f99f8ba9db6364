"""Kill workers of a cluster at random moments of every command, and compare what comes out.

    python tools/kill_workers.py [--kills 10] [--only features]

Each command is run undisturbed without a cluster, then on ``local:2`` while a worker is killed
(-9) every few seconds, until there were as many kills as asked for; a command that ends before is
run again in a new place. What was written must be the same, byte for byte, and nothing left over.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
from layouts import draw_pairs, write_subset

from mkdesc._support.cluster import Cluster, connect
from mkdesc._support.work import Workers
from mkdesc.batches import describe_file
from mkdesc.evaluation.phototourism.benchmark import run_phototourism
from mkdesc.features.extraction import extract_to
from mkdesc.features.settings import Settings
from mkdesc.heads.whitening import Whitening
from mkdesc.learn import learn_photos
from mkdesc.learn.photos import Recipe
from mkdesc.retrieval.updating import build_index
from mkdesc.sfm.options import SfmOptions
from mkdesc.sfm.pipeline import match_images

Command = Callable[[Path, Workers], None]


def make_data(folder: Path) -> None:
    """Photographs, patches and a labelled subset of noise."""
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for number in range(12):
        noise = cv2.GaussianBlur(rng.random((700, 900)), (0, 0), 1.5 + number / 6)
        image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
        cv2.imwrite(str(folder / "photos" / f"{number:02}.png"), image)
    np.save(folder / "patches.npy", rng.integers(0, 256, (150_000, 64, 64), np.uint8))
    (folder / "subsets").mkdir()
    for name in ("a", "b"):
        patches = rng.integers(0, 256, (2000, 64, 64), np.uint8)
        labels = np.repeat(np.arange(1000), 2)
        write_subset(
            folder / "subsets" / name, patches, labels, pairs={500: draw_pairs(labels, 500)}
        )


def commands(data: Path) -> dict[str, Command]:
    """What is run, by name: each writes into a folder, with the workers given."""
    photos = data / "photos"
    few = Settings(max_keypoints=1500)

    def features(out: Path, workers: Workers) -> None:
        extract_to([photos], out / "features", settings=few, workers=workers)

    def describe(out: Path, workers: Workers) -> None:
        describe_file(data / "patches.npy", out / "d.npy", model="extended", workers=workers)

    def learn(out: Path, workers: Workers) -> None:
        parts = None if workers is None else out / "parts"
        recipe = Recipe(keypoints_per_photo=400)
        learned = learn_photos(
            photos,
            None,
            whitening=Whitening("gda", ridge=1e-3),
            recipe=recipe,
            workers=workers,
            parts=parts,
        )
        # Sums in another order differ in their last digits: what counts is the model to 1e-6.
        linear = learned.mkd.effective_head().linear()
        assert linear is not None
        np.save(out / "matrix.npy", (linear.matrix / abs(linear.matrix).max()).round(5) + 0.0)
        if parts is not None:
            for file in parts.iterdir():
                file.unlink()
            parts.rmdir()

    def index(out: Path, workers: Workers) -> None:
        build_index(photos, out / "index", few, workers=workers)

    def sfm(out: Path, workers: Workers) -> None:
        match_images(photos, out / "sfm", SfmOptions(settings=few, seed=0), workers=workers)
        for name in ("colmap.log", "database.db"):  # a database has times in it
            (out / "sfm" / name).unlink(missing_ok=True)

    def evaluate(out: Path, workers: Workers) -> None:
        names = ["mkd-raw", "rootsift"]
        run_phototourism(data / "subsets", names, output=out / "run", workers=workers)

    return {
        "features": features,
        "describe": describe,
        "learn": learn,
        "index": index,
        "sfm": sfm,
        "evaluate": evaluate,
    }


def digest(folder: Path) -> dict[str, str]:
    """Hashes of all files, by name."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name not in ("config.json", "index.json")
    }


class Killer(threading.Thread):
    """Kills a worker every now and then, until it is told to stop."""

    def __init__(self, cluster: Cluster, rng: random.Random, most: int) -> None:
        super().__init__(daemon=True)
        self.kills = 0
        self._cluster, self._rng, self._most = cluster, rng, most
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Kill, and wait until the nanny has started another."""
        while self.kills < self._most:
            if self._stop_asked.wait(self._rng.uniform(0.2, 4)):
                return
            nannies = self._cluster.client.cluster.workers.values()
            pids = [nanny.pid for nanny in nannies if nanny.pid is not None]
            with suppress(ProcessLookupError, IndexError):  # it is gone, or all are
                os.kill(self._rng.choice(pids), signal.SIGKILL)
                self.kills += 1

    def stop(self) -> None:
        """Let it end."""
        self._stop_asked.set()
        self.join()


def main() -> None:
    """Run all commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, help="per command")
    parser.add_argument("--only", nargs="+", help="names of commands")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir()
        make_data(data)
        rng = random.Random(0)
        for name, command in commands(data).items():
            if options.only and name not in options.only:
                continue
            alone = Path(place) / f"{name}-alone"
            alone.mkdir()
            command(alone, None)
            expected = digest(alone)
            kills = runs = different = 0
            start = time.perf_counter()
            while kills < options.kills:
                out = Path(place) / f"{name}-{runs}"
                out.mkdir()
                with connect("local:2") as cluster:
                    killer = Killer(cluster, rng, options.kills - kills)
                    killer.start()
                    command(out, cluster)
                    killer.stop()
                kills, runs = kills + killer.kills, runs + 1
                found = digest(out)
                different += found != expected
                for file in sorted(found.keys() ^ expected.keys()):
                    print(f"  {name}: {file} is {'left over' if file in found else 'missing'}")
            bad += different
            seconds = time.perf_counter() - start
            print(f"{name}: {kills} kills in {runs} runs, {different} differ, {seconds:.0f} s")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
