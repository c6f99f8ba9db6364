"""Phototourism: sheets of patches, the points they show, and pairs of them."""
