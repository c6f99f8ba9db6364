"""Which images to match with which."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path

__all__ = ["all_pairs", "read_pairs"]

#: Images whose descriptors are at hand at a time: pairs come in an order that needs no more.
AT_HAND = 64


def all_pairs(names: Collection[str]) -> Iterator[tuple[str, str]]:
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


def read_pairs(path: str | Path, names: Collection[str]) -> list[tuple[str, str]]:
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
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: expected two names, got {line!r}")
        for word in words:
            if word not in known:
                raise ValueError(f"{path}, line {number}: no image {word!r}")
        if words[0] != words[1]:
            pairs.add((min(words), max(words)))
    if not pairs:
        raise ValueError(f"{path}: no pairs of images in this file")
    return sorted(pairs)
