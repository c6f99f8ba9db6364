"""Bringing an index up to date: only what is new or changed is described."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkdesc._support.files import atomic_path, only_here
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc._support.workfolder import check_settings, is_untouched
from mkdesc.features.folder import extract_features, remove_features
from mkdesc.features.image_features import features_path
from mkdesc.features.image_pair import KEYPOINTS
from mkdesc.features.settings import Settings
from mkdesc.images.listing import find_images
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.retrieval.collecting import learn_from, signatures_of
from mkdesc.retrieval.manifest import (
    FEATURES,
    INDEX,
    Manifest,
    is_part,
    read_manifest,
    recorded,
    remove_others,
    write_manifest,
)
from mkdesc.retrieval.segments import SEGMENT, Entry, Segment, write_segments

#: Words are learned again when there are so many times as many images.
GROWTH = 4
#: What an index describes images by, if nothing else is said.
DEFAULT = Settings(max_keypoints=KEYPOINTS, output="uint8")


class Updated(NamedTuple):
    """What became of the images of an index.

    Attributes
    ----------
    added, changed, gone, kept
        Names of images.
    bad
        Names of those that could not be described, and why.
    """

    added: list[str]
    changed: list[str]
    gone: list[str]
    kept: list[str]
    bad: dict[str, str]


def build_index(
    images: str | Path | Sequence[str | Path],
    path: str | os.PathLike[str],
    settings: Settings | None = None,
    progress: Progress = no_progress,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
    device: str | None = None,
) -> Updated:
    """Make an index of photographs, or bring it up to date.

    Parameters
    ----------
    images
        Photographs and folders of them. What is new or changed is described, what is gone
        is forgotten.
    path
        Folder of the index. Interrupted, the same call goes on.
    settings
        How to detect and describe; None: as the index has it, or 2,000 keypoints.
    progress
        Told of every image.
    max_pixels
        Larger images are refused.
    workers
        Images at a time (None: one per core), an executor or a Dask client.
    device
        As for :class:`mkdesc.Features`.

    Examples
    --------
    >>> import tempfile
    >>> from mkdesc import Index
    >>> from mkdesc.images import write_demo
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_demo(folder / "demo")
    >>> _ = build_index(folder / "demo" / "views", folder / "index", Settings(max_keypoints=200))
    >>> found = Index(folder / "index").find(folder / "demo" / "views" / "3.png", k=2)
    >>> sorted(one.name for one in found)  # its neighbours; itself is left out
    ['2.png', '4.png']
    """
    if settings is not None:
        settings.check_numbers("an index")
    sources = [images] if isinstance(images, (str, Path)) else images
    path = Path(path)
    found = find_images(sources)
    inside = path.resolve()
    for file in found.values():
        if file.resolve().is_relative_to(inside):
            raise ValueError(f"{file}: lies in the index {path}; choose another output")
    _known(path)  # refuses what is no index, before anything is made
    with only_here(path):
        return _updated(found, sources, path, settings, progress, max_pixels, workers, device)


def _updated(
    images: dict[str, Path],
    sources: Sequence[str | Path],
    path: Path,
    settings: Settings | None,
    progress: Progress,
    max_pixels: int,
    workers: Workers,
    device: str | None,
) -> Updated:
    before = _known(path)
    how = settings or (DEFAULT if before is None else before.checked_settings(path))
    made_of = json.loads(how.to_json())
    if before is not None:
        check_settings(path, before.made_of, made_of)
    state, segments = _usable(path, before) if before else (None, [])
    stored = {name: source for segment in segments for name, source in segment.sources.items()}
    features = path / FEATURES
    kept = {
        name
        for name, source in stored.items()
        if name in images
        and is_untouched(source, images[name])
        and features_path(features, name).is_file()
    }
    new = {name: file for name, file in images.items() if name not in kept}
    gone = [name for name in stored if name not in images]
    extracted = extract_features(
        new,
        features,
        settings=how,
        progress=progress,
        max_pixels=max_pixels,
        workers=workers,
        device=device,
    )
    described = [name for name in new if name not in extracted.bad]
    alive = sorted([*kept, *described])
    if not alive:
        reason = next(iter(extracted.bad.values()))
        raise ValueError(f"none of {len(images)} images is usable; {reason}")

    folders = recorded(path, sources)
    state = state or Manifest(asdict(how), made_of, folders, "", 0)
    again = described
    if len(alive) > GROWTH * state.learned_of:
        state = _learned(path, alive, state)
        segments, again = [], alive
    untouched, rest = _divided(segments, kept, bool(described))
    if again or rest or replace(state, sources=folders) != before:
        words = state.load_words(path)
        file = (path / state.words).absolute()
        new_ones = signatures_of(features, again, file, workers)
        pool = chain(_of_segments(rest, kept), new_ones)
        total = len(again) + sum(len(kept.intersection(segment.names)) for segment in rest)
        state = replace(state, segments=untouched, sources=folders)
        for segment in write_segments(
            path, state.next, _counted(pool, progress, total), len(words)
        ):
            listed = [*state.segments, segment.folder.name]
            state = replace(state, segments=listed, next=state.next + 1)
            write_manifest(path, state)
        write_manifest(path, state)  # there may have been no image left to write
    # Not before: until then, whoever searches here has the index that was.
    remove_features(features, gone)
    remove_others(path, state)
    done = {*extracted.done}
    return Updated(
        [name for name in described if name not in stored],
        [name for name in described if name in stored and name in done],
        gone,
        [name for name in images if name in stored and name not in {*done, *extracted.bad}],
        extracted.bad,
    )


def _known(path: Path) -> Manifest | None:
    """The index that is there; ValueError if something else is."""
    if (path / INDEX).exists():
        return read_manifest(path)
    if path.exists() and not (  # but for an index whose making was interrupted
        path.is_dir()
        and all(file.name == FEATURES or is_part(file.name) for file in path.iterdir())
    ):
        raise ValueError(f"{path}: expected an index, or a new or empty folder")
    return None


def _usable(path: Path, found: Manifest) -> tuple[Manifest, list[Segment]]:
    """What is whole of an index; images of damaged segments are new again."""
    try:
        words = found.load_words(path)
    except ValueError:
        return replace(found, learned_of=0, segments=[]), []
    segments = []
    for name in found.segments:
        with suppress(ValueError):
            segment = Segment(path / name).checked()
            if len(segment.starts) == len(words) + 1:
                segments.append(segment)
    return replace(found, segments=[segment.folder.name for segment in segments]), segments


def _learned(path: Path, names: Sequence[str], state: Manifest) -> Manifest:
    """The state of an index with newly learned words and no segments."""
    file = f"words-{state.next:06d}.npy"
    with atomic_path(path / file) as partial, partial.open("wb") as raw:
        np.save(raw, learn_from(path / FEATURES, names))
    return replace(state, words=file, learned_of=len(names), segments=[], next=state.next + 1)


def _divided(
    segments: Iterable[Segment], kept: set[str], more: bool
) -> tuple[list[str], list[Segment]]:
    """Names of segments that stay as they are, and those to write again.

    These are those with images that have changed or gone, and, if there are ``more`` images,
    those that have room for them.
    """
    stay, rest = [], []
    for segment in segments:
        if kept.issuperset(segment.names) and (not more or len(segment.names) >= SEGMENT):
            stay.append(segment.folder.name)
        else:
            rest.append(segment)
    return stay, rest


def _of_segments(segments: Iterable[Segment], kept: set[str]) -> Iterator[Entry]:
    for segment in segments:
        yield from (entry for entry in segment.entries() if entry[0] in kept)


def _counted(pool: Iterable[Entry], progress: Progress, total: int) -> Iterator[Entry]:
    for done, one in enumerate(pool, 1):
        yield one
        progress("indexing", done, total)
