"""Two sets of descriptors to pairs of them: nearest neighbours, and the geometry they agree
on.

May use: _support, measures, descriptor, models, images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.matching.distinct import match_distinct
    from mkdesc.matching.guided import match_guided
    from mkdesc.matching.nearest import Matches, match_descriptors
    from mkdesc.matching.verification import Verified, verify_matches

__all__ = [
    "Matches",
    "Verified",
    "match_descriptors",
    "match_distinct",
    "match_guided",
    "verify_matches",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
