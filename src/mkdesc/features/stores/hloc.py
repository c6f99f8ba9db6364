"""Features in the layout of hloc: one HDF5 file, one group per image."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdesc._support.files import atomic_path
from mkdesc.features.folder import check_settings, load_features

__all__ = ["add_features", "h5py_module", "stored_names"]

#: The attribute of the file that says how its features were made.
_SETTINGS = "mkdesc"


def h5py_module() -> Any:
    """The h5py module, or an ImportError that says how to get it."""
    try:
        import h5py
    except ImportError:
        raise ImportError("hloc's files need h5py: pip install 'mkdesc[hloc]'") from None
    return h5py


def stored_names(path: Path, settings: str) -> set[str]:
    """Names of the images whose features are in a file; none if there is no file.

    Parameters
    ----------
    path
        Of the HDF5 file.
    settings
        How its features must have been made.
    """
    h5py = h5py_module()
    if not path.exists():
        return set()
    try:
        with h5py.File(path, "r") as file:
            found = file.attrs.get(_SETTINGS, "")
            names: list[str] = []
            file.visititems(
                lambda name, item: names.append(name) if "keypoints" in _members(item) else None
            )
    except OSError as error:
        raise ValueError(f"{path}: not an HDF5 file ({error})") from None
    check_settings(path, found, settings)
    return set(names)


def _members(item: Any) -> Any:
    return item.keys() if hasattr(item, "keys") else ()


def add_features(path: Path, folder: Path, names: Iterable[str], settings: str) -> None:
    """Add the features of images in a folder to a file, or make it.

    Parameters
    ----------
    path
        Of the HDF5 file; replaced as a whole at the end.
    folder
        What :func:`mkdesc.features.folder.extract_features` wrote.
    names
        Of the images.
    settings
        How the features were made.
    """
    h5py = h5py_module()
    with atomic_path(path) as partial:
        if path.exists():
            shutil.copyfile(path, partial)
        # Ours alone, and locked already as a file that is being written.
        with h5py.File(partial, "a" if path.exists() else "w", locking=False) as file:
            file.attrs[_SETTINGS] = settings
            for name in names:
                found = load_features(folder, name)
                group = file.create_group(name)
                # hloc's pixel centres are at integers, as ours; it adds COLMAP's half itself.
                group["keypoints"] = found.keypoints[:, :2]
                group["keypoints"].attrs["uncertainty"] = 1.0
                group["descriptors"] = found.descriptors.T
                group["scores"] = found.scores
                group["scales"] = found.keypoints[:, 2]
                group["oris"] = found.keypoints[:, 3]
                group["image_size"] = found.image_size
