"""The scenes in a database of verified matches: images that more connects than chance.

In a mix of photographs most pairs of unrelated ones have COLMAP's 15 matches that agree, some
have 40. Matches that we have grown were judged, pair by pair (:mod:`mkdesc.belief`). Of those in
databases of others, it tells how many of how many agree (:mod:`mkdesc.matching.chance`).
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.matching.chance import SAMPLES, false_alarms, strip_share
from mkdesc.retrieval.pairs import NamePair
from mkdesc.retrieval.similar import groups_of
from mkdesc.sfm.grown_pairs import believed_pairs

#: Pixels that a match may be off its epipolar line: what COLMAP's verification allows.
WITHIN = 4.0

#: log10 of how often, over all pairs of a database, chance may connect two images. Matches are
#: not as independent as chance has it: of 760 unrelated pairs one is at -3.
BY_CHANCE = -6.0


def certain_pairs(base: Path) -> list[NamePair]:
    """Pairs of images (by name) that are believed to show the same, best first.

    Parameters
    ----------
    base
        COLMAP's database, with verified pairs.
    """
    pycolmap = pycolmap_module()
    with closing(sqlite3.connect(base)) as file:
        query = "SELECT image_id, name, width, height FROM images JOIN cameras USING (camera_id)"
        images = {row[0]: (row[1], row[2:]) for row in file.execute(query)}
        (tried,) = file.execute("SELECT COUNT(*) FROM matches").fetchone()
        query = (
            "SELECT pair_id, two_view_geometries.rows, COALESCE(matches.rows, 0) "
            "FROM two_view_geometries LEFT JOIN matches USING (pair_id) ORDER BY 2 DESC"
        )
        verified = file.execute(query).fetchall()
    believed = believed_pairs(base)
    limit = BY_CHANCE - math.log10(max(tried, 1))
    certain = []
    for pair, agree, matches in verified:
        (a, size), (b, other) = (images[i] for i in pycolmap.pair_id_to_image_pair(pair))
        if believed is not None:
            if agree and pair in believed:
                certain.append((a, b))
            continue
        strip = max(strip_share(WITHIN, size), strip_share(WITHIN, other))
        # Others' databases may have what is verified alone.
        found = false_alarms(agree, max(matches, agree), strip, SAMPLES["fundamental"])
        if found < limit:
            certain.append((a, b))
    return certain


def verified_counts(base: Path) -> dict[NamePair, int]:
    """Matches that agree, of every verified pair of images by name."""
    pycolmap = pycolmap_module()
    with closing(sqlite3.connect(base)) as file:
        names = dict(file.execute("SELECT image_id, name FROM images"))
        rows = file.execute("SELECT pair_id, rows FROM two_view_geometries WHERE rows > 0")
        found = {}
        for pair, count in rows:
            a, b = (names[image] for image in pycolmap.pair_id_to_image_pair(pair))
            found[a, b] = count
        return found


def scenes_among(names: Collection[str], pairs: Sequence[NamePair]) -> list[list[str]]:
    """Groups of two or more images that pairs connect, the largest first.

    Parameters
    ----------
    names
        Of the images.
    pairs
        Those with other images are passed over.

    Examples
    --------
    >>> scenes_among("abcde", [("d", "e"), ("a", "b"), ("b", "e"), ("x", "c")])
    [['a', 'b', 'd', 'e']]
    """
    known = set(names)
    inner = [pair for pair in pairs if known.issuperset(pair)]
    return [group for group in groups_of(known, inner) if len(group) > 1]


def with_weakly_tied(
    scenes: Sequence[Sequence[str]], counts: Mapping[NamePair, int], names: Collection[str]
) -> list[list[str]]:
    """Scenes, each with the images of none that have most matches with its images.

    Such a pair alone says nothing; whether the image fits a model of many others does.

    Parameters
    ----------
    scenes
        Groups of images.
    counts
        Matches that agree, of pairs of images.
    names
        Of all images.

    Examples
    --------
    >>> with_weakly_tied([["a", "b"], ["x", "y"]], {("a", "c"): 20, ("c", "y"): 30}, "abcdxy")
    [['a', 'b'], ['x', 'y', 'c']]
    """
    place = {name: number for number, scene in enumerate(scenes) for name in scene}
    ties: dict[str, Counter[int]] = {name: Counter() for name in sorted({*names} - {*place})}
    for pair, count in counts.items():
        for name, other in (pair, pair[::-1]):
            if name in ties and other in place:
                ties[name][place[other]] += count
    found = [list(scene) for scene in scenes]
    for name, tied in ties.items():
        if tied:
            found[max(tied, key=lambda number: (tied[number], -number))].append(name)
    return found


def share_cameras(base: Path) -> None:
    """Let images of a scene share a camera where one may have taken them.

    These are images of one size and one focal length by their EXIF data; or, without, all of a
    scene if they are of one size. So those of a scene among many have the cameras that they
    have in a folder of their own.
    """
    certain = certain_pairs(base)
    with closing(sqlite3.connect(base)) as file, file:
        query = (
            "SELECT name, image_id, camera_id, model, width, height, params, prior_focal_length "
            "FROM images JOIN cameras USING (camera_id)"
        )
        images = {
            name: (image, camera, kind) for name, image, camera, *kind in file.execute(query)
        }
        rigs = dict(file.execute("SELECT ref_sensor_id, rig_id FROM rigs"))  # one for a camera
        for scene in scenes_among(images, certain):
            kinds: dict[tuple[object, ...], list[str]] = {}
            for name in scene:
                kinds.setdefault(tuple(images[name][2]), []).append(name)
            for (*_, known), alike in kinds.items():
                if known or len(kinds) == 1:
                    camera = images[alike[0]][1]
                    for name in alike:
                        _assign(file, images[name][0], camera, rigs[camera])
        file.execute("DELETE FROM rigs WHERE rig_id NOT IN (SELECT rig_id FROM frames)")
        file.execute("DELETE FROM cameras WHERE camera_id NOT IN (SELECT camera_id FROM images)")


def _assign(file: sqlite3.Connection, image: int, camera: int, rig: int) -> None:
    """Have an image taken by a camera; to COLMAP it is a frame of a rig of that camera alone."""
    file.execute("UPDATE images SET camera_id = ? WHERE image_id = ?", (camera, image))
    file.execute(
        "UPDATE frames SET rig_id = ? "
        "WHERE frame_id IN (SELECT frame_id FROM frame_data WHERE data_id = ?)",
        (rig, image),
    )
    file.execute("UPDATE frame_data SET sensor_id = ? WHERE data_id = ?", (camera, image))
