"""A page in the browser in which kernels, patch maps and two patches can be played with.

May use: _support, kernels, heads, descriptor, models, images, visual.
"""
