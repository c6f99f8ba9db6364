"""What is believed of pairs that look alike and are not the same, or not as sharp.

See :mod:`hostile_pairs`, :mod:`hostile_layouts` and :mod:`hostile_degraded`.

    python benchmarks/hostile.py [--data ../shared/data] [--geometry auto]

Of each kind: how many are believed, how many of these by a geometry of which more than 5% of the
verified matches are wrong (8 px, where that is known), and how many by an epipolar geometry.
Pieces that changed places may be believed, one by one: as a plane, with right matches.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from hostile_degraded import degraded
from hostile_layouts import layouts
from hostile_pairs import Hostile, hostile

import mkdesc

OFF, WRONG = 8.0, 0.05


def share_wrong(pair: Hostile, found: mkdesc.ImageMatches) -> float:
    if pair.truth is None:  # a scene with depth
        return 0.0
    here, there = found.points_a[found.inliers], found.points_b[found.inliers]
    near = np.linalg.norm(pair.truth(here) - there, axis=1) < OFF
    return float(1 - near.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--geometry", default="auto")
    options = parser.parse_args()
    features = mkdesc.Features(options.keypoints)
    rows: dict[str, list[tuple[bool, bool, bool]]] = {}
    kinds = hostile, layouts, degraded
    for pair in itertools.chain.from_iterable(one(options.data) for one in kinds):
        found = mkdesc.match_images(pair.a, pair.b, features, geometry=options.geometry)
        wrong = found.verified and share_wrong(pair, found) > WRONG
        deep = found.verified and found.geometry != "homography"
        rows.setdefault(pair.kind, []).append((found.verified, wrong, deep))
        if found.verified and not pair.kind.startswith("same"):
            print(f"{pair.kind}: {pair.name}: {found}", flush=True)
    for kind, those in rows.items():
        believed, wrong, deep = np.sum(those, axis=0)
        print(
            f"{kind:<15} {believed:3d} of {len(those):3d} believed; {wrong} wrong, {deep} epipolar"
        )


if __name__ == "__main__":
    main()
