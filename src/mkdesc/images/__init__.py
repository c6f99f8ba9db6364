"""Pixels: reading, gray, keypoints, frames, cutting of patches, random changes (needs OpenCV:
``pip install mkdesc[images]``).

May use: _support.
"""
