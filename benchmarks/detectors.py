"""Detecting, beside OpenCV: time, CPU time, memory, and how far SIFT's keypoints are found.

A photograph is resized to several sizes; contenders take turns for several rounds, and medians are
shown. CPU time is that of all threads of the process. Memory is the most that a process of its own
had in use, less what it had before it detected. Agreement: how many of the strongest 2,000 of
OpenCV's keypoints are found within 0.3 px, 5% of sigma and 3 degrees.

    python benchmarks/detectors.py PHOTOGRAPH... [--threads 2] [--rounds 5] [--keypoints 2000]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mkdesc import Features
from mkdesc.images.detectors.dog import Dog
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.opencv import Sift
from mkdesc.images.reading import read_gray

MEGAPIXELS = (0.3, 1.0, 2.0, 12.0)

Gray = NDArray[np.uint8]


def of_size(gray: Gray, megapixels: float) -> Gray:
    """The photograph, resized to so many pixels."""
    scale = (megapixels * 1e6 / gray.size) ** 0.5
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(gray, None, fx=scale, fy=scale, interpolation=way), np.uint8)


def contenders(keypoints: int, threads: int) -> dict[str, Callable[[Gray], Any]]:
    """What detects, and what detects and describes."""
    dog, ours = Dog(keypoints, n_threads=threads), Features("dog", keypoints, n_threads=threads)
    opencv: Any = cv2
    sift = opencv.SIFT_create(keypoints, enable_precise_upscale=True)
    orb = opencv.ORB_create(keypoints)
    return {
        "cv2.SIFT detect": lambda gray: sift.detect(gray, None),
        "dog detect": dog.detect,
        "cv2.ORB detect": lambda gray: orb.detect(gray, None),
        "cv2.SIFT detectAndCompute": lambda gray: sift.detectAndCompute(gray, None),
        "Features(dog) detectAndCompute": ours.detectAndCompute,
    }


def memory_of(name: str, photograph: Path, megapixels: float, args: argparse.Namespace) -> float:
    """Megabytes that detecting takes, in a process of its own."""
    command = [sys.executable, __file__, str(photograph), "--threads", str(args.threads)]
    command += ["--keypoints", str(args.keypoints), "--memory", name, str(megapixels)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_memory(photograph: Path, name: str, megapixels: float, args: argparse.Namespace) -> None:
    """What the other process does."""

    def peak() -> float:  # not getrusage: there a process starts with what its parent had
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    cv2.setNumThreads(args.threads)
    gray = of_size(read_gray(photograph), megapixels)
    run = contenders(args.keypoints, args.threads)[name]
    run(gray[:64, :64].copy())
    before = peak()
    run(gray)
    print(peak() - before)


def share_found(wanted: Keypoints, found: Keypoints) -> float:
    """How many keypoints are among others, by place, sigma and angle."""
    tree = cKDTree(found.points[:, :2])
    right = 0
    for x, y, sigma, angle in wanted.points:
        near = found.points[tree.query_ball_point((x, y), 0.3)]
        turned = np.abs((near[:, 3] - angle + 180) % 360 - 180)
        right += bool(((np.abs(near[:, 2] / sigma - 1) < 0.05) & (turned < 3)).any())
    return right / max(len(wanted), 1)


def measure(photograph: Path, megapixels: float, args: argparse.Namespace) -> None:
    gray = of_size(read_gray(photograph), megapixels)
    runs = contenders(args.keypoints, args.threads)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(args.rounds + 1):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run(gray)
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    theirs = Sift().detect(gray)
    agreement = share_found(theirs.strongest(2000), Dog(repeats=True).detect(gray))
    height, width = gray.shape
    print(
        f"\n{photograph.name}, {width} x {height}: {agreement:.1%} of SIFT's keypoints are dog's"
    )
    print("                                       ms   CPU ms   of SIFT's   memory MB")
    base = 0.0
    for name, rounds in times.items():
        wall, cpu = (1e3 * statistics.median(some) for some in zip(*rounds[1:], strict=True))
        base = cpu if name.startswith("cv2.SIFT") else base
        memory = memory_of(name, photograph, megapixels, args)
        print(f"  {name:<32} {wall:>8.1f} {cpu:>8.1f} {cpu / base:>10.2f} {memory:>12.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("photographs", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--megapixels", type=float, nargs="+", default=MEGAPIXELS)
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        print_memory(args.photographs[0], args.memory[0], float(args.memory[1]), args)
        return
    cv2.setNumThreads(args.threads)
    packages = ", ".join(f"{name} {version(name)}" for name in ("mkdesc", "numba", "numpy"))
    print(f"Python {platform.python_version()}, {packages}, OpenCV {cv2.__version__}")
    print(f"{args.threads} threads, {args.keypoints} keypoints, medians of {args.rounds} rounds")
    for photograph in args.photographs:
        for megapixels in args.megapixels:
            measure(photograph, megapixels, args)


if __name__ == "__main__":
    main()
