"""Pairs that must be refused, for :mod:`wide`: unrelated photographs, and facades that look alike.

Most of the time of a hopeless pair goes into describing its photographs in all views, so what was
seen of a photograph is kept in a folder and used in its other pairs, too. Unrelated pairs are
matched plainly first. Then, until the time is over and beginning with those that have the most
matches, they are matched with shapes but without views from aside, and then with all views. Run
it again to resume.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from wide_pairs import FACADES

import mkdesc
import mkdesc.features.image_pair
import mkdesc.features.wide
from mkdesc.matching.frame_matches import LocalFeatures

#: How pairs are matched: a wide search that has no time does not look from aside.
HOW: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"wide": True, "limit": 1e-3},
    "wide": {"wide": True, "limit": 600},
}

Row = dict[str, Any]
Find = Callable[..., Row | None]
Add = Callable[[Row], None]


@contextmanager
def remembering(folder: Path) -> Iterator[None]:
    """What is seen of a photograph, plainly and in views of a tilt, is computed once."""

    def remembered(compute: Callable[..., LocalFeatures]) -> Callable[..., LocalFeatures]:
        def features(gray: np.ndarray, *how: Any) -> LocalFeatures:
            tilt = how[0] if isinstance(how[0], float) else "plain"
            digest = hashlib.sha256(gray.tobytes()).hexdigest()[:16]
            file = folder / f"{digest}-{tilt}.npz"
            if not file.exists():
                np.savez(file, **compute(gray, *how)._asdict())
            elif tilt != "plain":
                how[-1](1, 1)  # may say that the time is over
            with np.load(file) as known:
                return LocalFeatures(**known)

        return features

    with (
        mock.patch.object(
            mkdesc.features.image_pair,
            "_features",
            remembered(mkdesc.features.image_pair._features),
        ),
        mock.patch.object(
            mkdesc.features.wide,
            "features_in_views",
            remembered(mkdesc.features.wide.features_in_views),
        ),
    ):
        yield


def refuse(
    data: Path,
    pairs: list[tuple[str, Path, Path]],
    minutes: float,
    features: mkdesc.Features,
    find: Find,
    add: Add,
) -> None:
    """Unrelated photographs and facades, at full size, with the default geometry."""

    def matched(kind: str, how: str, name: str, a: Path, b: Path) -> Row:
        row = find(kind=kind, pair=name, how=how)
        if row is None:
            cpu = time.process_time()
            found = mkdesc.match_images(a, b, features, **HOW[how])
            row = {"kind": kind, "pair": name, "how": how, "cpu": time.process_time() - cpu}
            row |= {"accepted": found.verified, "verdict": found.verdict, "reason": found.reason}
            row["matches"] = len(found)
            add(row)
            if how == "wide" or found.verified:
                said = "ACCEPTED" if found.verified else "refused"
                print(f"{name:<34} {said}: {found.reason}, {row['cpu']:.1f} s", flush=True)
        return row

    facades = [(f"{a} {b}", *(data / "photos" / f"{x}.jpg" for x in (a, b))) for a, b in FACADES]
    with tempfile.TemporaryDirectory() as folder, remembering(Path(folder)):
        for how in HOW:
            _sum_up("facades", how, [matched("facades", how, *pair) for pair in facades])
        plain = [matched("unrelated", "plain", *pair) for pair in pairs]
        _sum_up("unrelated", "plain", plain)
        hardest = np.argsort([-row["matches"] for row in plain], kind="stable")
        end = time.monotonic() + 60 * minutes
        for how in ("shapes", "wide"):
            tried = []
            for name, a, b in (pairs[index] for index in hardest):
                known = find(kind="unrelated", pair=name, how=how)
                if known is not None or time.monotonic() < end:
                    tried.append(known or matched("unrelated", how, name, a, b))
            _sum_up("unrelated", how, tried)


def _sum_up(kind: str, how: str, rows: list[Row]) -> None:
    accepted = [row["pair"] for row in rows if row["accepted"]]
    ambiguous = sum(row["verdict"] == "ambiguous" for row in rows)
    print(
        f"{kind}, {how}: {len(accepted)} of {len(rows)} accepted {accepted}, {ambiguous} "
        f"ambiguous, CPU {sum(row['cpu'] for row in rows):.0f} s in all",
        flush=True,
    )
