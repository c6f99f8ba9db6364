"""Describing keypoints of a photograph by one, two and three squares each.

    python benchmarks/squares.py [--photo ../shared/data/photos/castle_02.jpg] [--threads 2]

The kernels and patches of the model `photo`, with random heads of one affine stage; the best of
rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import mkdesc
from mkdesc._support.installed import versions
from mkdesc.heads.head import L2, Affine, Head, Power
from mkdesc.images.cutting import cut_patches
from mkdesc.images.reading import read_gray
from mkdesc.kernels.parametrization import as_parametrization

SIDES = ((20,), (14, 40), (14, 28, 56))


def model_of(sides: tuple[float, ...]) -> mkdesc.MKD:
    photo = mkdesc.load_model("photo")
    kernels = as_parametrization(photo.parametrization)
    dims = len(sides) * kernels.dims
    matrix = np.random.default_rng(0).standard_normal((dims, 128), np.float32)
    head = Head((Power(0.75), L2(), Affine(matrix), L2()))
    return mkdesc.MKD(kernels, photo.patch_size, head=head, side=sides)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photo", type=Path, default=Path("../shared/data/photos/castle_02.jpg"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    image = read_gray(options.photo)
    points = mkdesc.Features(2000).extract(image)[0]
    made = [mkdesc.Features(model=model_of(s), n_threads=options.threads) for s in SIDES]
    best = {sides: [np.inf] * 4 for sides in SIDES}
    for _ in range(options.rounds):
        for sides, features in zip(SIDES, made, strict=True):
            size, how = features.mkd.patch_size, {"interpolation": "linear"}
            clocks = time.perf_counter(), time.process_time()
            cut_patches(image, points, size, sides, n_threads=options.threads, **how)
            middle = time.perf_counter(), time.process_time()
            features.describe(image, points)
            end = time.perf_counter(), time.process_time()
            took = [middle[0] - clocks[0], middle[1] - clocks[1], end[0] - middle[0]]
            took.append(end[1] - middle[1])
            best[sides] = list(map(min, best[sides], took))
    print(f"{len(points)} keypoints, {options.threads} threads; {versions()}")
    for sides, took in best.items():
        cut, cut_cpu, whole, whole_cpu = (1000 * seconds for seconds in took)
        times = took[2] / best[SIDES[0]][2], took[3] / best[SIDES[0]][3]
        print(
            f"{' and '.join(map(str, sides)):16} {whole:6.1f} ms ({times[0]:.2f} times one), "
            f"{whole_cpu:6.1f} ms of CPU ({times[1]:.2f}); of it cutting {cut:.1f}, {cut_cpu:.1f}"
        )


if __name__ == "__main__":
    main()
