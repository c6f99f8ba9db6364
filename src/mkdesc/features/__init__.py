"""Photographs in, features out: keypoints with descriptors, of one image or a folder, the stores
of other programs, and two photographs matched.

May use: _support, kernels, heads, descriptor, models, images, datasets, matching.
"""
