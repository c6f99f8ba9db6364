"""Signatures of some thousands of images in a folder, by visual word; mapped, not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.files import atomic_folder, read_json
from mkdesc._support.loop_types import array_type
from mkdesc._support.npy import BROKEN, map_array
from mkdesc.images.listing import CONTROL
from mkdesc.retrieval.signature import Signature, worth

#: The name of an image, the fingerprint of its file, and its signature.
Entry = tuple[str, str, Signature]

#: Images per segment: some 40 MB of signatures.
SEGMENT = 4096
#: Names in the folder of a segment.
FILES = IMAGES, STARTS, ROWS, CODES = "images.json", "starts.npy", "rows.npy", "codes.npy"
#: Characters of the name of an image, at most: of a path on Linux.
LONGEST = 4096
#: What a number of an image within its segment is stored in.
NUMBER = np.uint16


@dataclass(frozen=True)
class Segment:
    """Signatures in a folder, never changed once it is written.

    Attributes
    ----------
    folder
        Where they are: which images, and for each word (``starts``) the numbers of the images
        that have it (``rows``) with their ``codes``.
    """

    folder: Path

    @cached_property
    def sources(self) -> dict[str, str]:
        """The images by name, in their order, and the fingerprints of their files."""
        try:
            found = read_json(self.folder / IMAGES)
            sources = {str(name): str(source) for name, source in found}
            if not all(map(_is_name, sources)):  # features are removed by such names
                raise ValueError
            return sources
        except (OSError, ValueError, TypeError):
            raise self._damaged(IMAGES) from None

    @cached_property
    def names(self) -> list[str]:
        """The images, in their order."""
        return list(self.sources)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(K + 1,): where the rows of each word begin."""
        return self._mapped(STARTS)

    @cached_property
    def rows(self) -> NDArray[np.uint16]:
        """(R,): which image has the word."""
        return self._mapped(ROWS)

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """(R, B): the signs of its residuals."""
        return self._mapped(CODES)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(N,): how many words each image has."""
        return np.bincount(self.rows, minlength=len(self.names))

    def _mapped(self, name: str) -> NDArray[Any]:
        try:
            return map_array(self.folder / name)
        except BROKEN:
            raise self._damaged(name) from None

    def _damaged(self, name: str) -> ValueError:
        return ValueError(
            f"{self.folder / name}: missing or damaged; run mkdesc index to repair it"
        )

    def checked(self) -> Segment:
        """Itself, if its files fit each other: compiled loops trust them."""
        starts, rows, codes = self.starts, self.rows, self.codes
        kinds = [(array.dtype, array.ndim) for array in (starts, rows, codes)]
        if kinds != [(np.dtype(np.int64), 1), (np.dtype(NUMBER), 1), (np.dtype(np.uint64), 2)]:
            raise self._damaged(CODES)
        growing = len(starts) > 0 and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
        if not growing or starts[-1] != len(rows):
            raise self._damaged(STARTS)
        if len(codes) != len(rows):
            raise self._damaged(CODES)
        if len(self.sizes) != len(self.names):
            raise self._damaged(ROWS)
        return self

    def entries(self) -> Iterator[Entry]:
        """All images."""
        words = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        order = np.argsort(self.rows, kind="stable")
        ends = np.cumsum(self.sizes)
        own = zip(self.sources.items(), ends - self.sizes, ends, strict=True)
        for (name, source), start, end in own:
            rows = order[start:end]
            yield name, source, Signature(words[rows], self.codes[rows])

    def similarities(self, query: Signature, dims: int) -> NDArray[np.float32]:
        """How similar each image (N,) is to a query of descriptors of ``dims`` numbers."""
        scores = np.zeros(len(self.names), np.float32)
        own = (self.starts, self.rows, self.codes)
        compile_scores()(query.words, query.codes, *own, worth(dims), scores)
        scores /= np.sqrt(np.maximum(1, self.sizes * np.float32(len(query.words))))
        return scores


def _is_name(name: str) -> bool:
    """Whether a name is one of a file below a folder, and on one line."""
    path = PurePath(name)
    inside = not path.is_absolute() and ".." not in path.parts
    return len(name) < LONGEST and inside and not CONTROL.search(name)


def write_segments(
    folder: Path, first: int, entries: Iterable[Entry], words: int
) -> Iterator[Segment]:
    """Write images as segments of :data:`SEGMENT` each, one at a time.

    Parameters
    ----------
    folder
        Where to put their folders.
    first
        Number of the first one.
    entries
        The images.
    words
        As for :func:`write_segment`.
    """
    rest = iter(entries)
    for number in count(first):
        batch = list(islice(rest, SEGMENT))
        if not batch:
            return
        yield write_segment(folder / f"segment-{number:06d}", batch, words)


def write_segment(folder: Path, entries: Sequence[Entry], words: int) -> Segment:
    """Write images as a segment, as a whole.

    Parameters
    ----------
    folder
        To make.
    entries
        The images, at most 65,536.
    words
        K: how many visual words there are.
    """
    signatures = [signature for *_, signature in entries]
    if len(signatures) > np.iinfo(NUMBER).max + 1:
        raise ValueError(f"signatures: expected at most 65,536, got {len(signatures)}")
    found = np.concatenate([one.words for one in signatures])
    sizes = [len(one.words) for one in signatures]
    rows = np.repeat(np.arange(len(signatures), dtype=NUMBER), sizes)
    codes = np.concatenate([one.codes for one in signatures])
    order = np.argsort(found, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=words))])
    with atomic_folder(folder) as partial:
        listed = [entry[:2] for entry in entries]
        (partial / IMAGES).write_text(json.dumps(listed), encoding="utf-8")
        np.save(partial / STARTS, starts)
        np.save(partial / ROWS, rows[order])
        np.save(partial / CODES, codes[order])
    return Segment(folder)


@locked_cache
def compile_scores() -> Callable[..., None]:
    """The compiled loop, found or compiled."""
    arguments = (
        array_type("int64", 1),
        array_type("uint64", 2),
        array_type("int64", 1),
        array_type("uint16", 1),
        array_type("uint64", 2),
        array_type("float32", 1),
        array_type("float32", 1, written=True),
    )
    return compile_loop("mkdesc.retrieval.scores_numba:add_scores", arguments)
