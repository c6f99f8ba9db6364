"""Photographs that look alike: one signature per image, indexes of them, search, and pairs of
images worth matching (needs OpenCV, any build of it).

May use: _support, images, matching, features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.retrieval.agreement import Agreement
    from mkdesc.retrieval.groups import find_groups
    from mkdesc.retrieval.index import Found, Index
    from mkdesc.retrieval.pairs import all_pairs, read_pairs, sequential_pairs, write_pairs
    from mkdesc.retrieval.similar import similar_pairs
    from mkdesc.retrieval.updating import Updated, build_index

__all__ = [
    "Agreement",
    "Found",
    "Index",
    "Updated",
    "all_pairs",
    "build_index",
    "find_groups",
    "read_pairs",
    "sequential_pairs",
    "similar_pairs",
    "write_pairs",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
