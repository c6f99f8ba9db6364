"""From features of photographs to matches, cameras and points (needs pycolmap).

May use: _support, images, datasets, matching, features, retrieval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.sfm.options import Matched, SfmOptions
    from mkdesc.sfm.pipeline import map_database, match_images, reconstruct
    from mkdesc.sfm.report import SfmReport, read_report

__all__ = [
    "Matched",
    "SfmOptions",
    "SfmReport",
    "map_database",
    "match_images",
    "read_report",
    "reconstruct",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
