"""Which images to match with which: all of them, or those that follow each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from pathlib import Path

from mkdesc._support.check import check_integer
from mkdesc._support.files import atomic_path, read_text
from mkdesc._support.targets import check_target, lines_of
from mkdesc._support.text import shorten
from mkdesc.images.listing import SUFFIXES, check_names

NamePair = tuple[str, str]


#: Images whose descriptors are at hand at a time: pairs come in an order that needs no more.
AT_HAND = 64
#: Every line of a list of pairs.
_NAME = rf"[^\s\0]+({'|'.join(map(re.escape, SUFFIXES))})"
OWN_PAIRS = lines_of(rf"(?i){_NAME} {_NAME}".encode())


def all_pairs(names: Collection[str]) -> Iterator[NamePair]:
    """Every pair of images once, those of nearby names in one go.

    Examples
    --------
    >>> list(all_pairs(["a", "b", "c"]))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    ordered = sorted(names)
    half = AT_HAND // 2
    groups = [ordered[i : i + half] for i in range(0, len(ordered), half)]
    for i, group in enumerate(groups):
        yield from combinations(group, 2)
        for other in groups[i + 1 :]:
            yield from ((a, b) for a in group for b in other)


def near_pairs(pairs: Iterable[NamePair]) -> list[NamePair]:
    """Pairs in an order in which those of nearby names are near each other.

    Blocks of images meet blocks of images, so that whoever keeps the last :data:`AT_HAND` images
    reads few of them twice.

    Examples
    --------
    >>> near_pairs([("b", "c"), ("a", "c"), ("a", "b")])
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    listed = list(pairs)
    half = AT_HAND // 2
    names = sorted({name for pair in listed for name in pair})
    block = {name: number // half for number, name in enumerate(names)}
    return sorted(listed, key=lambda pair: (block[pair[0]], block[pair[1]], pair))


def sequential_pairs(names: Collection[str], overlap: int = 10) -> list[NamePair]:
    """Each image with those that follow it, as frames of a video do.

    Those 1 to ``overlap`` frames later, and 2, 4, 8 ... times ``overlap``. Numbers in names
    count as numbers: frame 9 comes before frame 10. Images of different folders are different
    videos.

    Parameters
    ----------
    names
        Of the images.
    overlap
        How many that follow.

    Examples
    --------
    >>> sequential_pairs(["10.png", "8.png", "9.png"], overlap=1)
    [('10.png', '8.png'), ('10.png', '9.png'), ('8.png', '9.png')]
    """
    check_integer("overlap", overlap)
    videos: dict[str, list[str]] = {}
    for name in names:
        videos.setdefault(name.rpartition("/")[0], []).append(name)
    pairs = set()
    for frames in videos.values():
        frames.sort(key=_counting)
        far = [overlap << times for times in range(1, len(frames).bit_length())]
        for start, name in enumerate(frames):
            for step in [*range(1, overlap + 1), *far]:
                if start + step < len(frames):
                    pairs.add(ordered(name, frames[start + step]))
    return near_pairs(pairs)


def _counting(name: str) -> list[tuple[int, str]]:
    """A key by which numbers in names are sorted as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def ordered(a: str, b: str) -> NamePair:
    """Two images as a pair, the smaller name first."""
    return (a, b) if a < b else (b, a)


def check_output(
    path: str | Path,
    names: Iterable[str],
    reads: Iterable[str | Path | None] = (),
    overwrite: bool = False,
) -> None:
    """Refuse a list of pairs that cannot or must not be written, before the pairs are chosen.

    Parameters
    ----------
    path
        Of the text file.
    names
        Of the images: without spaces, as neither COLMAP nor hloc reads others.
    reads, overwrite
        As for ``check_target`` of ``mkdesc._support.targets``.
    """
    listed = list(names)
    check_names(listed, "a list of pairs")
    for name in listed:
        if name.split() != [name]:
            raise ValueError(f"{name!r}: expected a name without spaces for a list of pairs")
    check_target(path, reads, OWN_PAIRS, overwrite)


def write_pairs(path: str | Path, pairs: Iterable[NamePair], *, overwrite: bool = False) -> None:
    """Write pairs as hloc and COLMAP (``matches_importer --match_type pairs``) read them.

    Parameters
    ----------
    path
        Of the text file: two names a line.
    pairs
        Names without spaces: neither program reads others.
    overwrite
        Whether to replace a file that is no list of pairs.
    """
    listed = list(pairs)
    check_output(path, {name for pair in listed for name in pair}, overwrite=overwrite)
    lines = [f"{a} {b}\n" for a, b in listed]
    with atomic_path(path) as partial:
        partial.write_text("".join(lines), encoding="utf-8")


def read_pairs(path: str | Path, names: Collection[str]) -> list[NamePair]:
    """Pairs of images out of a text file (hloc's and COLMAP's): two names a line.

    Parameters
    ----------
    path
        Of the file; empty lines and those that begin with ``#`` are skipped.
    names
        Of the images there are.

    Returns
    -------
    list of (str, str)
        Each pair once, the smaller name first.
    """
    known = set(names)
    pairs = set()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: expected two names, got {shorten(line)!r}")
        for word in words:
            if word not in known:
                raise ValueError(f"{path}, line {number}: no image {shorten(word)!r}")
        if words[0] != words[1]:
            pairs.add(ordered(*words))
    if not pairs:
        raise ValueError(f"{path}: no pairs of images in this file")
    return near_pairs(pairs)
