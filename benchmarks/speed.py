"""Patches per second beside the peers', all in one run, with the same number of threads.

Contenders take turns for several rounds; the table shows the median of the rounds and the
spread between the quartiles. Peers that are not installed are left out, and that is said.

    python benchmarks/speed.py [--threads 2] [--rounds 7] [--output results.json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from mkdesc import MKD, load_model
from mkdesc.evaluation.speed import Contender, measure_speeds, textured_patches

SIZES = (32, 64, 65)
#: Patches per round: enough to fill the threads, few enough to take turns often.
FAST, SLOW = 8192, 512


def ours(size: int, threads: int) -> Iterator[tuple[str, Contender]]:
    uint8 = textured_patches(FAST, size)
    float32 = uint8.astype(np.float32) / 255
    few = uint8[:64]
    mkd = MKD(patch_size=size, n_threads=threads)
    one = MKD(patch_size=size, n_threads=1)
    reference = MKD(patch_size=size, backend="reference")
    paper = load_model("paper-32px" if size == 32 else "paper")
    paper.set_params(n_threads=threads, resize=size == 65)
    extended, net = (
        load_model(name).set_params(
            n_threads=threads, resize=size == 65, patch_size=32 if size == 32 else 64
        )
        for name in ("extended", "extended-net")
    )
    yield "mkdesc, uint8", (lambda: mkd.transform(uint8), FAST)
    yield "mkdesc, float32", (lambda: mkd.transform(float32), FAST)
    yield "mkdesc, uint8, 1 thread", (lambda: one.transform(uint8[: FAST // 2]), FAST // 2)
    yield "mkdesc, model paper", (lambda: paper.transform(uint8), FAST)
    yield "mkdesc, model extended", (lambda: extended.transform(uint8), FAST)
    yield "mkdesc, model extended-net", (lambda: net.transform(uint8), FAST)
    yield "mkdesc reference", (lambda: reference.transform(few), len(few))


def opencv(size: int, threads: int) -> Iterator[tuple[str, Contender]]:
    import cv2

    cv2.setNumThreads(threads)
    side = 48
    patches = textured_patches(side * side, size)
    mosaic = patches.reshape(side, side, size, size).swapaxes(1, 2).reshape(side * size, -1)
    centres = (np.arange(side) + 0.5) * size
    # SIFT looks at a square of side 12 sigma; a keypoint's size is 2 sigma.
    keypoints = [cv2.KeyPoint(x, y, size / 6, 0) for y in centres for x in centres]
    sift = cv2.SIFT_create()
    yield "OpenCV SIFT.compute", (lambda: sift.compute(mosaic, keypoints), len(keypoints))


def kornia(size: int, threads: int) -> Iterator[tuple[str, Contender]]:
    import torch
    from kornia.feature import HardNet, MKDDescriptor, SIFTDescriptor

    torch.set_num_threads(threads)

    def contender(module: Any, side: int, batch: int, n: int = SLOW) -> Contender:
        patches = torch.from_numpy(textured_patches(n, side)[:, None] / np.float32(255))
        module.eval()

        def run() -> None:
            with torch.inference_mode():
                for part in patches.split(batch):
                    module(part)

        return run, n

    mkd = MKDDescriptor(patch_size=size, whitening=None)
    for batch in (16, 64, 256):  # its best depends on the caches: try several, keep the best
        yield f"kornia MKDDescriptor, batch {batch}", contender(mkd, size, batch)
    sift = SIFTDescriptor(size)
    for batch in (16, 128):
        yield f"kornia SIFTDescriptor, batch {batch}", contender(sift, size, batch)
    if size == 32:
        yield "kornia HardNet (32 px)", contender(HardNet(pretrained=False), 32, 64)


def throughput(threads: int, rounds: int) -> dict[str, Any]:
    tables = {}
    for size in SIZES:
        contenders: dict[str, Contender] = {}
        for family in (ours, opencv, kornia):
            try:
                contenders |= family(size, threads)
            except ImportError as error:
                print(f"left out: {family.__name__} ({error})")
        results = measure_speeds(contenders, rounds)
        tables[f"{size} px"] = {name: asdict(speed) for name, speed in results.items()}
        base = results["mkdesc, uint8"].median
        print(f"\n{size} px, {threads} threads        patches/s   (quartiles)        mkdesc is")
        for name, speed in results.items():
            quartiles = f"{speed.low:>9,.0f} {speed.high:>9,.0f}"
            ratio = f"{base / speed.median:6.1f}x"
            print(f"  {name:<32} {speed.median:>9,.0f}   {quartiles}   {ratio}")
    return tables


def latency(mkd: MKD) -> float:
    """Seconds for a single 64-px patch after warm-up."""
    patch = textured_patches(1, 64)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        mkd.transform(patch)
        times.append(time.perf_counter() - start)
    return statistics.median(times[20:])


FIRST_CALL = """
import time
start = time.perf_counter()
import mkdesc
imported = time.perf_counter()
import numpy as np
patch = np.zeros((1, 64, 64), np.uint8)
called = time.perf_counter()
mkdesc.MKD().transform(patch)
print(imported - start, time.perf_counter() - called)
"""

PEAK = """
import resource, numpy as np, mkdesc
mkdesc.MKD().transform(np.zeros((600, 64, 64), np.uint8))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
patches = np.empty((100_000, 64, 64), np.uint8)
for i in range(len(patches)):
    patches[i] = i % 251
patches[:, ::3] += 7
before = peak()
out = mkdesc.MKD().transform(patches)
print(peak() - before - out.nbytes)
"""


def child(code: str, cache: str) -> list[float]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "numba", "opencv-python-headless", "torch", "kornia"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results-speed.json"))
    options = parser.parse_args()
    print(*(f"{name} {number}" for name, number in versions().items()), sep=", ")

    results: dict[str, Any] = {"versions": versions(), "threads": options.threads}
    results["throughput"] = throughput(options.threads, options.rounds)
    results["single_patch_seconds"] = latency(MKD())
    results["single_patch_extended_net_seconds"] = latency(load_model("extended-net"))
    with tempfile.TemporaryDirectory() as cache:
        first = child(FIRST_CALL, cache)
        following = [child(FIRST_CALL, cache) for _ in range(5)]
        results["import_seconds"] = statistics.median(run[0] for run in following)
        results["first_call_ever_seconds"] = first[1]
        results["first_call_next_process_seconds"] = statistics.median(run[1] for run in following)
        results["peak_bytes_beyond_input_and_output"] = child(PEAK, cache)[0]
    print(f"\none 64-px patch: {1e3 * results['single_patch_seconds']:.2f} ms")
    net = results["single_patch_extended_net_seconds"]
    print(f"the same with extended-net: {1e3 * net:.2f} ms")
    print(f"import mkdesc: {results['import_seconds']:.2f} s")
    print(f"first call ever (compiles): {results['first_call_ever_seconds']:.1f} s")
    print(f"first call of the next process: {results['first_call_next_process_seconds']:.2f} s")
    megabytes = results["peak_bytes_beyond_input_and_output"] / 2**20
    print(f"peak memory beyond 100,000 patches and their descriptors: {megabytes:.0f} MB")
    options.output.write_text(json.dumps(results, indent=2))
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
