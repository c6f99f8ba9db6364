"""Photographs that look alike: one signature per image, indexes of them, search, and pairs of
images worth matching (needs OpenCV, any build of it).

May use: _support, images, matching, features.
"""
