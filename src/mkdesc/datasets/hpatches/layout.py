"""The HPatches layout: a folder per sequence, in it 16 strips of patches.

Row k of the strips ``ref``, ``e1`` .. ``e5`` (easy), ``h1`` .. ``h5`` (hard) and ``t1`` .. ``t5``
(tough) shows the same surface. A strip is a gray PNG, one patch wide (65 px in the original) and
N patches high. Sequences ``i_*`` change in illumination, ``v_*`` in viewpoint.

The lists of patches to compare are in :mod:`mkdesc.datasets.hpatches.task_lists`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_choice
from mkdesc._support.files import read_json
from mkdesc._support.text import shorten
from mkdesc.images.reading import read_gray

#: Levels of noise, and the letter that the names of their strips begin with.
NOISES = {"easy": "e", "hard": "h", "tough": "t"}
#: Names of the strips of a sequence.
IMAGES = ("ref", *(f"{letter}{k}" for letter in NOISES.values() for k in range(1, 6)))


def image_name(noise: str, k: int) -> str:
    """The strip of image ``k`` at a level of noise; image 0 is the reference at every level.

    Examples
    --------
    >>> image_name("hard", 3), image_name("hard", 0)
    ('h3', 'ref')
    """
    return f"{NOISES[noise]}{k}" if k else "ref"


def sequence_type(name: str) -> str:
    """What changes in a sequence: ``illumination``, ``viewpoint``, or ``other`` for odd names.

    Examples
    --------
    >>> sequence_type("v_graffiti")
    'viewpoint'
    """
    return {"i_": "illumination", "v_": "viewpoint"}.get(name[:2], "other")


@dataclass(frozen=True)
class Split:
    """Names of the sequences to test on and, where there are such, to train on."""

    name: str
    test: tuple[str, ...]
    train: tuple[str, ...] = ()


def read_splits(path: str | Path) -> dict[str, Split]:
    """Read ``splits.json``: ``{name: {"test": [...], "train": [...]}}``.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "splits.json"
    >>> _ = file.write_text('{"a": {"name": "a", "test": ["v_wall"], "train": ["i_dome"]}}')
    >>> read_splits(file)["a"].train
    ('i_dome',)
    """
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    content = read_json(path)
    splits = {}
    for name, entry in content.items() if isinstance(content, dict) else ():
        lists = (
            [entry.get(key, []) for key in ("test", "train")] if isinstance(entry, dict) else []
        )
        if not lists or not lists[0] or not all(_are_names(names) for names in lists):
            raise ValueError(f"{path}: split {shorten(name)!r} needs a list of names under 'test'")
        splits[name] = Split(name, tuple(lists[0]), tuple(lists[1]))
    if not splits:
        raise ValueError(f"{path}: expected an object with one entry per split")
    return splits


def _are_names(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


class Sequence:
    """One sequence: 16 strips of the same patches.

    Parameters
    ----------
    folder
        The folder with ``ref.png``, ``e1.png``, ... A missing strip, one whose height is not a
        multiple of its width, and strips of different sizes are errors when their sizes are
        first asked for (only the headers are read for that).
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.name = self.folder.name

    def __repr__(self) -> str:
        return f"Sequence({str(self.folder)!r})"

    def file(self, image: str) -> Path:
        """The strip of an image."""
        check_choice("image", image, IMAGES)
        return self.folder / f"{image}.png"

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of patches, and their side in pixels; every strip is checked."""
        shapes = {image: _strip_shape(self.file(image)) for image in IMAGES}
        for image, shape in shapes.items():
            if shape != shapes["ref"]:
                raise ValueError(
                    f"{self.file(image)}: {shape[0]} patches of {shape[1]} px, but ref.png has "
                    f"{shapes['ref'][0]} of {shapes['ref'][1]} px"
                )
        return shapes["ref"]

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, image: str) -> NDArray[np.uint8]:
        """The patches of one image, shape (N, W, W)."""
        count, size = self.shape
        strip = read_gray(self.file(image))
        if strip.shape != (count * size, size):
            raise ValueError(
                f"{self.file(image)}: expected {count * size} x {size} px, got {strip.shape}"
            )
        return strip.reshape(count, size, size)

    def images(self) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Go through the images: name and patches (N, W, W), one strip in memory at a time."""
        for image in IMAGES:
            yield image, self.read(image)


