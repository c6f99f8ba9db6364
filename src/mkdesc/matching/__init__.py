"""Two sets of descriptors to pairs of them: nearest neighbours, and the geometry they agree
on.

May use: _support, measures, images.
"""
