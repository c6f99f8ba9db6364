"""Features in the files of other programs; :mod:`mkdesc.features.extraction` names them all."""
