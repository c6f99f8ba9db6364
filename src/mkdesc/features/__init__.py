"""Photographs in, features out: keypoints with descriptors, of one image or a folder, and the
stores of other programs.

May use: _support, kernels, heads, descriptor, models, images, datasets, matching.
"""
