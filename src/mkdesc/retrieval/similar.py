"""Which images to match with which: those that look alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.work import Workers
from mkdesc.retrieval.collecting import learn_from, signatures_of
from mkdesc.retrieval.pairs import NamePair, near_pairs, ordered
from mkdesc.retrieval.search import Signatures, best_of
from mkdesc.retrieval.segments import write_segments


def neighbours_for(images: int) -> int:
    """With how many others to match an image on average, where nothing else is said.

    A tenth of all pairs in small collections, and no more than 50 for an image in any.

    >>> [neighbours_for(images) for images in (50, 300, 5000)]
    [10, 30, 50]
    """
    return min(50, max(10, images // 10))


def similar_pairs(
    signatures: Signatures, k: int | None = None, progress: Progress = no_progress
) -> list[NamePair]:
    """Images that look alike, and all of them connected.

    Each image is paired with the k / 2 that are most like it. As many of those pairs are of two
    images that have each other, there are fewer than N k / 2; the most similar pairs of all,
    up to 2 k of an image, fill these up: they are of scenes of which there are many views.
    Where images fall into groups without a pair between them, the most similar pair between a
    group and the others is added until there is one group.

    Parameters
    ----------
    signatures
        Of the images.
    k
        With how many others to match an image on average; None: :func:`neighbours_for` as many.
    progress
        Told of every image.
    """
    names = signatures.names
    wanted = neighbours_for(len(names)) if k is None else k
    check_integer("k", wanted)
    most = min(2 * wanted, len(names) - 1)
    others = np.empty((len(names), most), np.int64)
    scores = np.empty((len(names), most), np.float32)
    for number, found in enumerate(_all_similarities(signatures)):
        found[number] = -1  # an image is not its own neighbour
        others[number] = best_of(found, most)
        scores[number] = found[others[number]]
        progress("looking for pairs", number + 1, len(names))
    each = -(-wanted // 2)
    rows = np.arange(len(names))
    chosen = {ordered(names[i], names[j]) for i in rows for j in others[i, :each]}
    rest = np.argsort(-scores[:, each:], axis=None, kind="stable")
    for i, j in zip(*np.unravel_index(rest, scores[:, each:].shape), strict=True):
        if len(chosen) >= len(names) * wanted // 2:
            break
        chosen.add(ordered(names[i], names[others[i, each + j]]))
    return near_pairs(_joined(signatures, chosen))


def _all_similarities(signatures: Signatures) -> Iterator[NDArray[np.float32]]:
    """The similarities (N,) of each image to all, one after the other."""
    for segment in signatures.segments:
        for *_, own in segment.entries():
            yield signatures.similarities(own)


def _joined(signatures: Signatures, pairs: set[NamePair]) -> set[NamePair]:
    """Pairs, and the most similar ones that make one group of all images."""
    names = signatures.names
    together = set(pairs)
    while True:
        of = _group_numbers(names, together)
        if of.max(initial=0) == 0:
            return together
        links: dict[int, tuple[float, NamePair]] = {}
        for number, found in enumerate(_all_similarities(signatures)):
            found[of == of[number]] = -1
            best = int(found.argmax())
            link = (-float(found[best]), ordered(names[number], names[best]))
            group = int(of[number])
            links[group] = min(link, links.get(group, link))
        together |= {pair for _, pair in links.values()}


def groups_of(names: Iterable[str], pairs: Iterable[NamePair]) -> list[list[str]]:
    """Images in groups: pairs lead from one of a group to every other. The largest come first.

    Examples
    --------
    >>> groups_of("abcd", [("a", "c"), ("d", "c")])
    [['a', 'c', 'd'], ['b']]
    """
    ordered_names = sorted(names)
    groups: dict[int, list[str]] = {}
    for name, number in zip(ordered_names, _group_numbers(ordered_names, pairs), strict=True):
        groups.setdefault(int(number), []).append(name)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _group_numbers(names: Sequence[str], pairs: Iterable[NamePair]) -> NDArray[np.integer]:
    """The number (N,) of the group of each image."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number_of = {name: number for number, name in enumerate(names)}
    ends = np.array([[number_of[a], number_of[b]] for a, b in pairs], np.int64).reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(len(names), len(names)))
    numbers: NDArray[np.integer] = connected_components(links, directed=False)[1]
    return numbers


def retrieved_pairs(
    features: Path,
    names: Sequence[str],
    k: int | None = None,
    progress: Progress = no_progress,
    workers: Workers = None,
) -> list[NamePair]:
    """The same for a folder of features, without an index.

    Parameters
    ----------
    features
        What :func:`mkdesc.features.extract_features` wrote.
    names
        Of the images in it.
    k, progress
        As for :func:`similar_pairs`.
    workers
        Who makes signatures: so many threads, an executor, or a Dask client.
    """
    words = learn_from(features, names)
    found = signatures_of(features, names, words, workers)
    with tempfile.TemporaryDirectory(prefix="mkdesc-") as folder:
        segments = write_segments(Path(folder), 0, found, len(words))
        return similar_pairs(Signatures(words, list(segments)), k, progress)
