"""Places of files: paths of this machine, or addresses (``s3://...``) that fsspec knows.

An object store has no renames, and needs none: what is put there is whole or not there. On this
machine :func:`~mkdesc._support.files.atomic_path` sees to the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Any

from mkdesc._support.files import atomic_path
from mkdesc._support.optional import needed

__all__ = [
    "as_place",
    "exists",
    "facts_of",
    "inside",
    "is_address",
    "names_in",
    "open_place",
    "read_place",
    "remove_place",
    "write_place",
]


def is_address(place: str) -> bool:
    """Whether a place is an address, not a path.

    >>> is_address("s3://bucket/patches.zarr"), is_address("patches.npy")
    (True, False)
    """
    return "://" in place


def as_place(place: str | Path) -> str:
    """A place as text that means the same in every process: an address, or an absolute path.

    >>> as_place("memory://patches.npy")
    'memory://patches.npy'
    >>> as_place("file:///data/patches.npy")
    '/data/patches.npy'
    """
    text = str(place)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return text if is_address(text) else str(Path(text).absolute())


def inside(place: str, name: str) -> str:
    """A file of a folder.

    >>> inside("s3://bucket/run", "part.npy")
    's3://bucket/run/part.npy'
    """
    return f"{place}/{name}"


def _files(place: str) -> tuple[Any, str]:
    with needed(f"{place}: addresses need fsspec", "cluster"):
        from fsspec.core import url_to_fs
    try:
        files, path = url_to_fs(place)
    except (ValueError, ImportError) as error:
        raise ValueError(f"{place}: {error}") from None
    return files, str(path)


def open_place(place: str) -> IO[bytes]:
    """Open a file to read."""
    if not is_address(place):
        return Path(place).open("rb")
    files, path = _files(place)
    stream: IO[bytes] = files.open(path, "rb")
    return stream


def read_place(place: str) -> bytes | None:
    """The content of a file; None if it is not there."""
    try:
        with open_place(place) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_place(place: str, content: bytes | memoryview) -> None:
    """Write a file, whole or not at all; folders are made."""
    if is_address(place):
        files, path = _files(place)
        files.makedirs(files._parent(path), exist_ok=True)
        files.pipe_file(path, bytes(content))
        return
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(place) as partial:
        partial.write_bytes(content)


def exists(place: str) -> bool:
    """Whether a file or folder is there."""
    if not is_address(place):
        return Path(place).exists()
    files, path = _files(place)
    return bool(files.exists(path))


def facts_of(place: str) -> list[tuple[str, int, str]]:
    """What is known of the files of a place without reading them: names, sizes and the rest.

    Of files on this machine when they and their entries were changed, and which ones they are; of
    others what their store has instead. The name of a file that is the place itself is empty.
    """
    if is_address(place):
        files, path = _files(place)
        found = files.find(path, detail=True)
        return [
            (name, int(found[name].get("size") or 0), _told(found[name])) for name in sorted(found)
        ]
    root = Path(place)
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


def names_in(place: str) -> set[str]:
    """Names of what is in a folder; none if it is not there."""
    if not is_address(place):
        folder = Path(place)
        return {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    files, path = _files(place)
    try:
        found = files.ls(path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {str(name).rstrip("/").rpartition("/")[2] for name in found}


def remove_place(place: str) -> None:
    """Remove a file, or a folder and what is in it."""
    if is_address(place):
        files, path = _files(place)
        files.rm(path, recursive=True)
    elif Path(place).is_file():
        Path(place).unlink()
    else:
        shutil.rmtree(place)
