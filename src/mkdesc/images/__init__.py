"""Pixels: reading, gray, detectors, frames, cutting of patches, drawing, random changes.

OpenCV's own detectors and random changes of photographs need OpenCV, any build of it;
``pip install mkdesc[images]`` if there is none.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.images.cutting import cut_patches as cut_patches
    from mkdesc.images.demo import write_demo as write_demo
    from mkdesc.images.detectors.keypoints import Keypoints as Keypoints
    from mkdesc.images.detectors.registry import Detector as Detector
    from mkdesc.images.detectors.registry import make_detector as make_detector
    from mkdesc.images.drawing import draw_keypoints as draw_keypoints
    from mkdesc.images.drawing import draw_matches as draw_matches
    from mkdesc.images.jitter import Jitter as Jitter
    from mkdesc.images.jitter import Photometric as Photometric
    from mkdesc.images.listing import find_images as find_images
    from mkdesc.images.reading import read_gray as read_gray

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
