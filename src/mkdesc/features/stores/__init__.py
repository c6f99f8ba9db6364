"""Features in the files of other programs."""
