"""Indexes of photographs: find those that show the same."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_integer
from mkdesc.features.features import Features
from mkdesc.features.folder import ImageFeatures, describe_image, load_features
from mkdesc.images.reading import MAX_PIXELS, read_gray
from mkdesc.retrieval.agreement import Agreement, agree
from mkdesc.retrieval.manifest import FEATURES, read_manifest
from mkdesc.retrieval.signature import make_signature

#: Left, top, right and bottom of a part of an image, in pixels.
Box = tuple[float, float, float, float]


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
        Photographs and folders that it was made of.

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
    >>> [found.name for found in index.find(folder / "b.png", k=1)]
    ['b.png']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        manifest = read_manifest(self.path)
        self.settings = manifest.checked_settings(self.path)
        self.signatures = manifest.load_signatures(self.path)
        self.sources = [Path(source) for source in manifest.sources]

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

    def features(self, name: str) -> ImageFeatures:
        """Keypoints and descriptors of an image of the index."""
        return load_features(self.path / FEATURES, name)

    def image_path(self, name: str, folder: str | os.PathLike[str] | None = None) -> Path:
        """The file of an image: in ``folder``, or where it was when it was indexed."""
        folders = self.sources if folder is None else [Path(folder)]
        for folder_or_file in folders:
            file = folder_or_file / name if folder_or_file.is_dir() else folder_or_file
            if file.is_file() and (folder_or_file.is_dir() or file.name == name):
                return file
        raise FileNotFoundError(f"{name}: not in {', '.join(map(str, folders))} any more")

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
            An image file, or an image (H, W) or (H, W, 3).
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
        if isinstance(query, (str, os.PathLike)):
            image: Any = read_gray(Path(query), max_pixels, as_stored=self.settings.as_stored)
        else:
            image = np.asarray(query)
        mask = None if box is None else _mask(image.shape, box)
        own = describe_image(self._describer, image, mask)
        if not len(own.keypoints):
            part = "" if box is None else " in this part"
            raise ValueError(f"query: expected an image with keypoints, got none{part}")
        return self.find_features(own, k, verify)

    def find_features(self, query: ImageFeatures, k: int = 10, verify: int = 0) -> list[Found]:
        """The same for features made with the settings of the index."""
        check_integer("k", k)
        signature = make_signature(query.descriptors, self.signatures.words)
        found = [Found(*one) for one in self.signatures.nearest(signature, max(k, verify))]
        checked = [
            one._replace(agreement=agree(query, self.features(one.name))) for one in found[:verify]
        ]
        checked.sort(key=lambda one: -one.inliers)  # stable: the rest stay by similarity
        return [*checked, *found[verify:]][:k]


def _mask(shape: tuple[int, ...], box: Box) -> NDArray[np.uint8]:
    """255 inside a box of an image, 0 outside."""
    left, top, right, bottom = box
    if not (0 <= left < right <= shape[1] and 0 <= top < bottom <= shape[0]):
        raise ValueError(
            f"box: expected left < right <= {shape[1]} and top < bottom <= {shape[0]}, all >= 0, "
            f"got {', '.join(format(side, 'g') for side in box)}"
        )
    mask = np.zeros(shape[:2], np.uint8)
    mask[round(top) : round(bottom), round(left) : round(right)] = 255
    return mask
