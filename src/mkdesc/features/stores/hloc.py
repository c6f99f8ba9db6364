"""Features in the layout of hloc: one HDF5 file, one group per image.

Damaged files can keep HDF5's library busy for ever, or end the process. They are looked into by a
process of their own; checksums, of data and of what describes them, tell whether they are whole.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdesc._support.files import Damaged, atomic_path, saying_what_failed
from mkdesc._support.optional import needed
from mkdesc._support.workfolder import check_settings
from mkdesc.features.image_features import load_features

#: The attribute of the file that says how its features were made.
_SETTINGS = "mkdesc"
#: That of a group: the fingerprint of the file that was described.
_SOURCE = "mkdesc_source"
#: How such files begin; and those whose beginning never reached the disk.
_BEGINNINGS = (b"\x89HDF\r\n\x1a\n", b"", bytes(8))
#: Seconds that looking into a file may take, and bytes that are read in another one.
SECONDS, BYTES_PER_SECOND = 2, 20e6


def h5py_module() -> Any:
    """The h5py module, or an ImportError that says how to get it."""
    with needed("hloc's files need h5py", "hloc"):
        import h5py
    return h5py


def stored_images(path: Path, settings: str) -> dict[str, str]:
    """Images whose features are in a file, and their fingerprints; none if there is no file.

    Parameters
    ----------
    path
        Of the HDF5 file; an error that says so if it is damaged.
    settings
        How its features must have been made.
    """
    h5py_module()
    if not path.exists():
        return {}
    with path.open("rb") as file:
        if file.read(8) not in _BEGINNINGS:
            raise ValueError(f"{path}: not an HDF5 file")
    code = "from mkdesc.features.stores.hloc import print_contents; print_contents()"
    seconds = SECONDS + path.stat().st_size / BYTES_PER_SECOND
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, str(path), str(seconds)],  # not from this folder
            capture_output=True,
            timeout=30 + 10 * seconds,  # the child counts its own: this one may have to wait
        )
        found, images = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        raise Damaged(f"{path}: damaged") from None
    check_settings(path, found, json.loads(settings))
    return dict(images)


def print_contents() -> None:
    """Read all of a file and print the settings and the images as JSON: the child's part."""
    path, seconds = sys.argv[1:]
    h5py = h5py_module()
    _limit_computing(float(seconds))
    images: dict[str, str] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            for start in range(0, len(item), 4096) if item.shape else ():
                item[start : start + 4096]
        elif "keypoints" in item:
            images[name] = str(item.attrs.get(_SOURCE, ""))

    with h5py.File(path, "r") as file:
        found = str(file.attrs.get(_SETTINGS, ""))
        if found:  # what somebody else keeps is not ours to call damaged
            file.visititems(visit)
    print(json.dumps([found, images]))


def _limit_computing(seconds: float) -> None:
    """End this process when it has computed for so long from here on, where that can be said."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, end))


def add_features(path: Path, folder: Path, names: Iterable[str], settings: str) -> None:
    """Add the features of images in a folder to a file, or make it.

    Parameters
    ----------
    path
        Of the HDF5 file; replaced as a whole at the end.
    folder
        What :func:`mkdesc.features.extract_features` wrote.
    names
        Of the images.
    settings
        How the features were made.
    """
    h5py = h5py_module()
    with saying_what_failed(path, RuntimeError), atomic_path(path) as partial:
        if path.exists():
            shutil.copyfile(path, partial)
        mode = "a" if path.exists() else "w"
        with _Disk(partial) as disk, h5py.File(disk, mode, libver="v110") as file:
            file.attrs[_SETTINGS] = settings
            for name in names:
                disk.check()
                found = load_features(folder, name)
                # hloc's pixel centres are at integers, as ours; it adds COLMAP's half itself.
                arrays = {
                    "keypoints": found.keypoints[:, :2],
                    "descriptors": found.descriptors.T,
                    "scores": found.scores,
                    "scales": found.keypoints[:, 2],
                    "oris": found.keypoints[:, 3],
                    "image_size": found.image_size,
                }
                group = file.create_group(name)
                group.attrs[_SOURCE] = str(found.source)
                for key, array in arrays.items():
                    # Nothing has no checksum.
                    group.create_dataset(key, data=array, fletcher32=array.size > 0)
                group["keypoints"].attrs["uncertainty"] = 1.0
        disk.check()


class _Disk(io.FileIO):
    """A file that HDF5's library believes it can write to.

    Where it cannot, versions before 2.0 end the process when they are unloaded; so failures are
    kept until the file is closed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "r+")
        self._failed: OSError | None = None

    def check(self) -> None:
        """RuntimeError if something has failed so far."""
        if self._failed is not None:
            raise RuntimeError(self._failed)

    def write(self, data: Any) -> int:
        """Write all of it."""
        rest = memoryview(data)
        try:
            while len(rest) and self._failed is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._failed = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the length."""
        try:
            return super().truncate(size)
        except OSError as error:
            self._failed = self._failed or error
            return size or 0
