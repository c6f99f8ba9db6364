"""Two sets of descriptors to pairs of them: nearest neighbours, and the geometry they agree
on.

May use: _support, measures, geometry, descriptor, models, images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.matching.distinct import match_distinct as match_distinct
    from mkdesc.matching.growing.grow import GrownMatches as GrownMatches
    from mkdesc.matching.growing.grow import grow_matches as grow_matches
    from mkdesc.matching.growing.options import GrowOptions as GrowOptions
    from mkdesc.matching.nearest import Matches as Matches
    from mkdesc.matching.nearest import match_descriptors as match_descriptors
    from mkdesc.matching.verification import verify_matches as verify_matches

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
