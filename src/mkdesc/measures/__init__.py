"""Numbers about descriptors: distances between them, and how well scores rank.

May use: _support.
"""
