"""The Phototourism benchmark: pairs of patches, and whole sets ("revisited")."""
