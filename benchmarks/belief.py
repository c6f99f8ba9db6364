"""What is believed of pairs of photographs of one scene, and of unrelated ones.

    python benchmarks/belief.py ../shared/data/photos [--others 3000]

Photographs are called SCENE_NUMBER; scenes in ``--same a=b`` are one, photographs whose names
begin as ``--single`` does are each of something else. Prints how many pairs of each kind are
believed, the checks that the others fail, and the strength of the evidence: of unrelated pairs the
highest, of pairs of one scene how many are above it.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from pathlib import Path

import numpy as np

import mkdesc
from mkdesc.belief.evidence import Evidence
from mkdesc.belief.judgement import judge
from mkdesc.features.growing_pair import grow_pair
from mkdesc.images.frames import frames_from_points
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import reduced
from mkdesc.matching.frame_matches import plain_features
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import make_pyramid
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import mutual_matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("--others", type=int, default=3000)
    parser.add_argument("--keypoints", type=int, default=2000)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--same", default="entry=castle")
    parser.add_argument("--single", default="sk")
    options = parser.parse_args()
    features = mkdesc.Features(options.keypoints, n_threads=1)
    alias = dict(pair.split("=") for pair in options.same.split(",") if pair)
    photos = {}
    for path in sorted(options.photos.iterdir()):
        gray = reduced(read_gray(path), options.side)
        keypoints, descriptors = features.extract(gray)
        frames = frames_from_points(keypoints.points, features.sides[0])
        photos[path.stem] = gray.shape, plain_features(frames, descriptors), make_pyramid(gray)

    def scene(name: str) -> str:
        found = name.rsplit("_", 1)[0] if not name.startswith(options.single) else name
        return alias.get(found, found)

    same, others = [], []
    for a, b in itertools.combinations(photos, 2):
        (same if scene(a) == scene(b) else others).append((a, b))
    np.random.default_rng(0).shuffle(others)
    strengths: dict[str, list[float]] = {}
    for kind, pairs in (("one scene", same), ("unrelated", others[: options.others])):
        verdicts: Counter[str] = Counter()
        start = time.process_time()
        for a, b in pairs:
            (size_a, seen_a, one), (size_b, seen_b, two) = photos[a], photos[b]
            asked = TwoViewOptions((size_a, size_b))
            tentative = mutual_matches(seen_a, seen_b, asked)
            grown = grow_pair((one, two), (seen_a, seen_b), tentative, asked, GrowOptions(), 1)
            judged = judge(grown.pair)
            found = Evidence(grown.pair, grown.pair.geometry())
            strengths.setdefault(kind, []).append(found.strength)
            words = "".join(c for c in judged.verdict.reason if not c.isdigit() and c != ",")
            verdicts["believed" if judged.verdict.name == "verified" else words] += 1
            if kind == "unrelated" and judged.verdict.name == "verified":
                print(f"believed: {a} {b}: {judged.verdict.reason}")
        each = (time.process_time() - start) / max(len(pairs), 1)
        print(f"{kind}: {len(pairs)} pairs, {1000 * each:.0f} ms each: {dict(verdicts)}")
    highest = sorted(strengths.get("unrelated", [0.0]))[-3:]
    above = sum(one > highest[-1] for one in strengths["one scene"])
    print(
        f"strength: highest unrelated {np.round(highest, 2).tolist()}; of one scene {above} above"
    )


if __name__ == "__main__":
    main()
