"""Two photographs laid over each other: the second as the first one sees it, and what differs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.arrays import unmasked
from mkdesc._support.check import check_choice
from mkdesc._support.files import atomic_path
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import AnyPath, check_target, is_same
from mkdesc.features.features import Features
from mkdesc.features.image_pair import LIMIT, Image, match_images
from mkdesc.features.matches import ImageMatches
from mkdesc.features.warping import WAYS
from mkdesc.images.pixels import Pixels, as_rgb, encode_png, read_pixels
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.images.writing import OWN_PICTURE, PICTURES

#: Pixels between places that are tried, unless told otherwise.
GRID = 8

#: Longest side of an animation, and milliseconds that each of its pictures is shown.
LONGEST, SHOWN = 1200, 700
#: What is added to a picture where only the other one is shown, after it is made paler.
_PALER, _ADDED = 0.4, 130
#: By how much the contrast of one photograph may be changed to that of the other.
MAX_GAIN = 4.0
#: Differences are shown so many times as large.
AMPLIFIED = 2.0

Floats = NDArray[np.float32]


def check_outputs(
    output: AnyPath | None,
    blink: AnyPath | None = None,
    difference: AnyPath | None = None,
    reads: Iterable[AnyPath | None] = (),
    overwrite: bool = False,
) -> None:
    """Refuse files that an alignment cannot or must not be written to, before the work is done.

    Examples
    --------
    >>> check_outputs("aligned.gif")
    Traceback (most recent call last):
    ValueError: aligned.gif: expected a name ending in .png, .jpg, .jpeg
    """
    kinds = ((output, PICTURES), (blink, (".gif",)), (difference, (".png",)))
    named = [(Path(path), endings) for path, endings in kinds if path is not None]
    sources = tuple(reads)
    for number, (path, endings) in enumerate(named):
        if path.suffix.lower() not in endings:
            raise ValueError(f"{path}: expected a name ending in {', '.join(endings)}")
        check_target(path, sources, OWN_PICTURE, overwrite)
        if any(is_same(path, other) for other, _ in named[:number]):
            raise ValueError(f"{path}: is named for two outputs; choose another name")


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two photographs, the second laid over the first.

    Attributes
    ----------
    matches
        What both have in common, and the verdict.
    first
        The first photograph, (H, W) or (H, W, C), as it came: colour, type and all.
    image
        The second one as the first sees it, (H, W) or (H, W, C), of its own type; 0 where it does
        not show what the first one shows, and everywhere if nothing is verified.
    seen
        (H, W) bool: where it does.
    by
        ``"homography"`` or ``"flow"``; None: nothing is verified.
    profile
        The ICC profile of the second photograph; None: it has none.
    """

    matches: ImageMatches
    first: NDArray[Any] = field(repr=False)
    image: NDArray[Any] = field(repr=False)
    seen: NDArray[np.bool_] = field(repr=False)
    by: str | None
    profile: bytes | None = field(default=None, repr=False)

    def summary(self) -> str:
        """In one line."""
        if self.by is None:
            return f"not aligned: {self.matches.summary()}"
        return f"aligned by {self.by}, {self.seen.mean():.0%} seen: {self.matches.summary()}"

    def save(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write the second photograph as the first sees it.

        Parameters
        ----------
        path
            ``.png``: with all bits, and transparent where it was not seen. ``.jpg``: white there,
            and 8 bits.
        overwrite
            Whether to replace a file that mkdesc did not write; never one of the photographs.
        """
        self._check(overwrite, output=path)
        self._write(Path(path), self._with_opacity(), self.profile)

    def save_blink(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write an animation (``.gif``) of both photographs in turns.

        What the second one does not show is that of the first, paler. It is at most 1,200 pixels
        wide and high.
        """
        from PIL import Image

        self._check(overwrite, blink=path)
        before, after = as_rgb(self.first), as_rgb(self.image)
        paler = (before * _PALER + _ADDED).astype(np.uint8)
        after = np.where(self.seen[..., None], after, paler)
        frames = [Image.fromarray(one) for one in (before, after)]
        for frame in frames:
            frame.thumbnail((LONGEST, LONGEST), reducing_gap=3)
        both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
        for number, frame in enumerate(frames):
            both.paste(frame, (0, number * frame.height))
        palette = both.quantize(256, Image.Quantize.MEDIANCUT)  # one, or colours would flicker
        first, second = (frame.quantize(palette=palette) for frame in frames)
        options = {"loop": 0, "duration": SHOWN, "comment": OWN_PICTURE, "optimize": False}
        file = BytesIO()
        first.save(file, "GIF", save_all=True, append_images=[second], **options)
        with atomic_path(path) as partial:
            partial.write_bytes(file.getvalue())

    def difference(self) -> NDArray[np.uint8]:
        """How much both photographs differ (H, W): black: not at all.

        Brightness and contrast of each colour are adapted first, so that half of the values agree.
        A pixel does not differ if a neighbour in the second photograph has its value: edges that
        lie half a pixel off do not show. Of three colours the one that differs most counts.
        """
        from scipy.ndimage import maximum_filter, minimum_filter

        total = np.zeros(self.seen.shape, np.float32)
        if not self.seen.any():
            return total.astype(np.uint8)
        both = self.first, self.image
        layers = (np.moveaxis(as_rgb(one).astype(np.float32), -1, 0) for one in both)
        for one, two in zip(*layers, strict=True):
            two = _adapted(two, one, self.seen)
            highest = maximum_filter(np.where(self.seen, two, -np.inf), 3)
            lowest = minimum_filter(np.where(self.seen, two, np.inf), 3)
            np.maximum(total, np.maximum(one - highest, lowest - one), out=total)
        total[~self.seen] = 0
        return np.asarray((AMPLIFIED * total).clip(0, 255), np.uint8)

    def save_difference(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write :meth:`difference` as a picture (``.png``), transparent where nothing was seen."""
        self._check(overwrite, difference=path)
        opacity = np.where(self.seen, np.uint8(255), np.uint8(0))
        self._write(Path(path), np.stack([self.difference(), opacity], axis=-1), None)

    def _check(
        self,
        overwrite: bool,
        output: AnyPath | None = None,
        blink: AnyPath | None = None,
        difference: AnyPath | None = None,
    ) -> None:
        check_outputs(output, blink, difference, self.matches.files, overwrite)
        if self.by is None:
            raise ValueError(self.summary())

    def _with_opacity(self) -> NDArray[Any]:
        """The picture with its last channel for opacity; floats with 16 bits."""
        values = self.image
        if values.dtype.kind == "f":
            values = np.rint(values.clip(0, 1) * 0xFFFF).astype(np.uint16)
        if values.ndim == 2:
            values = values[..., None]
        full = np.iinfo(values.dtype).max
        if values.shape[2] in (1, 3):
            opacity = np.full((*self.seen.shape, 1), full, values.dtype)
            values = np.concatenate([values, opacity], axis=2)
        return np.where(self.seen[..., None], values, np.zeros(1, values.dtype))

    def _write(self, path: Path, values: NDArray[Any], profile: bytes | None) -> None:
        """A PNG file; or a JPEG file, on white."""
        if path.suffix.lower() == ".png":
            data = encode_png(values, profile)
        else:
            from PIL import Image

            opacity = values[..., -1:] / np.iinfo(values.dtype).max
            white = 255 - opacity * (255.0 - as_rgb(values))
            more = {} if profile is None else {"icc_profile": profile}
            file = BytesIO()
            picture = Image.fromarray(np.rint(white).astype(np.uint8))
            picture.save(file, "JPEG", quality=95, comment=OWN_PICTURE, **more)
            data = file.getvalue()
        with atomic_path(path) as partial:
            partial.write_bytes(data)


def align(
    a: Image,
    b: Image,
    features: Features | None = None,
    *,
    by: str = "auto",
    grid: int = GRID,
    wide: bool = False,
    limit: float = LIMIT,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = no_progress,
) -> Alignment:
    """Lay the second photograph over the first: the second as the first one sees it.

    Parameters
    ----------
    a, b
        As for :func:`mkdesc.match_images`. Colour, transparency and 16 bits of the second one
        are kept.
    features
        What detects and describes; None: ``Features(2000)``.
    by
        ``"homography"``: a flat scene, or a camera that only turned; covers everything.
        ``"flow"``: by a field that follows the scene's depth and what bends or moves in it; it has
        holes where there is no texture, and where only one photograph shows something.
        ``"auto"``: a homography if it explains matches nearly everywhere to a pixel, otherwise the
        field.
    grid
        Pixels between places of the first photograph that are matched, where possible.
    wide, limit, max_pixels, progress
        As for :func:`mkdesc.match_images`.

    Returns
    -------
    Alignment
        With nothing seen unless it is verified that the two show the same scene.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (100, 120, 3), np.uint8)
    >>> found = align(image, image[10:, 20:])
    >>> found.by, found.image.shape, found.seen[:, :18].any(), found.seen[12:, 22:].all()
    ('homography', (100, 120, 3), np.False_, np.True_)
    """
    check_choice("by", by, WAYS)
    geometry = "homography" if by == "homography" else "auto"
    found = match_images(
        a,
        b,
        features,
        geometry=geometry,
        wide=wide,
        limit=limit,
        grid=None if by == "homography" else grid,
        max_pixels=max_pixels,
        progress=progress,
    )
    first, second = _pixels(a), _pixels(b)
    if not found.verified:
        shape = found.images[0].shape
        nothing = np.zeros((*shape, *second.values.shape[2:]), second.values.dtype)
        return Alignment(found, first.values, nothing, np.zeros(shape, np.bool_), None)
    progress("warping", 0, 0)
    image, seen, by = found.warp(second.values, by)
    return Alignment(found, first.values, image, seen, by, second.profile)


def _pixels(image: Image) -> Pixels:
    if isinstance(image, (str, os.PathLike)):
        return read_pixels(Path(image))
    return Pixels(unmasked(image, "image"))


def _adapted(values: Floats, to: Floats, seen: NDArray[np.bool_]) -> Floats:
    """Gray values (H, W), scaled and shifted so that their quartiles are those of others."""
    (low, middle, high), (other_low, other_middle, other_high) = (
        np.percentile(one[seen], (25, 50, 75)) for one in (values, to)
    )
    gain = 1.0
    if high > low and other_high > other_low:
        gain = float(np.clip((other_high - other_low) / (high - low), 1 / MAX_GAIN, MAX_GAIN))
    return np.asarray((values - middle) * gain + other_middle, np.float32)
