"""Locations of files: paths of this machine, or addresses (``s3://...``) that fsspec knows.

An object store has no renames, and needs none: what is put there is whole or not there. On this
machine :func:`~mkdesc._support.files.atomic_path` sees to the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Any

from mkdesc._support.files import atomic_path
from mkdesc._support.optional import needed
from mkdesc._support.targets import make_folder


def is_address(location: str) -> bool:
    """Whether a location is an address, not a path.

    >>> is_address("s3://bucket/patches.zarr"), is_address("patches.npy")
    (True, False)
    """
    return "://" in location


def as_location(location: str | Path) -> str:
    """A location as text that means the same in every process: an address, or an absolute path.

    >>> as_location("memory://patches.npy")
    'memory://patches.npy'
    >>> as_location("file:///data/patches.npy")
    '/data/patches.npy'
    """
    text = str(location)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return text if is_address(text) else str(Path(text).absolute())


def inside(location: str, name: str) -> str:
    """A file of a folder.

    >>> inside("s3://bucket/run", "part.npy")
    's3://bucket/run/part.npy'
    """
    return f"{location}/{name}"


def _files(location: str) -> tuple[Any, str]:
    with needed(f"{location}: addresses need fsspec", "cluster"):
        from fsspec.core import url_to_fs
    try:
        files, path = url_to_fs(location)
    except (ValueError, ImportError) as error:
        raise ValueError(f"{location}: {error}") from None
    return files, str(path)


def open_location(location: str) -> IO[bytes]:
    """Open a file to read."""
    if not is_address(location):
        return Path(location).open("rb")
    files, path = _files(location)
    stream: IO[bytes] = files.open(path, "rb")
    return stream


def read_location(location: str) -> bytes | None:
    """The content of a file; None if it is not there."""
    try:
        with open_location(location) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_location(location: str, content: bytes | memoryview) -> None:
    """Write a file, whole or not at all; folders are made."""
    if is_address(location):
        files, path = _files(location)
        files.makedirs(files._parent(path), exist_ok=True)
        files.pipe_file(path, bytes(content))
        return
    make_folder(Path(location).parent)
    with atomic_path(location) as partial:
        partial.write_bytes(content)


def exists(location: str) -> bool:
    """Whether a file or folder is there."""
    if not is_address(location):
        return Path(location).exists()
    files, path = _files(location)
    return bool(files.exists(path))


def facts_of(location: str) -> list[tuple[str, int, str]]:
    """What is known of the files of a location without reading them: names, sizes and the rest.

    Of files on this machine when they and their entries were changed, and which ones they are; of
    others what their store has instead. The name of a file that is the location itself is empty.
    """
    if is_address(location):
        files, path = _files(location)
        found = files.find(path, detail=True)
        return [
            (name, int(found[name].get("size") or 0), _told(found[name])) for name in sorted(found)
        ]
    root = Path(location)
    inner = (
        [root] if root.is_file() else sorted(file for file in root.rglob("*") if file.is_file())
    )
    facts = []
    for file in inner:
        state = file.stat()
        own = f"{state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}"
        name = "" if file == root else file.relative_to(root).as_posix()
        facts.append((name, state.st_size, own))
    return facts


def _told(about: dict[str, Any]) -> str:
    """What a store says of a file, but for its own name and when it was last read."""
    keys = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created")
    return " ".join(f"{key}={about[key]}" for key in keys if key in about)


def names_in(location: str) -> set[str]:
    """Names of what is in a folder; none if it is not there."""
    if not is_address(location):
        folder = Path(location)
        return {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    files, path = _files(location)
    try:
        found = files.ls(path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {str(name).rstrip("/").rpartition("/")[2] for name in found}


def remove_location(location: str) -> None:
    """Remove a file, or a folder and what is in it."""
    if is_address(location):
        files, path = _files(location)
        files.rm(path, recursive=True)
    elif Path(location).is_file():
        Path(location).unlink()
    else:
        shutil.rmtree(location)
