"""The scenes in a collection: groups of photographs that show the same."""

from __future__ import annotations

from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import in_order
from mkdesc.retrieval.agreement import agree
from mkdesc.retrieval.index import Index
from mkdesc.retrieval.pairs import NamePair
from mkdesc.retrieval.similar import groups_of, similar_pairs

#: Matches of two images that must agree for them to show the same scene: one wrong link joins
#: two scenes, so more than elsewhere.
LEAST = 30


def find_groups(
    index: Index, k: int | None = None, progress: Progress = no_progress
) -> list[list[str]]:
    """Names of photographs of the same scene, the largest group first.

    Images that look alike are matched; those that are believed to show the same, with 30 matches
    that agree, are of one scene, as are those that a chain of such pairs leads to.

    Parameters
    ----------
    index
        Of the photographs.
    k
        With how many others each is matched on average, as for
        :func:`mkdesc.retrieval.similar_pairs`.
    progress
        Told of every image and every pair.

    Returns
    -------
    list of list of str
        Each image is in one group; of images that show what no other does, it is the only one.
    """
    return groups_of(index.names, verified_pairs(index, k, progress, LEAST))


def verified_pairs(
    index: Index,
    k: int | None = None,
    progress: Progress = no_progress,
    least: int = 1,
    device: str | None = None,
) -> list[NamePair]:
    """Pairs of images that look alike and are believed to show the same.

    Parameters
    ----------
    index, k, progress
        As for :func:`find_groups`.
    least
        Matches that must agree.
    device
        As for :func:`mkdesc.match_descriptors`.
    """
    pairs = similar_pairs(index.signatures, k, progress)

    def matches(pair: NamePair) -> int:
        one, other = (index.features(name) for name in pair)
        return len(agree(one, other, device).here)

    agreeing = []
    with one_thread_each():
        for done, count in enumerate(in_order(matches, pairs), 1):
            if count >= least:
                agreeing.append(pairs[done - 1])
            progress("matching", done, len(pairs))
    return agreeing
