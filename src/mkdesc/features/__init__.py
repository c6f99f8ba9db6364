"""Photographs in, features out: keypoints with descriptors, of one image or a folder, the stores
of other programs, and two photographs matched.

May use: _support, kernels, heads, compute, descriptor, models, images, datasets, matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.features.extraction import extract_to
    from mkdesc.features.features import Features
    from mkdesc.features.folder import Extracted, extract_features
    from mkdesc.features.image_features import ImageFeatures, load_features
    from mkdesc.features.image_pair import match_images
    from mkdesc.features.matches import ImageMatches
    from mkdesc.features.settings import Settings

__all__ = [
    "Extracted",
    "Features",
    "ImageFeatures",
    "ImageMatches",
    "Settings",
    "extract_features",
    "extract_to",
    "load_features",
    "match_images",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
