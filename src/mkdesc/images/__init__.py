"""Pixels: reading, gray, detectors, frames, cutting of patches, random changes (needs OpenCV, any
build of it; ``pip install mkdesc[images]`` if there is none).

May use: _support.
"""
