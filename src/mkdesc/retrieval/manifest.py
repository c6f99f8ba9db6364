"""The files of an index: what it is made of, written last so that it is always whole.

An index is a folder of

* ``index.json``: settings, the file of the words, and the names of the segments;
* ``words-*.npy``: the visual words;
* ``segment-*/``: signatures (:mod:`mkdesc.retrieval.segments`);
* ``features/``: keypoints and descriptors, a file per image.

Files are never changed: new ones are written beside them, ``index.json`` is replaced, and what it
does not name any more is removed at last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_json
from mkdesc._support.npy import BROKEN, array_of
from mkdesc._support.text import shorten
from mkdesc._support.workfolder import check_settings
from mkdesc.features.settings import Settings
from mkdesc.retrieval.search import Signatures
from mkdesc.retrieval.segments import FILES, Segment

#: Names inside the folder of an index.
INDEX, FEATURES = "index.json", "features"
#: Numbers of words, which are means of unit vectors or of bytes, are never larger.
LARGEST = 255.0
#: Names of what a manifest names, and of what a killed process leaves half written.
_OWN = re.compile(r"segment-[0-9]{6,}|words-[0-9]{6,}\.npy")
_HALF = re.compile(rf"\.({_OWN.pattern}|index\.json)\.[0-9a-f]{{8}}\.(partial|new)")


def check_outside(output: Path) -> None:
    """Refuse an output, which need not be there, in the folder of an index, by links too.

    >>> check_outside(Path("pairs.txt"))
    """
    for folder in output.resolve().parents:
        if (folder / INDEX).is_file() and (folder / FEATURES).is_dir():
            raise ValueError(f"{output}: lies in the index {folder}; choose another output")


@dataclass(frozen=True)
class Manifest:
    """What an index is made of.

    Attributes
    ----------
    settings
        How its images are described, as they were asked for.
    made_of
        What these came to: :meth:`mkdesc.features.Settings.to_json`.
    sources
        Where the images are: files and folders, as :func:`recorded` has them.
    words
        File of the visual words.
    learned_of
        How many images these were learned of.
    segments
        Folders of signatures.
    next
        A number that no segment or file of words has had yet.
    """

    settings: dict[str, Any]
    made_of: dict[str, Any]
    sources: list[str]
    words: str
    learned_of: int
    segments: list[str] = field(default_factory=list)
    next: int = 0

    def places(self, folder: Path) -> list[Path]:
        """Where the images are, for the index in a folder."""
        base = folder.resolve()
        try:
            return [Path(os.path.normpath(base / source)) for source in self.sources]
        except TypeError:
            raise _damaged(folder / INDEX) from None

    def checked_settings(self, folder: Path) -> Settings:
        """How images are described, if the same model is still there."""
        try:
            settings = Settings(**self.settings)
            made_of = json.loads(settings.to_json())
        except TypeError:
            raise _damaged(folder / INDEX) from None
        except (ValueError, OSError) as error:
            raise ValueError(f"{folder / INDEX}: {shorten(str(error), 500)}") from None
        if isinstance(self.made_of, dict):  # an older one can be searched, but not added to
            made_of["mkdesc"] = self.made_of.get("mkdesc")
        check_settings(folder, self.made_of, made_of)
        return settings

    def load_signatures(self, folder: Path) -> Signatures:
        """All signatures, mapped; ValueError that names the file if one is damaged."""
        words = self.load_words(folder)
        segments = [Segment(folder / name).checked() for name in self.segments]
        if any(len(segment.starts) != len(words) + 1 for segment in segments):
            raise ValueError(f"{folder / self.words}: does not match the segments")
        return Signatures(words, segments)

    def load_words(self, folder: Path) -> NDArray[np.float32]:
        """The visual words (K, D)."""
        try:
            words = array_of((folder / self.words).read_bytes())
            if words.ndim != 2 or words.dtype != np.float32 or not (abs(words) <= LARGEST).all():
                raise ValueError
        except BROKEN:
            what = f"{folder / self.words}: missing or damaged"
            raise ValueError(f"{what}; run mkdesc index to repair it") from None
        return words


def read_manifest(folder: Path) -> Manifest:
    """What an index is made of; ValueError if the folder is not an index."""
    path = folder / INDEX
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder}: not an index; expected a folder that mkdesc index made"
        )
    try:
        found = read_json(path)
        known = {key.name for key in fields(Manifest)}
        manifest = Manifest(**{key: found[key] for key in known})
    except (ValueError, TypeError, KeyError):
        raise _damaged(path) from None
    named = [manifest.words, *manifest.segments] if isinstance(manifest.segments, list) else [None]
    if not all(isinstance(name, str) and _OWN.fullmatch(name) for name in named):
        raise _damaged(path)
    return manifest


def recorded(folder: Path, sources: Iterable[str | Path]) -> list[str]:
    """Files and folders of images as an index in ``folder`` keeps them.

    What lies beside the index or below it, by the way from there: it may be moved or copied with
    the index. All else by its absolute path.

    >>> recorded(Path("/home/index"), ["/home/photos", "/disk/photos"])
    ['../photos', '/disk/photos']
    """
    base = folder.resolve()
    found = [Path(source).resolve() for source in sources]
    return [
        Path(os.path.relpath(one, base)).as_posix()
        if one.is_relative_to(base.parent)
        else str(one)
        for one in found
    ]


def _damaged(path: Path) -> ValueError:
    return ValueError(f"{path}: damaged, or not an index of mkdesc")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make this the state of an index."""
    with atomic_path(folder / INDEX) as partial:
        partial.write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")


def is_part(name: str) -> bool:
    """Whether a file or folder goes by a name that only words and segments have.

    >>> is_part("segment-000001"), is_part("segment-holiday")
    (True, False)
    """
    return (_OWN.fullmatch(name) or _HALF.fullmatch(name)) is not None


def remove_others(folder: Path, manifest: Manifest) -> None:
    """Remove the words and segments that are no part of an index, or not any more.

    What somebody else put into a segment stays, and so do a file that goes by the name of a
    segment and a folder that goes by that of words.
    """
    kept = {manifest.words, *manifest.segments}
    for path in folder.iterdir():
        if not is_part(path.name) or path.name in kept:
            continue
        if _HALF.fullmatch(path.name) and path.is_dir():
            shutil.rmtree(path)
        elif path.is_dir() and not path.is_symlink():
            for name in FILES:
                (path / name).unlink(missing_ok=True)
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix == ".npy" or _HALF.fullmatch(path.name):
            path.unlink()
