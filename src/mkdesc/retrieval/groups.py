"""The places in a collection: groups of photographs that show the same."""

from __future__ import annotations

from mkdesc._support.progress import Progress, nobody
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import in_order
from mkdesc.retrieval.agreement import agree
from mkdesc.retrieval.index import Index
from mkdesc.retrieval.pairs import Pair
from mkdesc.retrieval.similar import connected, similar_pairs

__all__ = ["find_groups"]

#: Matches of two images that must agree for them to show the same place: one wrong link joins
#: two places, so more than elsewhere.
LEAST = 30


def find_groups(
    index: Index, k: int | None = None, progress: Progress | None = None
) -> list[list[str]]:
    """Names of photographs of the same place, the largest group first.

    Images that look alike are matched; those of which 30 matches agree on one geometry are of
    one place, as are those that a chain of such pairs leads to.

    Parameters
    ----------
    index
        Of the photographs.
    k
        With how many others each is matched on average, as for
        :func:`mkdesc.retrieval.similar.similar_pairs`.
    progress
        Told of every image and every pair.

    Returns
    -------
    list of list of str
        Each image is in one group; of images that show what no other does, it is the only one.
    """
    tell = progress or nobody
    pairs = similar_pairs(index.signatures, k, tell)

    def matches(pair: Pair) -> int:
        one, other = (index.features(name) for name in pair)
        return len(agree(one, other).here)

    agreeing = []
    with one_thread_each():
        for done, count in enumerate(in_order(matches, pairs), 1):
            if count >= LEAST:
                agreeing.append(pairs[done - 1])
            tell("matching", done, len(pairs))
    groups: dict[int, list[str]] = {}
    for name, number in connected(sorted(index.names), agreeing).items():
        groups.setdefault(number, []).append(name)
    return sorted(groups.values(), key=lambda names: (-len(names), names))
