"""Matching of many pairs: several at a time, in bounded memory, and never twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mkdesc._support.progress import Progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import Workers, in_order
from mkdesc._support.workfolder import cached_reader
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.image_features import features_path, load_file
from mkdesc.matching.nearest import Matches, match_descriptors
from mkdesc.retrieval.pairs import AT_HAND, NamePair


def match_pairs(
    base: Path,
    features: Path,
    pairs: Sequence[NamePair],
    ratio: float | None,
    max_distance: float | None,
    progress: Progress,
    workers: Workers = None,
    device: str | None = None,
) -> None:
    """Write the matches of pairs to a database; those that are there are kept.

    Each pair is written when it is done, so that whatever ends the work ends that pair alone.

    Parameters
    ----------
    base
        COLMAP's database.
    features
        What :func:`mkdesc.features.extract_features` wrote.
    pairs
        Names of images, in an order in which neighbours are near each other
        (:func:`mkdesc.retrieval.pairs.near_pairs`).
    ratio, max_distance
        As for :func:`mkdesc.match_descriptors`.
    progress
        Told of every pair.
    workers
        Who matches: so many threads, an executor, or a Dask client; the database is written here.
    device
        As for :func:`mkdesc.match_descriptors`.
    """
    with pycolmap_module().Database.open(base) as file, one_thread_each():
        ids = {image.name: image.image_id for image in file.read_all_images()}
        missing = [(a, b) for a, b in pairs if not file.exists_matches(ids[a], ids[b])]

        match = partial(_match, features.absolute(), ratio, max_distance, device)
        progress("matching", len(pairs) - len(missing), len(pairs))
        found = in_order(match, missing, workers)
        for done, ((a, b), matches) in enumerate(zip(missing, found, strict=True), 1):
            file.write_matches(ids[a], ids[b], matches.pairs.astype("uint32"))
            progress("matching", len(pairs) - len(missing) + done, len(pairs))


def _match(
    folder: Path,
    ratio: float | None,
    max_distance: float | None,
    device: str | None,
    pair: NamePair,
) -> Matches:
    here, there = (_descriptors(features_path(folder, name)) for name in pair)
    return match_descriptors(here, there, ratio=ratio, max_distance=max_distance, device=device)


@cached_reader(AT_HAND)
def _descriptors(path: Path) -> Any:
    return load_file(path).descriptors
