"""From features of photographs to matches, cameras and points (needs pycolmap and h5py)."""
