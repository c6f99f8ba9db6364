"""HPatches-style strips from your own images: what the authors of HPatches never released.

A sequence is a folder with a reference image ``1``, five more ``2`` .. ``6`` (``.png``, ``.ppm``,
``.pgm`` or ``.jpg``) and the homographies ``H_1_2`` .. ``H_1_6`` (or ``H1to2p`` .. ``H1to6p``;
with or without ``.txt``) that map pixels of the reference to pixels of the others.

Keypoints are detected on the reference, with one orientation each. Their squares must be inside
the reference and, after jitter and homography, inside all other images; detections that overlap
are thinned. Each level of jitter is drawn anew for each of the other images and each keypoint.

What is written, for N keypoints:

* ``ref.png``, ``e1.png`` .. ``e5.png``, ``h1.png`` .. ``t5.png``: strips of gray patches, 65 wide
  and 65 N high; row k shows the same surface in all of them;
* ``ref.keypoints.csv``: N lines ``x,y,sigma,angle,response`` below a header;
* ``e1.jitter.csv`` .. ``t5.jitter.csv``: N lines below a header, the changes of the frame as
  :func:`mkdesc.images.jitter.draw_jitter` names them (degrees, units of the scale, octaves);
* ``sequence.json``: all parameters, the seed, the homographies, and digests of the inputs.

The patch of keypoint k in image i is cut in the frame H_i F_k J_ik: F_k the square of the keypoint
(``mkdesc.images.frames``), J_ik its jitter (``mkdesc.images.jitter.jitter_homographies``), H_i the
homography, applied exactly to each pixel and not only to first order at the centre: it costs
nothing, and large squares in steep views would otherwise show up to some pixels of a difference
that no detector makes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc._support.files import atomic_folder, read_json
from mkdesc._support.targets import check_replaced, make_folder
from mkdesc._support.workfolder import check_settings, content_part, fingerprint
from mkdesc.datasets.homographies import read_homography
from mkdesc.datasets.hpatches.layout import NOISES, image_name
from mkdesc.images.cutting import cut_patches
from mkdesc.images.detectors.registry import make_detector, settings_of
from mkdesc.images.frames import inside, to_frames
from mkdesc.images.jitter import (
    COLUMNS,
    LEVELS,
    SCALES_PER_SIDE,
    draw_jitter,
    jitter_homographies,
)
from mkdesc.images.reading import read_gray
from mkdesc.images.writing import encode_image

#: Images of a sequence besides the reference.
TARGETS = 5
#: Side of the square in units of sigma. HPatches magnifies the detected scale by 5; its genuine
#: v_graffiti strip agrees best with SIFT's keypoints when the scale is the radius of a region.
SIDE = 10.0
#: Strips longer than this could not be read again by OpenCV.
MOST_PATCHES = 16_000

#: What says of what a folder of strips was made, and the other files in it.
_RECORD, _KEYPOINTS = "sequence.json", "ref.keypoints.csv"
_STRIPS = [image_name(level, k) for level in NOISES for k in range(1, TARGETS + 1)]
_WRITTEN = {
    _KEYPOINTS,
    "ref.png",
    *(f"{strip}{ending}" for strip in _STRIPS for ending in (".png", ".jitter.csv")),
}

_SUFFIXES = (".png", ".ppm", ".pgm", ".jpg", ".jpeg")
_DRAWN = COLUMNS[:6]  # HPatches knows no perspective in its jitter


def read_sequence(
    folder: str | Path,
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.float64]]]:
    """The six images of a sequence, gray, and the five homographies from the first of them."""
    images, homographies = _files(Path(folder))
    return [read_gray(file) for file in images], [read_homography(file) for file in homographies]


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of the images and of the homographies."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    numbers = range(1, TARGETS + 2)
    images = [_find(folder, [f"{k}{suffix}" for suffix in _SUFFIXES]) for k in numbers]
    names = [[f"H_1_{k}", f"H1to{k}p", f"H_1_{k}.txt", f"H1to{k}p.txt"] for k in numbers[1:]]
    return images, [_find(folder, choice) for choice in names]


def _inputs(folder: Path) -> dict[str, str]:
    """What tells the files of a sequence from any others."""
    files = [file for some in _files(folder) for file in some]
    return {f"{file.name} sha256": content_part(fingerprint(file)) for file in files}


def check_made(folder: str | Path, target: str | Path, **settings: Any) -> None:
    """Refuse strips that were made of other images or with other settings.

    Parameters
    ----------
    folder
        Images and homographies, as for :func:`make_sequence`.
    target
        The folder of strips that is there.
    settings
        Those asked for, as :func:`make_sequence` names them.
    """
    record = Path(target, _RECORD)
    found = read_json(record) if record.is_file() else None
    wanted = {**settings, "inputs": _inputs(Path(folder))}
    known = {key: found.get(key) for key in wanted} if isinstance(found, dict) else None
    check_settings(target, known, wanted)


def check_strips(target: str | Path, folders: Sequence[str | Path]) -> None:
    """Refuse to replace a folder by strips if it is an input, or has other files in it.

    Parameters
    ----------
    target
        Where the strips are to be; it need not be there.
    folders
        Images and homographies, which are read.
    """
    check_replaced(target, folders, _RECORD, _WRITTEN)


def _find(folder: Path, names: Sequence[str]) -> Path:
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise FileNotFoundError(f"{folder}: expected one of {', '.join(names)}")
    if len(found) > 1:
        both = ", ".join(file.name for file in found)
        raise ValueError(f"{folder}: expected only one of {both}")
    return found[0]


def thin(points: NDArray[np.float64], most: float = 0.5, side: float = SIDE) -> NDArray[np.intp]:
    """Indices of points (N, 4) that do not overlap one before them by more than ``most``.

    The overlap of two points is the common share of the discs within their squares: their
    intersection over their union.

    Examples
    --------
    >>> thin(np.array([[50, 50, 2, 0], [51, 50, 2, 90], [80, 50, 2, 0]])).tolist()
    [0, 2]
    """
    kept: list[int] = []
    for i, (x, y, sigma, _) in enumerate(points):
        others = points[kept]
        distance = np.hypot(others[:, 0] - x, others[:, 1] - y)
        if not (_overlap(distance, others[:, 2] * side / 2, sigma * side / 2) > most).any():
            kept.append(i)
    return np.array(kept, np.intp)


def _overlap(
    distance: NDArray[np.float64], r: NDArray[np.float64], s: float
) -> NDArray[np.float64]:
    """Intersection over union of discs of radius r and s at a distance from each other."""
    # Within these bounds the discs intersect in a lens, or the formula gives the limit.
    d = np.clip(distance, np.maximum(np.abs(r - s), 1e-9), r + s)
    a = (d**2 + r**2 - s**2) / (2 * d)
    b = d - a
    lens = r**2 * np.arccos(np.clip(a / r, -1, 1)) + s**2 * np.arccos(np.clip(b / s, -1, 1))
    lens -= d * np.sqrt(np.maximum(r**2 - a**2, 0))
    shared: NDArray[np.float64] = lens / (np.pi * (r**2 + s**2) - lens)
    return shared


def make_sequence(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    *,
    name: str | None = None,
    max_patches: int | None = None,
    side: float = SIDE,
    patch_size: int = 65,
    min_sigma: float = 1.6,
    overlap: float = 0.5,
    detector: str = "sift",
    overwrite: bool = False,
    n_threads: int | None = None,
) -> Path:
    """Make the strips of one sequence.

    Parameters
    ----------
    folder
        Six images and five homographies; see :mod:`mkdesc.datasets.hpatches.make_strips`.
    out
        Where the folder of strips is made, whole or not at all.
    seed
        The same seed gives the same strips. Sequences of different names get different jitter.
    name
        Of the folder of strips; None: that of the sequence. HPatches begins it with ``i_`` or
        ``v_`` (illumination, viewpoint).
    max_patches
        How many to keep at most, the strongest; None: as many as fit into a strip.
    side
        Side of the square in units of sigma.
    patch_size
        Side of a patch in pixels; HPatches has 65.
    min_sigma
        Smaller keypoints are left out.
    overlap
        Detections whose regions overlap a stronger one's by more than this are left out.
    detector
        A name out of :data:`mkdesc.images.detectors.registry.DETECTORS`.
    overwrite
        Whether a folder that is there already is replaced.
    n_threads
        Number of threads; None: one per core.

    Returns
    -------
    Path
        The folder that was made, ``out / name``.

    Examples
    --------
    Six times the same picture:

    >>> import tempfile
    >>> import cv2
    >>> folder = Path(tempfile.mkdtemp())
    >>> noise = np.random.default_rng(0).integers(0, 256, (200, 200), np.uint8)
    >>> for k in range(1, 7):
    ...     _ = cv2.imwrite(str(folder / f"{k}.png"), cv2.GaussianBlur(noise, (0, 0), 2))
    ...     np.savetxt(folder / f"H_1_{k}", np.eye(3))
    >>> made = make_sequence(folder, folder / "strips", name="i_noise", max_patches=10)
    >>> made.name, read_gray(made / "t5.png").shape
    ('i_noise', (650, 65))
    """
    folder, root = Path(folder), Path(out)
    target = root / (folder.resolve().name if name is None else name)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists already")
    check_integer("max_patches", max_patches, optional=True)
    finder = make_detector(detector, n_threads=n_threads)
    inputs = _inputs(folder)
    images, homographies = read_sequence(folder)
    check_strips(target, [folder])
    found = finder.detect(images[0]).strongest()
    found = found.take(found.points[:, 2] >= min_sigma)
    frames = to_frames(found, side)

    rng = np.random.default_rng([seed, zlib.crc32(target.name.encode())])
    drawn, cut = {}, {"ref": (images[0], frames)}
    fits = inside(frames, images[0].shape)
    for level in NOISES:
        for k, (image, homography) in enumerate(zip(images[1:], homographies, strict=True), 1):
            strip = image_name(level, k)
            jitter = drawn[strip] = draw_jitter(len(frames), level, rng)
            moved = homography @ frames @ jitter_homographies(jitter)
            fits &= inside(moved, image.shape)
            cut[strip] = image, moved
    chosen = np.flatnonzero(fits)
    chosen = chosen[thin(found.points[chosen], overlap, side)]
    chosen = chosen[: min(max_patches or MOST_PATCHES, MOST_PATCHES)]
    if not len(chosen):
        raise ValueError(
            f"{folder}: no patch is inside all images ({len(frames)} keypoints of sigma >= "
            f"{min_sigma:g} px on the reference, patches of {side:g} sigma)"
        )
    settings = {
        "patches": len(chosen),
        "seed": seed,
        "max_patches": max_patches,
        "side": side,
        "patch_size": patch_size,
        "min_sigma": min_sigma,
        "overlap": overlap,
        "detector": detector,
        "detector_settings": settings_of(finder),
        "jitter": {level: asdict(replace(LEVELS[level], perspective=0)) for level in NOISES},
        "scales_per_side": SCALES_PER_SIDE,
        "homographies": [matrix.tolist() for matrix in homographies],
        "inputs": inputs,
    }
    make_folder(root)
    with atomic_folder(target, new=not overwrite) as partial:
        for strip, (image, where) in cut.items():
            patches = cut_patches(image, where[chosen], patch_size, n_threads=n_threads)
            png = encode_image(".png", patches.reshape(-1, patch_size))
            (partial / f"{strip}.png").write_bytes(png)
        table = np.column_stack([found.points, found.scores])[chosen]
        _write_table(partial / _KEYPOINTS, "x,y,sigma,angle,response", table)
        for strip, jitter in drawn.items():
            rows = jitter[chosen, : len(_DRAWN)]
            _write_table(partial / f"{strip}.jitter.csv", ",".join(_DRAWN), rows)
        text = json.dumps(settings, indent=1) + "\n"
        (partial / _RECORD).write_text(text, encoding="utf-8")
        check_strips(target, [folder])  # once more: there was time to put something there
    return target


def _write_table(path: Path, header: str, rows: NDArray[np.float64]) -> None:
    np.savetxt(path, rows, fmt="%.9g", delimiter=",", header=header, comments="")
