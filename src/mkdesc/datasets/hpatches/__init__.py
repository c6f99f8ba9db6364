"""HPatches: strips of patches, the lists of what to compare, and strips of your own images."""
