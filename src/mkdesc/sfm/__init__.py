"""From features of photographs to matches, cameras and points (needs pycolmap).

May use: _support, images, datasets, matching, features, retrieval.
"""
