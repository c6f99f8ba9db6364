"""From features of photographs to matches, cameras and points (needs pycolmap).

May use: _support, images, geometry, datasets, matching, belief, features, retrieval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.sfm.options import Matched as Matched
    from mkdesc.sfm.options import SfmOptions as SfmOptions
    from mkdesc.sfm.pipeline import map_database as map_database
    from mkdesc.sfm.pipeline import match_images as match_images
    from mkdesc.sfm.pipeline import reconstruct as reconstruct
    from mkdesc.sfm.report import SfmReport as SfmReport
    from mkdesc.sfm.report import read_report as read_report

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
