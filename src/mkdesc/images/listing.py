"""Which photographs a folder holds: one answer for everybody."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

#: Endings of the files that are taken for photographs.
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".tif", ".tiff", ".webp")

#: What is wrong with some names in a folder.
_NOWHERE, _NO_FILE = "a link that leads nowhere", "is a device or a pipe"

#: What no line of text has in it: line feeds, what terminals obey, Unicode's ends of lines.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def find_images(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Image files by the names they go by: unique, sorted, with forward slashes.

    Parameters
    ----------
    sources
        Files, which go by their file names, and folders, whose images (of all folders in them,
        linked ones too, but for hidden files and folders) go by their paths from there. Links to
        photographs that are gone are listed; links to folders that are gone are warned of. Names
        with line feeds or other control characters are refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "b.jpg").touch(), (folder / "a.png").touch(), (folder / "notes").touch()
    >>> list(find_images([folder]))
    ['a.png', 'b.jpg']
    """
    found: dict[str, Path] = {}
    for source in map(Path, sources):
        for name, file in _images_of(source).items():
            if name in found:
                raise ValueError(f"{found[name]} and {file}: two images named {name}")
            if CONTROL.search(name):  # lists of names have a line for each
                expected = "a name without line feeds and other control characters"
                raise ValueError(f"{name!r}: expected {expected}; rename it")
            found[name] = file
    return dict(sorted(found.items()))


def check_names(names: Iterable[str], whose: str) -> None:
    r"""Refuse names of files that other programs, which expect text, cannot take.

    >>> check_names(["a.png", b"caf\xe9.png".decode(errors="surrogateescape")], "COLMAP")
    Traceback (most recent call last):
    ValueError: 'caf\udce9.png': expected a name in UTF-8 for COLMAP
    """
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:  # such bytes of a name come as halves of characters
            raise ValueError(f"{name!r}: expected a name in UTF-8 for {whose}") from None


def check_no_pipe(file: Path, expected: str = "a photograph or a folder") -> None:
    """Refuse pipes and devices: whoever reads them may wait for ever, or fill all memory."""
    if file.exists() and not file.is_file() and not file.is_dir():
        raise ValueError(f"{file}: {_NO_FILE}, expected {expected}")


def _images_of(source: Path) -> dict[str, Path]:
    if not source.exists():
        what = f": {_NOWHERE}" if source.is_symlink() else " does not exist"
        raise FileNotFoundError(f"{source}{what}")
    if source.is_file():
        return {source.name: source}
    check_no_pipe(source)
    found = {}
    for file in _files_of(source):
        there = file.is_file()
        lost = not there and not file.exists()
        if file.suffix.lower() in SUFFIXES and (there or lost):  # whoever reads it names it
            found[file.relative_to(source).as_posix()] = file
        elif lost or (file.suffix.lower() in SUFFIXES and not there):
            what = _NOWHERE if lost else _NO_FILE
            warnings.warn(f"{file}: {what}; left out", stacklevel=4)
    if not found:
        raise ValueError(f"{source}: no images ({', '.join(SUFFIXES)}) in this folder")
    return found


def _files_of(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Files of a folder and of all in it, by their names there; links that lead back are left."""
    real = folder.resolve()
    if real in above:
        return
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files_of(entry, (*above, real))
        else:
            yield entry
