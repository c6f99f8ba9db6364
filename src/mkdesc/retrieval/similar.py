"""Which images to match with which: those that look alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mkdesc._support.progress import Progress, nobody
from mkdesc.retrieval.collecting import learn_from, signatures_of
from mkdesc.retrieval.pairs import Pair, near_pairs, ordered
from mkdesc.retrieval.search import Signatures
from mkdesc.retrieval.shards import write_shards

__all__ = ["connected", "neighbours_for", "retrieved_pairs", "similar_pairs"]


def neighbours_for(images: int) -> int:
    """With how many others to match each image, where nothing else is said.

    About a tenth of all pairs in small collections, and no more than 40 in any.

    >>> [neighbours_for(images) for images in (50, 300, 5000)]
    [10, 20, 40]
    """
    return min(40, max(10, images // 15))


def similar_pairs(
    signatures: Signatures, k: int | None = None, progress: Progress | None = None
) -> list[Pair]:
    """Each image with those that look most like it, and all of them connected.

    Parameters
    ----------
    signatures
        Of the images.
    k
        How many of the most similar; a pair is taken if either image is among those of the
        other. None: :func:`neighbours_for` as many.
    progress
        Told of every image.

    Returns
    -------
    list of (str, str)
        Where they fall into groups without a pair between them, the most similar pair between
        a group and the others is added until there is one group.
    """
    tell = progress or nobody
    names = signatures.names
    number = {name: i for i, name in enumerate(names)}
    wanted = neighbours_for(len(names)) if k is None else k
    pairs, done = set(), 0
    for shard in signatures.shards:
        for name, own in shard.signatures():
            found = signatures.nearest(own, wanted + 1)
            others = [one.name for one in found if one.name != name]
            pairs |= {ordered(name, other) for other in others[:wanted]}
            done += 1
            tell("looking for pairs", done, len(names))
    while True:
        groups = connected(names, pairs)
        if len(set(groups.values())) <= 1:
            return near_pairs(pairs)
        of = np.array([groups[name] for name in names])
        links: dict[int, tuple[float, Pair]] = {}
        for shard in signatures.shards:
            for name, own in shard.signatures():
                scores = signatures.similarities(own)
                scores[of == of[number[name]]] = -1
                best = int(scores.argmax())
                link = (-float(scores[best]), ordered(name, names[best]))
                group = int(of[number[name]])
                links[group] = min(link, links.get(group, link))
        pairs |= {pair for _, pair in links.values()}


def connected(names: Iterable[str], pairs: Iterable[Pair]) -> dict[str, int]:
    """The group of each image: those that pairs lead to from one to the other.

    Examples
    --------
    >>> connected("abcd", [("a", "c"), ("d", "c")])
    {'a': 0, 'b': 1, 'c': 0, 'd': 0}
    """
    above = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    for a, b in pairs:
        above[top(b)] = top(a)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(top(name), len(numbers)) for name in above}


def retrieved_pairs(
    features: Path, names: Sequence[str], k: int | None = None, progress: Progress | None = None
) -> list[Pair]:
    """The same for a folder of features, without an index.

    Parameters
    ----------
    features
        What :func:`mkdesc.features.folder.extract_features` wrote.
    names
        Of the images in it.
    k, progress
        As for :func:`similar_pairs`.
    """
    words = learn_from(features, names)
    found = signatures_of(features, names, words)
    with tempfile.TemporaryDirectory(prefix="mkdesc-") as folder:
        shards = write_shards(Path(folder), 0, dict.fromkeys(names, (0, 0)), found, len(words))
        return similar_pairs(Signatures(words, list(shards)), k, progress)
