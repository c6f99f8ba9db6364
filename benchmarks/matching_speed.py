"""Nearest neighbours of two sets of descriptors: float32, uint8, bits, and OpenCV's matchers.

    python benchmarks/matching_speed.py [--count 10000] [--rounds 7]

Random descriptors; mutual nearest neighbours; the best of rounds in which all take turns. Seconds
by the clock and of all cores together.
"""

from __future__ import annotations

import argparse
import time

import cv2
import numpy as np

import mkdesc
from mkdesc._support.installed import versions
from mkdesc._support.threads import available_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = (2, options.count, 128)
    floats = rng.standard_normal(shape, np.float32)
    floats /= np.linalg.norm(floats, axis=2, keepdims=True)
    rounded = np.rint(floats * 256 + 128).clip(0, 255).astype(np.uint8)
    bits = rng.integers(0, 256, (2, options.count, 32), np.uint8)
    hamming = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True)
    euclidean = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True)
    contenders = {
        "mkdesc, float32, 128 numbers": lambda: mkdesc.match_descriptors(*floats),
        "mkdesc, uint8, 128 numbers": lambda: mkdesc.match_descriptors(*rounded),
        "mkdesc, 256 bits": lambda: mkdesc.match_descriptors(*bits, bits=True),
        "OpenCV, float32, 128 numbers": lambda: euclidean.match(*floats),
        "OpenCV, 256 bits": lambda: hamming.match(*bits),
    }
    best = dict.fromkeys(contenders, (np.inf, np.inf))
    for number in range(options.rounds + 1):  # the first compiles
        for name, match in contenders.items():
            clock, cpu = time.perf_counter(), time.process_time()
            match()
            took = time.perf_counter() - clock, time.process_time() - cpu
            if number:
                best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
    base = best["mkdesc, float32, 128 numbers"]
    print(f"{options.count} x {options.count}, {available_threads()} threads; {versions()}")
    print(f"{'':30} {'ms':>8} {'ms of CPU':>10} {'times as fast as float32 (CPU)':>31}")
    for name, (clock, cpu) in best.items():
        ratios = f"{base[0] / clock:.2f} ({base[1] / cpu:.2f})"
        print(f"{name:30} {1000 * clock:8.1f} {1000 * cpu:10.1f} {ratios:>31}")


if __name__ == "__main__":
    main()
