"""Files and folders that are either whole or not there."""

from __future__ import annotations

import ctypes
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mkdesc._support.targets import check_target, followed, make_folder
from mkdesc._support.text import shorten

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


class Damaged(ValueError):
    """A file that was whole once: what is in it can be made again."""


#: What temporary files and folders end in; they begin with a dot, and readers pass over such.
_PARTIAL = ".partial"
#: What they end in until they are held.
_UNHELD = ".new"
#: Bytes of a name that theirs begin with: of 255 at most, the rest is for endings, SQLite's too.
_BEGINNING = 200


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path to write to, renamed to ``path`` if all goes well and removed if not.

    A link is followed. What killed processes have left of earlier tries is removed.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with atomic_path(target) as partial:
    ...     _ = partial.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    target = followed(path)
    check_target(target)
    _remove_orphans(target)
    partial, held = _held_partial(target, _new_file)
    mode = partial.stat().st_mode & 0o777
    try:
        yield partial
        partial.chmod(mode)  # some writers replace the file by one of their own
        partial.replace(target)
    except BaseException as error:
        _remove_file(partial)
        if isinstance(error, OSError):
            raise _named(error, target) from None
        raise
    finally:
        if held is not None:
            os.close(held)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], new: bool = False) -> Iterator[Path]:
    """A temporary folder to fill, which takes the place of ``path`` if all goes well.

    What was there before stays until then; with ``new``, for good: nothing must be there. What
    killed processes have left is removed.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "letters"
    >>> with atomic_folder(target) as partial:
    ...     _ = (partial / "a.txt").write_text("a")
    >>> [file.name for file in target.iterdir()]
    ['a.txt']
    """
    target = followed(path)
    _remove_orphans(target)
    partial, held = _held_partial(target, _new_folder)
    try:
        yield partial
        if target.exists():
            if new:
                raise FileExistsError(f"{target}: was made by somebody else meanwhile")
            _exchange(partial, target)
            shutil.rmtree(partial)
        else:
            partial.rename(target)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise _named(error, target) from None
        raise
    finally:
        if held is not None:
            os.close(held)


@contextmanager
def own_folder(
    path: str | os.PathLike[str],
    waiting: Callable[[], object] = lambda: None,
    keep: bool = False,
) -> Iterator[Path]:
    """A folder to work in, made if need be, in which no other process works at the same time.

    Parameters
    ----------
    path
        Of the folder. It is removed in the end if there is nothing in it, unless ``keep``.
    waiting
        Called if another process has it, before waiting for that one to be done; it may raise.
    keep
        Whether the folder stays.

    Examples
    --------
    >>> import tempfile
    >>> with own_folder(Path(tempfile.mkdtemp()) / "parts") as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    folder = Path(path)
    held = _held_folder(folder, waiting)
    try:
        yield folder
    finally:
        if not keep:
            with suppress(OSError):  # not empty, or gone
                folder.rmdir()
        if held is not None:
            os.close(held)


@contextmanager
def only_here(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to work in as by :func:`own_folder`; ValueError if another process has it.

    An empty folder that was there stays.
    """

    def refuse() -> None:
        raise ValueError(f"{path}: another process is writing here; try again later")

    empty = Path(path).is_dir() and not any(Path(path).iterdir())
    with own_folder(path, refuse, keep=empty) as folder:
        yield folder


def _named(error: OSError, target: Path) -> OSError:
    """An error that says for what there is no room: numpy, h5py and Zarr do not say it."""
    if error.filename is None and error.errno:
        error.filename = str(target)
    elif type(error) is OSError and error.errno is None and str(target) not in str(error):
        return _no_room(target, error)
    return error


def _no_room(path: str | os.PathLike[str], error: Exception) -> OSError:
    reason = shorten(" ".join(str(error).split()), 200)
    return OSError(f"{path}: cannot be written, is there room on the disk? ({reason})")


