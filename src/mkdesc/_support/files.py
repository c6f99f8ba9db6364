"""Files and folders that are either whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

__all__ = ["atomic_folder", "atomic_path", "read_safetensors"]


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path to write to, renamed to ``path`` if all goes well and removed if not.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with atomic_path(target) as partial:
    ...     _ = partial.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder, not a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)  # mkstemp makes it private
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder to fill, which takes the place of ``path`` if all goes well.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp()) / "letters"
    >>> with atomic_folder(target) as partial:
    ...     _ = (partial / "a.txt").write_text("a")
    >>> [file.name for file in target.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield partial
        partial.chmod(0o755)  # mkdtemp makes it private
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


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
