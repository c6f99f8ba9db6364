"""Indexes of photographs: find those that show the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.targets import is_same
from mkdesc._support.threads import one_thread_each
from mkdesc._support.work import in_order
from mkdesc._support.workfolder import same_input, same_size
from mkdesc.features.features import Features
from mkdesc.features.image_features import ImageFeatures, describe_image, load_features
from mkdesc.features.matches import Box, check_box
from mkdesc.images.listing import check_no_pipe
from mkdesc.images.reading import MAX_PIXELS, read_gray
from mkdesc.retrieval.agreement import Agreement, agree
from mkdesc.retrieval.collecting import STRONGEST
from mkdesc.retrieval.manifest import FEATURES, Manifest, read_manifest
from mkdesc.retrieval.search import Signatures
from mkdesc.retrieval.signature import make_signature


class Found(NamedTuple):
    """An image of an index, and why it was found.

    Attributes
    ----------
    name
        Of the image.
    similarity
        Of its signature to that of the query, 0 to 1.
    agreement
        The matches that agree on one geometry, and whether that is believed; None: they were
        not compared.
    """

    name: str
    similarity: float
    agreement: Agreement | None = None

    @property
    def inliers(self) -> int:
        """How many matches agree on one geometry."""
        return 0 if self.agreement is None else len(self.agreement.here)

    def __repr__(self) -> str:
        agree = "" if self.agreement is None else f", {self.inliers:,} matches agree"
        return f"<Found: {self.name}, similarity {self.similarity:.3f}{agree}>"


class Index:
    """Photographs that can be looked up by what they show.

    Parameters
    ----------
    path
        Folder of the index, as :func:`mkdesc.build_index` wrote it.

    Attributes
    ----------
    path
        The same.
    settings
        How its images were described.
    signatures
        One for each image.
    sources
        Photographs and folders that it was made of. Those beside the index, or below the folder
        that it is in, may be moved or copied with it.

    Examples
    --------
    >>> import tempfile, cv2
    >>> from mkdesc import build_index
    >>> folder = Path(tempfile.mkdtemp())
    >>> rng = np.random.default_rng(0)
    >>> for name in "abc":
    ...     noise = cv2.GaussianBlur(rng.integers(0, 256, (80, 90), np.uint8), (0, 0), 1.5)
    ...     _ = cv2.imwrite(str(folder / f"{name}.png"), cv2.normalize(noise, None, 0, 255, 32))
    >>> build_index(folder, folder / "index").added
    ['a.png', 'b.png', 'c.png']
    >>> index = Index(folder / "index")
    >>> len(index), list(index)
    (3, ['a.png', 'b.png', 'c.png'])
    >>> view = cv2.imread(str(folder / "b.png"))[10:, 5:]
    >>> [found.name for found in index.find(view, k=1)]
    ['b.png']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        manifest, self.signatures = _opened(self.path)
        self.settings = manifest.checked_settings(self.path)
        self.sources = manifest.places(self.path)

    @cached_property
    def _describer(self) -> Features:
        """What describes queries, made once."""
        return self.settings.make()

    @property
    def names(self) -> list[str]:
        """The images."""
        return self.signatures.names

    def __len__(self) -> int:
        return len(self.signatures)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"<Index: {len(self):,} photographs, {self.path}>"

    def features(self, name: str) -> ImageFeatures:
        """Keypoints and descriptors of an image of the index."""
        try:
            return load_features(self.path / FEATURES, name)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path}: no features of {name}; if the index is being updated, try again, "
                "otherwise run mkdesc index to repair it"
            ) from None

    def image_path(self, name: str, folder: str | os.PathLike[str] | None = None) -> Path:
        """The file of an image: in ``folder``, or where it was when it was indexed."""
        folders = self.sources if folder is None else [Path(folder)]
        for folder_or_file in folders:
            file = folder_or_file / name if folder_or_file.is_dir() else folder_or_file
            if file.is_file() and (folder_or_file.is_dir() or file.name == name):
                return file
        raise FileNotFoundError(f"{name}: not in {', '.join(map(str, folders))} any more")

    def files(self, folder: str | os.PathLike[str] | None = None) -> Iterator[Path]:
        """The files of all images that are still there; ``folder`` as for :meth:`image_path`."""
        for name in self.names:
            with suppress(FileNotFoundError):
                yield self.image_path(name, folder)

    def changed(
        self,
        read: Collection[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> list[str]:
        """Images whose files are gone, or are others than when they were indexed.

        Parameters
        ----------
        read
            Images whose content is read where the file system leaves doubt; None: all. Others
            count as changed if they have another size.
        folder
            As for :meth:`image_path`.
        """
        known = {
            name: source
            for segment in self.signatures.segments
            for name, source in segment.sources.items()
        }

        def is_as_it_was(name: str) -> bool:
            try:
                file = self.image_path(name, folder)
            except FileNotFoundError:
                return False
            if read is None or name in read:
                return same_input(known[name], file) is not None
            return same_size(known[name], file)

        return [name for name in self.names if not is_as_it_was(name)]

    def find(
        self,
        query: str | os.PathLike[str] | ArrayLike,
        k: int = 10,
        verify: int = 0,
        box: Box | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Found]:
        """The photographs that show what a query shows.

        Parameters
        ----------
        query
            An image file, or an image (H, W) or (H, W, 3). A file that is in the index itself is
            not among what is found.
        k
            How many at most.
        verify
            How many of the most similar are matched with the query, keypoint by keypoint: those
            whose matches agree on one geometry come first, the most matches first.
        box
            Left, top, right, bottom: look for this part of the query alone.
        max_pixels
            Larger files are refused.
        """
        check_integer("k", k)
        file = Path(query) if isinstance(query, (str, os.PathLike)) else None
        if file is not None:
            check_no_pipe(file)
            image: Any = read_gray(file, max_pixels, as_stored=self.settings.as_stored)
        else:
            image = np.asarray(query)
        mask = None if box is None else _mask(image.shape, box)
        own = describe_image(self._describer, image, mask)
        if not len(own.keypoints):
            part = "" if box is None else " in this part"
            raise ValueError(f"query: expected an image with keypoints, got none{part}")
        return self.find_features(own, k, verify, file)

    def find_features(
        self,
        query: ImageFeatures,
        k: int = 10,
        verify: int = 0,
        without: Path | None = None,
    ) -> list[Found]:
        """The same for features made with the settings of the index.

        Parameters
        ----------
        query
            Features of an image.
        k, verify
            As for :meth:`find`.
        without
            File of an image of the index that is left out.
        """
        check_integer("k", k)
        signature = make_signature(query.descriptors[:STRONGEST], self.signatures.words)
        most = max(k, verify)
        nearest = self.signatures.nearest(signature, most + (without is not None))
        found = [Found(*one) for one in nearest if not self._is_file(one.name, without)][:most]

        def checked(one: Found) -> Found:
            return one._replace(agreement=agree(query, self.features(one.name)))

        with one_thread_each():
            verified = list(in_order(checked, found[:verify]))
        verified.sort(key=lambda one: -one.inliers)  # stable: the rest stay by similarity
        return [*verified, *found[verify:]][:k]

    def _is_file(self, name: str, file: Path | None) -> bool:
        """Whether an image of the index is a file."""
        try:
            return file is not None and is_same(self.image_path(name), file)
        except FileNotFoundError:
            return False


def _opened(path: Path) -> tuple[Manifest, Signatures]:
    """An index, as it is now: what it was made of may be removed while it is read."""
    manifest = read_manifest(path)
    while True:
        try:
            return manifest, manifest.load_signatures(path)
        except ValueError:
            newer = read_manifest(path)
            if newer == manifest:
                raise
            manifest = newer


def _mask(shape: tuple[int, ...], box: Box) -> NDArray[np.uint8]:
    """255 inside a box of an image, 0 outside."""
    check_box(box, shape)
    left, top, right, bottom = box
    mask = np.zeros(shape[:2], np.uint8)
    mask[round(top) : round(bottom), round(left) : round(right)] = 255
    return mask