def _strip_shape(file: Path) -> tuple[int, int]:
    """Number and side of the patches of a strip, from the header of the PNG file."""
    if not file.is_file():
        raise ValueError(f"{file}: this strip is missing")
    with file.open("rb") as stream:
        header = stream.read(24)
    if header[:8] != b"\x89PNG\r\n\x1a\n" or len(header) < 24:
        raise ValueError(f"{file}: not a PNG file")
    width, height = struct.unpack(">II", header[16:24])
    if width == 0 or height == 0 or height % width:
        raise ValueError(
            f"{file}: the height of a strip must be a multiple of its width ({width}), "
            f"got {height}"
        )
    return height // width, width


class HPatches:
    """A folder of sequences in the HPatches layout; strips are read when they are asked for.

    Parameters
    ----------
    root
        Folder of sequences; every folder in it with a ``ref.png`` is one.

    Examples
    --------
    >>> import tempfile
    >>> from mkdesc.images.writing import encode_image
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "v_flat").mkdir()
    >>> strip = encode_image(".png", np.zeros((3 * 65, 65), np.uint8))
    >>> for image in IMAGES:
    ...     _ = (root / "v_flat" / f"{image}.png").write_bytes(strip)
    >>> patches = HPatches(root)
    >>> patches.names, len(patches["v_flat"])
    (('v_flat',), 3)
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise ValueError(f"{self.root}: not a folder")
        folders = (file.parent.name for file in self.root.glob("*/ref.png"))
        found = sorted(name for name in folders if not name.startswith("."))  # being made
        if not found:
            raise ValueError(f"{self.root}: no sequences (folders with ref.png) in this folder")
        self.names = tuple(found)
        self._sequences = {name: Sequence(self.root / name) for name in found}

    def __repr__(self) -> str:
        return f"HPatches({str(self.root)!r})"

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Sequence:
        if name not in self._sequences:
            raise ValueError(f"{self.root}: no sequence {name!r} in this folder")
        return self._sequences[name]

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._sequences.values())

    def counts(self, names: tuple[str, ...] | None = None) -> dict[str, int]:
        """Number of patches by sequence; every strip of the sequences is checked."""
        return {name: len(self[name]) for name in (self.names if names is None else names)}

    def split(self, name: str = "full", splits: str | Path | None = None) -> Split:
        """The sequences of a split.

        Parameters
        ----------
        name
            ``full``: all sequences found here; ``illum``, ``view``: those named ``i_*``, ``v_*``;
            ``a``, ``b``, ``c`` or any other: as ``splits.json`` says.
        splits
            Path of ``splits.json``, by default the one in the root. All sequences of a split that
            was read from it must be here.
        """
        file = self.root / "splits.json" if splits is None else Path(splits)
        if splits is None and (name in ("full", "illum", "view") or not file.exists()):
            prefix = {"full": "", "illum": "i_", "view": "v_"}.get(name)
            if prefix is None:
                raise ValueError(f"split {name!r}: expected full, illum, view, or a splits.json")
            test = tuple(found for found in self.names if found.startswith(prefix))
            if not test:
                raise ValueError(f"{self.root}: no sequences named {prefix}* for split {name!r}")
            return Split(name, test)
        known = read_splits(file)
        if name not in known:
            there = shorten(", ".join(sorted(known)))
            raise ValueError(f"{file}: no split {name!r}; there are {there}")
        split = known[name]
        missing = sorted({*split.test, *split.train} - {*self.names})
        if missing:
            raise ValueError(
                f"{self.root}: {len(missing)} sequences of split {name!r} are missing, "
                f"among them {shorten(', '.join(missing[:3]))}"
            )
        return split
