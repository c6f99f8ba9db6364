"""Readers of the formats that patches come in.

May use: _support, kernels, geometry, images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.datasets.catalogue import check_folder as check_folder
    from mkdesc.datasets.colmap import read_observations as read_observations
    from mkdesc.datasets.hpatches.layout import HPatches as HPatches
    from mkdesc.datasets.hpatches.make_strips import make_sequence as make_sequence
    from mkdesc.datasets.patch_files import open_patches as open_patches
    from mkdesc.datasets.phototourism.layout import Subset as Subset

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
