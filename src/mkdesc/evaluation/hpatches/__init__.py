"""The HPatches benchmark: three tasks on strips of patches."""
