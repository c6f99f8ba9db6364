"""Photographs in, features out: keypoints with descriptors, of one image or a folder, the stores
of other programs, and two photographs matched.

May use: _support, kernels, geometry, heads, compute, descriptor, models, images, datasets,
matching, belief.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.features.alignment import Alignment as Alignment
    from mkdesc.features.alignment import align as align
    from mkdesc.features.extraction import extract_to as extract_to
    from mkdesc.features.features import Features as Features
    from mkdesc.features.flow import Flow as Flow
    from mkdesc.features.folder import Extracted as Extracted
    from mkdesc.features.folder import extract_features as extract_features
    from mkdesc.features.image_features import ImageFeatures as ImageFeatures
    from mkdesc.features.image_features import load_features as load_features
    from mkdesc.features.image_pair import match_images as match_images
    from mkdesc.features.matches import ImageMatches as ImageMatches
    from mkdesc.features.settings import Settings as Settings
    from mkdesc.features.warping import Warped as Warped

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
