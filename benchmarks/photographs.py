"""Features on photographs, everybody in one run: the tables of README.md and docs, as Markdown.

Homographies of the Oxford sequences, relative poses of fountain-P11 and lund-door, at 1 px and at
the threshold chosen for each method; CPU seconds per megapixel, and milliseconds per pair.
RootSIFT, mkdesc and ALIKED are shown with grown matches, too. Pages and all numbers go to the
output folder, from which a second run continues.

    python benchmarks/photographs.py [--data ../shared/data] [--peers ../shared/peers]
        [--keypoints 1000] [--output build/photographs] [--methods rootsift,mkdesc]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import cv2

from matching import methods_with
from mkdesc._support.installed import versions
from mkdesc.evaluation.photographs.base import PhotographOptions
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.photographs.pose import run_pose
from mkdesc.evaluation.report.runs import Results
from mkdesc.evaluation.report.table import short_names, text

SCENES = ("fountain-P11", "lund-door")
#: Sequences that settings were chosen on; the others are told apart.
CHOOSING = ("bark", "bikes", "graf", "ubc")
#: Degrees up to which the accuracy of poses is told.
DEGREES = (1, 2, 5, 10)
#: Methods, by what their names have before a colon, that are shown with grown matches, too.
GROWN = ("rootsift", "mkdesc", "aliked")
#: Rows of README.md, and what they are called there.
README = {
    "orb": "OpenCV ORB",
    "rootsift": "RootSIFT",
    "rootsift+grow": "RootSIFT, grown by mkdesc",
    "mkdesc": "mkdesc, its keypoints alone",
    "mkdesc+grow": "**mkdesc**, grown",
    "mkdesc+photo-net": "mkdesc, model `photo-net`",
    "mkdesc+photo-bits+bits": "mkdesc, model `photo-bits`, 32 bytes each",
    "aliked:aliked-n16": "ALIKED n16, a network",
    "aliked:aliked-n16+grow": "ALIKED n16, grown by mkdesc",
    "xfeat:xfeat": "XFeat, a network",
}

Rows = dict[str, dict[str, Any]]


def rows_of(results: Results, table: int = 0) -> Rows:
    """Cells by row and column."""
    found = results.tables[table]
    return {row.name: dict(zip(found.columns, row.values, strict=True)) for row in found.rows}


def show(title: str, columns: list[str], rows: dict[str, list[Any]]) -> None:
    print(f"\n{title}\n\n| | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for name, values in rows.items():
        cells = (f"{one:,}" if isinstance(one, int) else text(one) for one in values)
        print(f"| {name} | {' | '.join(cells)} |")


def aucs(row: dict[str, Any], degrees: tuple[int, ...] = DEGREES) -> str:
    return " / ".join(f"{row[f'AUC {limit} deg']:.1f}" for limit in degrees)


def by_sequence(planes: Results) -> None:
    """Right matches as multiples of the first method's: each sequence, and those not chosen on."""
    counts = rows_of(planes, 1)
    first = next(iter(counts.values()))
    others = [scene for scene in first if scene not in CHOOSING]
    table = {}
    for name, row in counts.items():
        each = [row[scene] / max(first[scene], 1) for scene in first]
        ours, theirs = (sum(one[scene] for scene in others) for one in (row, first))
        table[name] = [*each, ours / max(theirs, 1)]
    show("Times the first", [*first, f"{', '.join(others)} together"], table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--peers", type=Path, default=Path("../shared/peers"))
    parser.add_argument("--keypoints", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path("build/photographs"))
    parser.add_argument("--methods", help="instead of all of them")
    given = parser.parse_args()
    methods = methods_with(given.peers)
    methods += [f"{name}+grow" for name in methods if name.partition(":")[0] in GROWN]
    methods[1:1] = ["rootsift-plain"]
    if hasattr(cv2, "AKAZE_create"):  # some builds of OpenCV 5 have none
        methods.insert(1, "akaze")
    methods = given.methods.split(",") if given.methods else methods
    print(f"{time.strftime('%Y-%m-%d')}, {given.keypoints} keypoints; {versions()}", flush=True)
    start = time.perf_counter()
    planes = run_homography(
        given.data / "sequences",
        methods,
        options=PhotographOptions(given.keypoints),
        output=given.output / "oxford",
    )
    poses: dict[tuple[str, str], Results] = {}
    options = PhotographOptions(given.keypoints, 1024)
    for scene in SCENES:
        for name, threshold in (("1 px", 1.0), ("chosen", "auto")):
            poses[scene, name] = run_pose(
                given.data / "multiview" / scene,
                methods,
                options=options,
                threshold=threshold,  # type: ignore[arg-type]
                output=given.output / f"{scene}-{name.replace(' ', '')}",
            )
    flat = rows_of(planes)
    at_one = {scene: rows_of(poses[scene, "1 px"]) for scene in SCENES}
    chosen = {scene: rows_of(poses[scene, "chosen"]) for scene in SCENES}
    fountain = at_one[SCENES[0]]
    show(
        "README.md",
        [
            "right matches",
            "precision",
            "within 1 px",
            "pose, AUC 1 / 5 degrees",
            "CPU s per megapixel",
            "CPU ms per pair",
        ],
        {
            label: [
                flat[name]["distinct right matches"],
                flat[name]["precision"],
                flat[name]["within 1 px"],
                aucs(fountain[name], (1, 5)),
                flat[name]["CPU s/MP"],
                flat[name]["CPU ms/pair"],
            ]
            for name, label in README.items()
            if name in flat
        },
    )
    print(f"\ndocs/keypoints.md\n\n{planes.markdown()}")
    by_sequence(planes)
    area = f"AUC {' / '.join(map(str, DEGREES))}"
    columns = [f"{scene}, {what}" for scene in SCENES for what in (area, "inliers")]
    for title, found in (("Poses, 1 px", at_one), ("Poses, chosen thresholds", chosen)):
        table = {}
        for name in short_names(methods).values():
            cells: list[Any] = []
            for scene in SCENES:
                row = found[scene][name]
                at = "" if found is at_one else f" at {row['threshold, px']:g} px"
                cells += [aucs(row) + at, row["inliers"]]
            table[name] = cells
        show(title, columns, table)
    print(f"\n{time.perf_counter() - start:.0f} s; pages: {given.output}/*/report.html")


if __name__ == "__main__":
    main()
