"""Matching of many pairs: several at a time, in bounded memory, and never twice."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.progress import Progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import Workers, in_order
from mkdesc._support.workfolder import cached_reader, state_of
from mkdesc.belief.checks import UNVERIFIED, VERIFIED
from mkdesc.belief.judgement import judge
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.growing_pair import grow_pair
from mkdesc.features.image_features import features_path, load_file
from mkdesc.images.reading import read_gray
from mkdesc.matching.frame_matches import LocalFeatures
from mkdesc.matching.growing.grow import GrownMatches
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import Pyramid, make_pyramid
from mkdesc.matching.two_view_geometry import TwoViewOptions
from mkdesc.matching.two_views import mutual_matches
from mkdesc.retrieval.agreement import local_features
from mkdesc.retrieval.pairs import AT_HAND, NamePair
from mkdesc.sfm.grown_pairs import PairMatches, make_table, matched_pairs, write_pair

#: Pixels between a grown match and the keypoint that it is given to. Matches at places of their
#: own are twice as many, in longer tracks, but fit worse and take four times as long to map.
SNAP = 2.5

#: Bytes of pyramids that are at hand at a time.
PYRAMIDS = 1 << 31

Floats = NDArray[np.float64]


class Matcher(NamedTuple):
    """How two images are matched; it can be sent to another process.

    Attributes
    ----------
    features, images
        Folders: what :func:`mkdesc.features.extract_features` wrote, and the photographs.
    belief
        As for :func:`mkdesc.belief.judge`.
    max_pixels
        Larger images are refused.
    device
        Where descriptors are compared.
    """

    features: Path
    images: Path
    belief: str
    max_pixels: int
    device: str | None

    def match(self, pair: NamePair) -> PairMatches:
        """Mutual neighbours, grown; what is left of them at keypoints of both images."""
        a, b = (_features(features_path(self.features, name)) for name in pair)
        sizes = a.size, b.size
        options = TwoViewOptions(sizes, device=self.device)
        tentative = mutual_matches(a.found, b.found, options)
        pyramids = self._pyramid(pair[0]), self._pyramid(pair[1])
        both = a.found, b.found
        grown = grow_pair(pyramids, both, tentative, options, GrowOptions(), 1)
        verdict, reason = judge(grown.pair, "fundamental", self.belief).verdict
        matches = at_keypoints(grown.grown, *(one.frames[:, :, 2] for one in both))
        # Few matches say little; a reconstruction has other photographs to ask.
        weak = verdict == UNVERIFIED and self.belief != "strict"
        kept = len(matches[0]) if verdict == VERIFIED or weak else 0
        return PairMatches(matches[0][:kept], matches[1][:kept], verdict, reason)

    def _pyramid(self, name: str) -> Pyramid:
        return _PYRAMIDS.get(self.images / name, self.max_pixels)


def match_pairs(
    base: Path, matcher: Matcher, pairs: Sequence[NamePair], progress: Progress, workers: Workers
) -> None:
    """Write the matches of pairs to a database; those that are there are kept.

    Each pair is written when it is done, so that whatever ends the work ends that pair alone.

    Parameters
    ----------
    base
        COLMAP's database.
    matcher
        How.
    pairs
        Names of images, in an order in which neighbours are near each other
        (:func:`mkdesc.retrieval.pairs.near_pairs`).
    progress
        Told of every pair.
    workers
        Who matches: so many threads, an executor, or a Dask client; the database is written here.
    """
    to_number = pycolmap_module().image_pair_to_pair_id
    with closing(sqlite3.connect(base)) as file, one_thread_each():
        file.execute("PRAGMA synchronous = OFF")  # as COLMAP does
        make_table(file)
        ids = dict(file.execute("SELECT name, image_id FROM images"))
        there = matched_pairs(file)
        missing = [(a, b) for a, b in pairs if to_number(ids[a], ids[b]) not in there]
        done = len(pairs) - len(missing)
        progress("matching", done, len(pairs))
        found = in_order(matcher.match, missing, workers)
        for (a, b), matches in zip(missing, found, strict=True):
            write_pair(file, (ids[a], ids[b]), matches)
            done += 1
            progress("matching", done, len(pairs))


def at_keypoints(
    grown: GrownMatches, here: Floats, there: Floats
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Grown matches at keypoints of both images: each has one match, the nearest.

    Parameters
    ----------
    grown
        What was grown.
    here, there
        (N, 2) and (K, 2): the keypoints of both.

    Returns
    -------
    pairs, shifts
        See :class:`~mkdesc.sfm.grown_pairs.PairMatches`.
    """
    from scipy.spatial import cKDTree

    far, rows = np.zeros(len(grown.pairs)), []
    for places, points in ((here, grown.points_a), (there, grown.points_b)):
        distance, nearest = cKDTree(places).query(points)
        far = np.maximum(far, distance)
        rows.append(nearest)
    pairs = np.column_stack(rows).astype(np.uint32)
    order = np.argsort(far, kind="stable")
    order = order[far[order] <= SNAP]
    for side in (0, 1):
        _, first = np.unique(pairs[order, side], return_index=True)
        order = order[np.sort(first)]
    grown, pairs = grown.take(order), pairs[order]
    off = grown.points_a - here[pairs[:, 0]]
    shift = grown.points_b - there[pairs[:, 1]] - np.einsum("nij,nj->ni", grown.maps, off)
    shifts = np.column_stack([shift, grown.maps.reshape(-1, 4)])
    return pairs, shifts.astype(np.float32)


class _Seen(NamedTuple):
    """What was found in an image, and its height and width."""

    found: LocalFeatures
    size: tuple[int, int]


@cached_reader(AT_HAND)
def _features(path: Path) -> _Seen:
    found = load_file(path)
    width, height = found.image_size.tolist()
    return _Seen(local_features(found), (height, width))


class _Pyramids:
    """The pyramids of the photographs that were asked for last, as many as there is room for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, str], Pyramid] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path, max_pixels: int) -> Pyramid:
        key = path, state_of(path)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make_pyramid(read_gray(path, max_pixels, as_stored=True))
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > 2 and self._size() > PYRAMIDS:
                self._kept.popitem(last=False)
        return made

    def _size(self) -> int:
        return sum(one.pixels.nbytes for one in self._kept.values())


_PYRAMIDS = _Pyramids()