@contextmanager
def saying_what_failed(path: str | os.PathLike[str], *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors that other libraries have for a disk that is full into an OSError.

    Parameters
    ----------
    path
        What is being written.
    errors
        Of these kinds.
    """
    try:
        yield
    except errors as error:
        raise _no_room(path, error) from None


def _held_folder(folder: Path, waiting: Callable[[], object]) -> int | None:
    """A folder that is locked, as an open descriptor; None where there are no such locks."""
    while True:
        make_folder(folder)
        if fcntl is None:
            return None
        try:
            held = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # whoever had it has just removed it
            continue
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(held, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            return held
        except BaseException:  # nobody wants to wait
            os.close(held)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), folder.stat()):
                return held
        os.close(held)


def _partial(target: Path) -> Path:
    """A new name beside the target."""
    return target.parent / f".{_beginning(target)}.{secrets.token_hex(4)}{_PARTIAL}"


def _beginning(target: Path) -> str:
    """The name of a file or folder, or as much of it as leaves room for more."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= _BEGINNING else name[:_BEGINNING].decode(errors="ignore")


def _held_partial(target: Path, make: Callable[[Path], int | None]) -> tuple[Path, int | None]:
    """A temporary file or folder beside the target, and its descriptor, by which it is held."""
    while True:
        partial = _partial(target)
        unheld = partial.with_suffix(_UNHELD)
        held = make(unheld)
        try:
            unheld.rename(partial)
            return partial, held
        except FileNotFoundError:  # another process took it for an orphan before it was held
            if held is not None:
                os.close(held)


def _new_file(path: Path) -> int | None:
    held = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)  # as the umask has it
    if fcntl is None:  # where nothing is locked, an open file cannot be renamed either
        os.close(held)
        return None
    _hold(held)
    return held


def _new_folder(path: Path) -> int | None:
    path.mkdir()
    if fcntl is None:
        return None
    try:
        held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # as above
        return None
    _hold(held)
    return held


def _remove_file(path: Path) -> None:
    """Remove a file and what databases write beside it: journals."""
    for file in path.parent.iterdir():
        if file.name == path.name or file.name.startswith(f"{path.name}-"):
            file.unlink(missing_ok=True)


def _hold(descriptor: int) -> bool:
    """Mark a file or folder as being written, for as long as this process lives and has it open.

    Whether that was possible: False means that another process holds it. Where there are no such
    locks (some file systems, Windows) nothing is ever taken for an orphan.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@lru_cache(maxsize=256)
def _partials(folder: Path) -> tuple[str, ...]:
    """Names of temporary files that were in a folder when this process first wrote there.

    (Listing a folder for each of its files would take a time that grows with their square.)
    """
    try:
        return tuple(
            entry.name for entry in os.scandir(folder) if entry.name.endswith((_PARTIAL, _UNHELD))
        )
    except OSError:
        return ()


def _remove_orphans(target: Path) -> None:
    """Remove the temporary files and folders of processes that were killed."""
    endings = f"({re.escape(_PARTIAL)}|{re.escape(_UNHELD)})"
    for name in _partials(target.parent.absolute()):
        if not re.fullmatch(rf"\.{re.escape(_beginning(target))}\.[0-9a-f]{{8}}{endings}", name):
            continue
        orphan = target.parent / name
        try:
            descriptor = os.open(orphan, os.O_RDONLY)
        except OSError:  # gone by now
            continue
        try:
            if _hold(descriptor):
                if orphan.is_dir():
                    shutil.rmtree(orphan, ignore_errors=True)
                else:
                    _remove_file(orphan)
        except OSError:  # not ours to remove
            pass
        finally:
            os.close(descriptor)


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders: at once where the system can, else by three renames."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        rename = None
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if rename is not None and not rename(here, os.fsencode(new), here, os.fsencode(old), exchange):
        return
    away = _partial(old)
    old.rename(away)
    new.rename(old)
    away.rename(new)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, without the mark that Windows begins some with; ValueError for
    other bytes.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8 ({error.reason})") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds; ValueError of one line if it holds none."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    except RecursionError:
        raise ValueError(f"{path}: JSON nested too deeply") from None


#: How pickles and torch's zipped pickles begin.
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK\x03\x04")


def read_safetensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Tensors and metadata of a safetensors file; ValueError for anything else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except AttributeError as error:  # safetensors knows types that numpy does not, such as float8
        raise ValueError(f"{path}: has tensors of a type that numpy lacks ({error})") from None
    except (SafetensorError, TypeError, ValueError) as error:
        with Path(path).open("rb") as raw:
            if raw.read(4).startswith(_PICKLES):
                raise ValueError(
                    f"{path}: is a pickle (or a zip of one), which may run code when loaded; "
                    "refused. Convert it where it comes from with safetensors.numpy.save_file"
                ) from None
        raise ValueError(f"{path}: not a safetensors file ({error})") from None
