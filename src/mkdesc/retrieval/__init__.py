"""Photographs that look alike: one signature per image, indexes of them, search, and pairs of
images worth matching (needs OpenCV, any build of it).

May use: _support, images, matching, features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.retrieval.agreement import Agreement as Agreement
    from mkdesc.retrieval.groups import find_groups as find_groups
    from mkdesc.retrieval.index import Found as Found
    from mkdesc.retrieval.index import Index as Index
    from mkdesc.retrieval.pairs import all_pairs as all_pairs
    from mkdesc.retrieval.pairs import read_pairs as read_pairs
    from mkdesc.retrieval.pairs import sequential_pairs as sequential_pairs
    from mkdesc.retrieval.pairs import write_pairs as write_pairs
    from mkdesc.retrieval.similar import similar_pairs as similar_pairs
    from mkdesc.retrieval.updating import Updated as Updated
    from mkdesc.retrieval.updating import build_index as build_index

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
