"""Pixels: reading, gray, detectors, frames, cutting of patches, random changes (needs OpenCV, any
build of it; ``pip install mkdesc[images]`` if there is none).

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.images.cutting import cut_patches
    from mkdesc.images.demo import write_demo
    from mkdesc.images.detectors.keypoints import Keypoints
    from mkdesc.images.detectors.registry import Detector, make_detector
    from mkdesc.images.drawing import draw_keypoints, draw_matches
    from mkdesc.images.jitter import Jitter, Photometric
    from mkdesc.images.listing import find_images
    from mkdesc.images.reading import read_gray

__all__ = [
    "Detector",
    "Jitter",
    "Keypoints",
    "Photometric",
    "cut_patches",
    "draw_keypoints",
    "draw_matches",
    "find_images",
    "make_detector",
    "read_gray",
    "write_demo",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
