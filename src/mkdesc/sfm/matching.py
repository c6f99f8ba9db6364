"""Matching of many pairs: several at a time, in bounded memory, and never twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mkdesc._support.progress import Progress
from mkdesc._support.threads import available_threads, in_order, one_thread_each
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.folder import load_features
from mkdesc.matching.nearest import Matches, match_descriptors
from mkdesc.retrieval.pairs import AT_HAND, Pair

__all__ = ["match_pairs"]


def match_pairs(
    base: Path,
    features: Path,
    pairs: Sequence[Pair],
    ratio: float | None,
    max_distance: float | None,
    tell: Progress,
) -> None:
    """Write the matches of pairs to a database; those that are there are kept.

    Each pair is written when it is done, so that whatever ends the work ends that pair alone.

    Parameters
    ----------
    base
        COLMAP's database.
    features
        What :func:`mkdesc.features.folder.extract_features` wrote.
    pairs
        Names of images, in an order in which neighbours are near each other
        (:func:`mkdesc.retrieval.pairs.near_pairs`).
    ratio, max_distance
        As for :func:`mkdesc.match_descriptors`.
    tell
        Told of every pair.
    """

    @lru_cache(AT_HAND)
    def descriptors(name: str) -> Any:
        return load_features(features, name).descriptors

    with pycolmap_module().Database.open(base) as file, one_thread_each():
        ids = {image.name: image.image_id for image in file.read_all_images()}
        missing = [(a, b) for a, b in pairs if not file.exists_matches(ids[a], ids[b])]

        def match(number: int) -> Matches:
            here, there = (descriptors(name) for name in missing[number])
            return match_descriptors(here, there, ratio=ratio, max_distance=max_distance)

        tell("matching", len(pairs) - len(missing), len(pairs))
        found = in_order(match, len(missing), available_threads())
        for done, ((a, b), matches) in enumerate(zip(missing, found, strict=True), 1):
            file.write_matches(ids[a], ids[b], matches.pairs.astype("uint32"))
            tell("matching", len(pairs) - len(missing) + done, len(pairs))
