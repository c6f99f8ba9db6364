"""What a descriptor is to the benchmarks."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.heads.head import Head

Describe = Callable[[NDArray[np.uint8]], ArrayLike]


@dataclass(frozen=True)
class PatchDescriptor:
    """A function from patches to descriptors, with a name.

    Attributes
    ----------
    name
        What it was asked for by.
    describe
        Takes uint8 patches (N, W, W) of any W, returns (N, D); binary ones as bits.
    identity
        What else the result depends on, such as the hash of a weights file: plain values.
    whole, columns
        If it is a part of another descriptor: that one, and where in it. The benchmarks then
        describe once and take the columns. (Parts are then not unit vectors. Their scale is one
        for all patches, which changes neither ranks nor whitening.)
    """

    name: str
    describe: Describe
    identity: dict[str, str] = field(default_factory=dict)
    whole: PatchDescriptor | None = None
    columns: tuple[int, int | None] = (0, None)


@dataclass(frozen=True)
class ProjectedDescriptor:
    """A descriptor with a whitening that was learned before: a model.

    The benchmarks describe its base once for all models that share it.

    Attributes
    ----------
    name
        What it was asked for by.
    describe
        As in :class:`PatchDescriptor`; both steps at once.
    base, head
        What is whitened, and how.
    identity
        As in :class:`PatchDescriptor`.
    """

    name: str
    describe: Describe
    base: PatchDescriptor
    head: Head
    identity: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LearnedDescriptor:
    """A descriptor with a whitening that each benchmark learns on its own training part.

    Attributes
    ----------
    name
        ``BASE+METHOD``.
    base
        What is whitened.
    method
        One of :data:`mkdesc.heads.whitening.METHODS`, or ``zca``.
    dims
        Dimensions to keep, at most; ``zca`` keeps them all.
    """

    name: str
    base: PatchDescriptor | CsvDescriptor
    method: str
    dims: int = 128

    @property
    def identity(self) -> dict[str, str]:
        """What the result depends on, besides the training data."""
        return {**self.base.identity, "whitening": f"{self.method}, {self.dims} dimensions"}


@dataclass(frozen=True)
class CsvDescriptor:
    """Descriptors of HPatches that somebody computed, in files of the official layout.

    Attributes
    ----------
    name
        What it was asked for by.
    folder
        Holds ``<sequence>/<image>.csv``.
    """

    name: str
    folder: Path

    @property
    def identity(self) -> dict[str, str]:
        """Nothing but the folder, which is an input of the benchmark."""
        return {}


Descriptor = PatchDescriptor | ProjectedDescriptor | LearnedDescriptor | CsvDescriptor


def base_of(descriptor: Descriptor) -> PatchDescriptor | CsvDescriptor:
    """What is kept on disk of a descriptor: the descriptor itself, or what it whitens."""
    if isinstance(descriptor, (ProjectedDescriptor, LearnedDescriptor)):
        return descriptor.base
    return descriptor


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, as hex digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_name(name: str) -> str:
    """A name for files and folders, different for different descriptors.

    Examples
    --------
    >>> file_name("opencv-sift")
    'opencv-sift'
    >>> file_name("models/mine.safetensors")
    'mine.safetensors-82d42e7a'
    """
    plain = re.sub(r"[^\w.+-]+", "_", re.sub(r"[^:]*[/\\]", "", name))
    return plain if plain == name else f"{plain}-{zlib.crc32(name.encode()):08x}"
