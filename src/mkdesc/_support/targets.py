"""What may be written where: nothing is written over what is read, or over a file of others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

#: Bytes at the beginning and at the end of a file in which it says what it is.
_LOOKED_AT = 4096

#: Bytes of a line of text, at most: a row of 1,127 numbers has 15,000.
_LONGEST_LINE = 1 << 20

#: Where the files of this package are: its models, too.
_PACKAGE = Path(__file__).resolve().parents[1]

AnyPath = str | os.PathLike[str]

#: By what a kind of file is known: an expression that is in it, or a function of its path.
Own = bytes | Callable[[Path], bool]


def check_target(
    path: AnyPath,
    reads: Iterable[AnyPath | None] = (),
    own: Own | None = None,
    overwrite: bool | None = None,
) -> Path:
    """Refuse a file that could not or must not be written, before the work for it is done.

    Parameters
    ----------
    path
        Of the file.
    reads
        What the work reads: it is never written over, by whatever name. Files, and folders, of
        which every file counts but for those that ``own`` recognises. None stands for nothing.
    own
        A regular expression that the beginning or the end of every file of the kind to be
        written has, and few others do; or a function that says whether a file is of that kind.
        A file that is there and is of another kind is refused, and so is one that came with this
        package. None: any file may be replaced.
    overwrite
        Whether to replace a file of another kind all the same; None: that cannot be asked for.

    Examples
    --------
    >>> check_target("nowhere/pairs.txt")
    Traceback (most recent call last):
    FileNotFoundError: nowhere/pairs.txt: the folder nowhere does not exist
    >>> import tempfile
    >>> photograph = Path(tempfile.mkdtemp()) / "a.jpg"
    >>> _ = photograph.write_bytes(b"pixels")
    >>> check_target(photograph, reads=[photograph])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...a.jpg: is an input and would be overwritten; choose another name
    >>> check_target(photograph, own=rb"x_a,y_a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileExistsError: ...a.jpg: is there already, and is another kind of file; choose another name
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder, not a file to write")
    folder = followed(target).parent
    if not folder.is_dir():
        check_folder(folder)
        raise FileNotFoundError(f"{target}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{target}: the folder {folder} cannot be written to")
    if not target.exists():  # nothing can be lost
        return target
    if not target.is_file():
        raise ValueError(f"{target}: is a device or a pipe, expected the name of a file")
    is_own = own is None or _says(target, own)
    for location in reads:
        if location is not None and _reads(Path(location), target, is_own and own is not None):
            name = "" if Path(location) == target else f" ({location})"
            raise ValueError(
                f"{target}: is an input{name} and would be overwritten; choose another name"
            )
    ours = own is not None and target.resolve().is_relative_to(_PACKAGE)
    if (ours or not is_own) and not overwrite:
        what = "a part of mkdesc itself" if ours else "another kind of file"
        raise FileExistsError(
            f"{target}: is there already, and is {what}; choose another name"
            f"{'' if overwrite is None else ', or overwrite it (--overwrite)'}"
        )
    return target


def followed(path: AnyPath) -> Path:
    """Where a link leads to, or the path itself.

    >>> followed("pairs.txt").name
    'pairs.txt'
    """
    found = Path(path)
    return Path(os.path.realpath(found)) if found.is_symlink() else found


def check_folder(path: AnyPath) -> Path:
    """Refuse a folder that cannot be made: a file, or a link to nothing, is in its place.

    >>> import tempfile
    >>> diary = Path(tempfile.mkdtemp()) / "diary"
    >>> diary.touch()
    >>> check_folder(diary / "out")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    NotADirectoryError: ...diary: is a file, expected a folder
    """
    folder = Path(path)
    first = next(part for part in (folder, *folder.parents, Path()) if os.path.lexists(part))
    if not first.is_dir():
        what = "a file" if first.exists() else "a link that leads nowhere"
        raise NotADirectoryError(f"{first}: is {what}, expected a folder")
    return folder


def make_folder(path: AnyPath) -> Path:
    """Make a folder, and those above it, if they are not there."""
    folder = check_folder(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_same(a: AnyPath, b: AnyPath) -> bool:
    """Whether two names are of one file or folder: by links of both kinds, or another spelling.

    >>> is_same(".", "../" + Path.cwd().name)
    True
    >>> is_same("nowhere", "nowhere")
    True
    """
    try:
        return Path(a).samefile(b)
    except OSError:  # one of them is not there
        return Path(a).resolve() == Path(b).resolve()


def is_inside(path: AnyPath, folder: AnyPath) -> bool:
    """Whether a path, which need not be there, leads into a folder, by links too.

    >>> is_inside("folder/in/../out.zarr", "folder"), is_inside("folder", "folder/out.zarr")
    (True, False)
    """
    return Path(folder).resolve() in Path(path).resolve().parents


def _reads(location: Path, target: Path, is_own: bool) -> bool:
    """Whether a file is a location that is read, or in it."""
    if not location.is_dir():
        return is_same(location, target)
    return not is_own and any(is_same(file, target) for file in _files_of(location))


def _files_of(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Files of a folder and of all in it, linked ones too; links that lead back are left."""
    real = folder.resolve()
    if real in above or not os.access(folder, os.R_OK | os.X_OK):
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files_of(entry, (*above, real))
        elif entry.is_file():
            yield entry


def _says(file: Path, own: Own) -> bool:
    """Whether a file says that it is of a kind; an empty one is of every kind."""
    if not isinstance(own, bytes):
        return not file.stat().st_size or own(file)
    with file.open("rb") as stream:
        first = stream.read(_LOOKED_AT)
        stream.seek(max(len(first), file.stat().st_size - _LOOKED_AT))
        last = stream.read(_LOOKED_AT)
    return not first or re.search(own, first + last) is not None


def lines_of(first: bytes, others: bytes | None = None) -> Callable[[Path], bool]:
    r"""By what text files of a kind are known: an expression for each of their lines.

    Parameters
    ----------
    first
        Of the first line.
    others
        Of all others; None: the same.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "squares.csv"
    >>> _ = file.write_text("n,square\n1,1\n2,4\n")
    >>> is_own = lines_of(rb"n,square", rb"[0-9]+,[0-9]+")
    >>> is_own(file)
    True
    >>> _ = file.write_text("n,square\n1,1\nDear diary\n")
    >>> is_own(file)
    False
    """
    patterns = re.compile(first), re.compile(first if others is None else others)

    def is_own(file: Path) -> bool:
        with file.open("rb") as stream:
            lines = iter(lambda: stream.readline(_LONGEST_LINE), b"")
            return all(
                patterns[number > 0].fullmatch(line.rstrip(b"\r\n")) is not None
                for number, line in enumerate(lines)
            )

    return is_own


def check_replaced(
    folder: AnyPath, reads: Iterable[AnyPath], record: str, names: Collection[str]
) -> None:
    """Refuse a folder that must not be replaced as a whole: it is read, or has files of others.

    Parameters
    ----------
    folder
        To be replaced; it need not be there.
    reads
        What the work reads: neither the folder nor anything in it.
    record
        A file that every folder of the kind to be written has in it.
    names
        The other files that it may have.
    """
    target = Path(folder).resolve()
    if any(is_same(target, read) or is_inside(read, target) for read in reads):
        raise ValueError(f"{folder}: is an input and would be overwritten")
    check_folder(folder)
    if not target.exists():
        return
    inner = sorted(target.iterdir())
    known = {record, *names} if (target / record).is_file() else ()
    other = next((file for file in inner if file.name not in known or not file.is_file()), None)
    if other is not None:
        raise FileExistsError(
            f"{folder}: has files that mkdesc did not write, for example {other.name}; move them, "
            "or choose another output"
        )
