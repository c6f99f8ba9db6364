"""What matching two photographs gives: numbers, files, a picture."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.dataframes import make_dataframe
from mkdesc._support.files import atomic_path, read_json
from mkdesc._support.npy import names_in_archive
from mkdesc._support.targets import Own, check_target, lines_of
from mkdesc.features.flow import Flow, LocalMaps, hanging_together, interpolate
from mkdesc.features.warping import Warped, warp_second
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.drawing import LONGEST, draw_matches, svg_of_matches
from mkdesc.images.pixels import read_pixels
from mkdesc.images.reading import in_colour
from mkdesc.images.resampling import resized
from mkdesc.images.writing import OWN_PICTURE, PICTURES, encode_picture
from mkdesc.matching.nearest import Matches

if TYPE_CHECKING:
    import cv2
    import pandas as pd

#: Of a table of matches.
COLUMNS = (
    *("x_a", "y_a", "x_b", "y_b", "distance", "correlation"),
    *("a_xx", "a_xy", "a_yx", "a_yy", "inlier"),
)

#: What is kept in files, and as what in JSON; None: there it is left out.
_KEPT: dict[str, type | None] = {
    **dict.fromkeys(("points_a", "points_b", "distances", "correlation", "affine"), list),
    **dict.fromkeys(("inliers", "matrix"), list),
    **{"geometry": str, "rotation": list, "translation": list, "pose_covariance": list},
    **{"focal": float, "verdict": str, "reason": str},
    **dict.fromkeys(("pairs", "keypoints_a", "keypoints_b")),
}
#: What JSON has besides.
_ONLY_JSON = {"verified": bool, "seconds": dict}
#: What is left out where there is none.
_OPTIONAL = {"matrix", "geometry", "rotation", "translation", "pose_covariance", "focal"}


def _is_own_npz(path: Path) -> bool:
    names = names_in_archive(path)
    return names is not None and _KEPT.keys() - _OPTIONAL <= names <= _KEPT.keys()


def _is_own_json(path: Path) -> bool:
    kinds = _ONLY_JSON | {name: kind for name, kind in _KEPT.items() if kind}
    try:
        found = read_json(path)
    except ValueError:
        return False
    return (
        isinstance(found, dict)
        and kinds.keys() - _OPTIONAL <= found.keys() <= kinds.keys()
        and all(isinstance(value, kinds[name]) for name, value in found.items())
    )


#: Endings of the files that matches can be written to, and by what such files are known.
ENDINGS: dict[str, Own] = {
    **dict.fromkeys(PICTURES, OWN_PICTURE),
    ".svg": rb">mkdesc: [^<]*</text>\s*</svg>",
    ".npz": _is_own_npz,
    ".csv": lines_of(",".join(COLUMNS).encode(), rb"([-+.0-9a-z]*,){10}[01]"),
    ".json": _is_own_json,
}


def check_output(
    path: str | os.PathLike[str],
    reads: Iterable[str | os.PathLike[str] | None] = (),
    overwrite: bool = False,
) -> Path:
    """Refuse a file that matches cannot or must not be written to, before the work is done.

    Parameters
    ----------
    path
        Of the file.
    reads, overwrite
        As for ``check_target`` of ``mkdesc._support.targets``.

    Examples
    --------
    >>> check_output("matches.txt")
    Traceback (most recent call last):
    ValueError: matches.txt: expected a name ending in .png, .jpg, .jpeg, .svg, .npz, .csv, .json
    """
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise ValueError(f"{target}: expected a name ending in {', '.join(ENDINGS)}")
    return check_target(target, reads, ENDINGS[target.suffix.lower()], overwrite)


#: Colours of verified and of rejected matches, blue first, where both are drawn.
GREEN, RED = (60, 170, 30), (40, 40, 220)

#: Left, top, right and bottom, in pixels.
Box = tuple[float, float, float, float]


def check_box(box: Box, shape: tuple[int, ...]) -> None:
    """Refuse a box that is not in an image of this shape (H, W).

    >>> check_box((0, 0, 999, 10), (240, 300))
    Traceback (most recent call last):
    ValueError: box: expected left < right <= 300 and top < bottom <= 240, all >= 0, got 0, 0, ...
    """
    left, top, right, bottom = box
    if not (0 <= left < right <= shape[1] and 0 <= top < bottom <= shape[0]):
        raise ValueError(
            f"box: expected left < right <= {shape[1]} and top < bottom <= {shape[0]}, all >= 0, "
            f"got {', '.join(format(edge, 'g') for edge in box)}"
        )


@dataclass(frozen=True, eq=False)
class ImageMatches:
    """Matches of two photographs.

    Attributes
    ----------
    points_a, points_b
        (M, 2): matched positions, row by row; pixel centres at integers, as OpenCV has them.
    distances
        (M,) float32: of their descriptors; NaN where a match was grown at places that are not
        keypoints of both photographs.
    correlation
        (M,): of the gray values around both places, at most 1; NaN where nothing was grown.
    affine
        (M, 2, 2): how the surroundings map from the first photograph to the second. Near a
        match, ``b = points_b + affine @ (a - points_a)``.
    inliers
        (M,) bool: which of them agree on the geometry.
    matrix
        (3, 3): the homography from the first to the second image, the fundamental or the
        essential matrix; None: nothing says that the two show the same scene.
    geometry
        Which of these it is; None if there is none.
    rotation, translation
        (3, 3), (3,): pose of the second camera relative to the first, for an essential matrix:
        the second sees X at ``rotation @ X + translation``.
    pose_covariance
        (6, 6), in degrees: of the rotation's angles about the axes of the second camera, and of
        the translation's direction. Standard deviations: ``pose_covariance.diagonal() ** 0.5``.
    focal
        The focal length in pixels that was estimated (``geometry="shared-focal"``).
    verdict
        ``"verified"``: the two show the same scene. ``"ambiguous"``: matches agree, but on
        structure that repeats itself, so that other places agree as well. ``"unverified"``:
        nothing says that they show the same.
    reason
        Why, in words.
    pairs
        (M, 2) int64: the rows of ``keypoints_a`` and ``keypoints_b`` that are matched; -1 where
        there is no keypoint within two pixels, because the match was grown.
    keypoints_a, keypoints_b
        (N, 4): x, y, sigma, angle of all that was seen.
    timings
        Seconds by step.
    images
        The photographs, gray, uint8.
    files
        Where they come from; None: from no file.

    Examples
    --------
    >>> from mkdesc import match_images
    >>> image = np.random.default_rng(0).integers(0, 256, (100, 120), np.uint8)
    >>> found = match_images(image, image[10:, 20:])
    >>> found.verified, found.geometry
    (True, 'homography')
    >>> moved = (found.points_a - found.points_b)[found.inliers]
    >>> moved.mean(axis=0).round().tolist()
    [20.0, 10.0]
    """

    points_a: NDArray[np.float64]
    points_b: NDArray[np.float64]
    distances: NDArray[np.float32]
    correlation: NDArray[np.float64]
    affine: NDArray[np.float64]
    inliers: NDArray[np.bool_]
    matrix: NDArray[np.float64] | None
    geometry: str | None
    rotation: NDArray[np.float64] | None
    translation: NDArray[np.float64] | None
    pose_covariance: NDArray[np.float64] | None
    focal: float | None
    verdict: str
    reason: str
    pairs: NDArray[np.int64]
    keypoints_a: NDArray[np.float64]
    keypoints_b: NDArray[np.float64]
    timings: dict[str, float]
    images: tuple[NDArray[np.uint8], NDArray[np.uint8]] = field(repr=False)
    files: tuple[Path | None, Path | None] = (None, None)

    def __len__(self) -> int:
        return len(self.points_a)

    @property
    def verified(self) -> bool:
        """Whether the two photographs are believed to show the same scene."""
        return self.matrix is not None

    def __repr__(self) -> str:
        return f"<ImageMatches: {self.summary()}>"

    def summary(self) -> str:
        """In one line."""
        if not self.verified:
            return f"{len(self):,} matches, none verified: {self.reason}"
        return f"{len(self):,} matches, {self.inliers.sum():,} of them verified ({self.geometry})"

    def to_opencv(
        self,
    ) -> tuple[list[cv2.KeyPoint], list[cv2.KeyPoint], list[cv2.DMatch]]:
        """Keypoints of both photographs, and their matches, as ``cv2.drawMatches`` takes them.

        Matches at places that are not keypoints of both are left out. Those of ``both =
        (found.pairs >= 0).all(axis=1)`` remain; verified ones alone: ``[m for m, good in
        zip(matches, found.inliers[both]) if good]``.
        """
        a, b = (
            Keypoints(points, np.zeros(len(points), np.float32)).to_opencv()
            for points in (self.keypoints_a, self.keypoints_b)
        )
        both = (self.pairs >= 0).all(axis=1)
        return a, b, Matches(self.pairs[both], self.distances[both]).to_opencv()

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame of pandas, a row per match, with the columns of the ``.csv`` file."""
        return make_dataframe(dict(zip(COLUMNS, self._columns(), strict=True)))

    def _columns(self) -> tuple[NDArray[Any], ...]:
        numbers = self.distances, self.correlation, *self.affine.reshape(-1, 4).T
        return *self.points_a.T, *self.points_b.T, *numbers, self.inliers

    def flow(self, shape: tuple[int, int] | None = None) -> Flow:
        """Where the pixels of the first photograph are in the second, as far as matches tell.

        Made from the inliers, and from what hangs together with them. Between matches that agree
        their local maps are interpolated; there are holes where there are none.

        Parameters
        ----------
        shape
            Rows and columns of the field, which covers the first photograph; displacements are
            pixels of the photographs all the same. None: one place for each pixel.

        Examples
        --------
        >>> from mkdesc import match_images
        >>> image = np.random.default_rng(0).integers(0, 256, (100, 120), np.uint8)
        >>> flow = match_images(image, image[10:, 20:], grid=8).flow()
        >>> flow.field[50, 60].round(1), flow.field[50, 5]
        (array([-20., -10.], dtype=float32), array([nan, nan], dtype=float32))
        """
        return interpolate(self._local_maps(), *self._shapes(), shape)

    def warp(self, image: NDArray[Any] | None = None, by: str = "auto") -> Warped:
        """The second photograph as the first one sees it.

        Parameters
        ----------
        image
            What to warp: (H, W) or (H, W, C), integers or floats, as large as the second
            photograph. None: that photograph, from its file as it is, otherwise the gray one.
        by
            ``"homography"``: a flat scene, or a camera that only turned. ``"flow"``: by
            :meth:`flow`; what is not known remains unseen. ``"auto"``: a homography if there is
            one that explains the matches nearly everywhere.

        Examples
        --------
        >>> from mkdesc import match_images
        >>> image = np.random.default_rng(0).integers(0, 256, (100, 120), np.uint8)
        >>> image_seen, seen, by = match_images(image, image[10:, 20:]).warp()
        >>> (abs(1.0 * image_seen - image) < 4)[12:-2, 22:-2].mean() > 0.99, seen[:, :18].any(), by
        (np.True_, np.False_, 'homography')
        """
        if self.matrix is None:
            raise ValueError(f"nothing to warp by: {self.reason}")
        if image is None:
            file = self.files[1]
            image = self.images[1] if file is None else read_pixels(file).values
        matrix = self.matrix if self.geometry == "homography" else None
        return warp_second(image, by, matrix, self._local_maps(), *self._shapes())

    def _shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        (height, width), (other_height, other_width) = (image.shape for image in self.images)
        return (height, width), (other_height, other_width)

    def _local_maps(self) -> LocalMaps:
        """Of the inliers, and of what hangs together with them."""
        maps = LocalMaps(self.points_a, self.points_b, self.affine, self.correlation)
        return maps.take(hanging_together(maps, self.inliers))

    def _picture(self, rejected: bool, box: Box | None) -> dict[str, Any]:
        """What a picture shows, as :func:`mkdesc.images.draw_matches` takes it."""
        shown = self.inliers | (rejected or not self.verified)
        a, b = map(in_colour, self.images, self.files)
        red = rejected or not self.verified
        caption = f"{self.summary()}{' - red: rejected' if rejected else ''}"
        if not self.verified:
            caption = f"NOT VERIFIED: {self.reason} - {len(self):,} tentative matches in red"
        here = self.points_a
        if box is not None:
            a, here, inside = _zoomed(a, here, box)
            shown = shown & inside
        return {
            "a": a,
            "b": b,
            "here": here[shown],
            "there": self.points_b[shown],
            "caption": f"mkdesc: {caption}"
            f"{'' if box is None else f' - {shown.sum()} in this part'}",
            "colours": np.where(self.inliers[:, None], GREEN, RED)[shown] if red else None,
        }

    def draw(self, *, rejected: bool = False, box: Box | None = None) -> NDArray[np.uint8]:
        """A picture (H, W, 3), blue first: verified matches, or the tentative ones in red.

        Photographs from files are in colour.

        Parameters
        ----------
        rejected
            Whether to show rejected matches too, in red; the verified ones are then green.
        box
            Left, top, right and bottom of the part of the first photograph to show, enlarged,
            with the matches in it; None: all of it.
        """
        return draw_matches(**self._picture(rejected, box))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        rejected: bool = False,
        box: Box | None = None,
    ) -> None:
        """Write to a file, of the kind that its ending says.

        ``.png``, ``.jpg``, ``.svg``: the picture. ``.npz``: the arrays by their names here, those
        that are None left out. ``.csv``: a line per match. ``.json``: matches, matrix, geometry.

        Parameters
        ----------
        path
            Of the file; written as a whole or not at all, and never over one of the photographs.
        overwrite
            Whether to replace a file that holds anything but matches.
        rejected, box
            What pictures show, as :meth:`draw` says.
        """
        target = check_output(path, self.files, overwrite)
        kind = target.suffix.lower()
        with atomic_path(target) as partial:
            if kind in PICTURES:
                partial.write_bytes(encode_picture(kind, self.draw(rejected=rejected, box=box)))
            elif kind == ".svg":
                svg = svg_of_matches(**self._picture(rejected, box))
                partial.write_text(svg, encoding="utf-8")
            elif kind == ".npz":
                with partial.open("wb") as file:
                    np.savez(file, **self._arrays())
            else:
                text = self._csv() if kind == ".csv" else json.dumps(self._json(), indent=1)
                partial.write_text(text, encoding="utf-8")

    def _arrays(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in _KEPT}
        return {name: value for name, value in arrays.items() if value is not None}

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        formats = (*["{:.3f}"] * 4, *["{:.4f}"] * 6)
        for *numbers, inlier in zip(*(column.tolist() for column in self._columns()), strict=True):
            words = (
                "" if value != value else form.format(value)  # NaN: there is none
                for form, value in zip(formats, numbers, strict=True)
            )
            writer.writerow([*words, int(inlier)])
        return out.getvalue()

    def _json(self) -> dict[str, Any]:
        return {
            "verified": self.verified,
            **{
                name: _plain(value) if isinstance(value, np.ndarray) else value
                for name, value in self._arrays().items()
                if _KEPT[name]
            },
            "seconds": self.timings,
        }


def _zoomed(
    image: NDArray[np.uint8], points: NDArray[np.float64], box: Box
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
    """Part of an image, enlarged; where points are in it; and which of them are."""
    check_box(box, image.shape)
    left, top = int(box[0]), int(box[1])
    part = image[top : int(np.ceil(box[3])), left : int(np.ceil(box[2]))]
    scale = max(1.0, LONGEST / max(part.shape[:2]))
    moved = points - [left, top]
    within = (moved > -0.5) & (moved < np.array(part.shape[1::-1]) - 0.5)
    inside = within[:, 0] & within[:, 1]
    return resized(part, scale), (moved + 0.5) * scale - 0.5, inside


def _plain(array: NDArray[Any]) -> list[Any]:
    """An array as lists; None for NaN, which JSON has not."""
    if array.dtype.kind != "f" or not np.isnan(array).any():
        found: list[Any] = array.tolist()
        return found
    return [None if value != value else value for value in array.tolist()]
