"""SIFT's blobs, compiled: extrema of differences of Gaussians, as OpenCV finds them, in less time.

``dog_reference.py`` says what is computed, ``dog_numba.py`` and ``dog_orientation_numba.py`` do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_number
from mkdesc._support.compiling import compile_loop, locked_cache
from mkdesc._support.loop_types import Structure, array_type
from mkdesc._support.threads import checked_threads, in_threads
from mkdesc.images.detectors.dog_reference import (
    BINS,
    DOUBLED,
    LAYERS,
    REACH,
    count_octaves,
    first_threshold,
    gaussian,
    layer_sigmas,
)
from mkdesc.images.detectors.dog_tiles import NUMBERS, Plan, plans_for
from mkdesc.images.detectors.keypoints import Keypoints, check_max_keypoints
from mkdesc.images.detectors.places import choose_places, choose_spread

Gray = NDArray[np.uint8]
Floats = NDArray[np.float32]

#: Blobs per unit of work.
BLOCK = 128

NO_GRAY, NO_PIXELS = np.empty((0, 0), np.uint8), np.empty((0, 0), np.float32)


class Rows(NamedTuple):
    """Room for rows of images, of differences, two that are filtered, and one of means."""

    images: Floats
    dogs: Floats
    two: Floats
    means: Floats


class Octave(NamedTuple):
    """What an octave is made of, and the blobs in it (N, 7); see ``dog_numba.scan_tile``."""

    gray: Gray
    pixels: Floats
    blobs: NDArray[np.float64]


@dataclass(frozen=True)
class Dog:
    """SIFT's blobs, without OpenCV: the same places, sizes and angles, in a third of its time.

    Attributes
    ----------
    contrast, edge, sigma
        As OpenCV's ``contrastThreshold``, ``edgeThreshold`` and ``sigma``.
    repeats
        Whether to keep what OpenCV keeps: blobs within two pixels of stronger ones, and a keypoint
        for every strong direction of a blob. Otherwise there is one keypoint a place.
    spread
        Whether to take keypoints that lie far from each other, not just the strongest; needs
        ``max_keypoints``.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> Dog(max_keypoints=5).detect(image)
    Keypoints(5)
    """

    max_keypoints: int | None = None
    upright: bool = False
    n_threads: int | None = None
    contrast: float = 0.04
    edge: float = 10.0
    sigma: float = 1.6
    repeats: bool = False
    spread: bool = False

    SENSITIVE: ClassVar[dict[str, Any]] = {"contrast": 0.01}
    side: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        check_max_keypoints(self.max_keypoints)
        checked_threads(self.n_threads)
        for name, least, most in (("contrast", 0, 1), ("edge", 1, 1e6), ("sigma", 0.5, 10)):
            check_number(name, getattr(self, name), least=least, most=most)

    def detect(self, gray: Gray, mask: Gray | None = None) -> Keypoints:
        """As every :class:`~mkdesc.images.detectors.registry.Detector`."""
        gray = np.ascontiguousarray(gray)
        threads = checked_threads(self.n_threads)
        octaves = self._octaves(gray, threads)
        if not octaves:
            return Keypoints.empty()
        numbers = np.repeat(np.arange(len(octaves)), [len(octave.blobs) for octave in octaves])
        blobs = np.concatenate([octave.blobs for octave in octaves])
        factor = 0.5 * 2.0**numbers
        points = np.zeros((len(blobs), 4))
        points[:, 0] = (blobs[:, 2] + blobs[:, 5]) * factor
        points[:, 1] = (blobs[:, 1] + blobs[:, 4]) * factor
        points[:, 2] = self._scales(blobs) * factor
        found = Keypoints(points, blobs[:, 6])
        chosen = self._chosen(found, mask)
        if self.upright:
            return found.take(chosen)
        angles, heights, count = _directions(octaves, numbers, chosen, self, threads)
        if self.repeats:
            which = np.repeat(np.arange(len(chosen)), count)
            peaks = angles[np.arange(angles.shape[1]) < count[:, None]]
        else:
            which = np.flatnonzero(count)
            peaks = angles[which, heights[which].argmax(axis=1)]
        turned = found.points[chosen[which]]
        turned[:, 3] = peaks
        return Keypoints(turned, found.scores[chosen[which]])

    def _scales(self, blobs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sigmas (N,) of blobs, in pixels of their octave."""
        return np.asarray(self.sigma * 2 ** ((blobs[:, 0] + blobs[:, 3]) / LAYERS))

    def _octaves(self, gray: Gray, threads: int) -> list[Octave]:
        """The octaves, each with its blobs."""
        halves = tuple(gaussian(sigma) for sigma in layer_sigmas(self.sigma))
        scan = compile_scan(*map(len, halves))
        threshold = np.float32(first_threshold(self.contrast))
        octaves: list[Octave] = []
        pixels = NO_PIXELS
        height, width = (2 * n for n in gray.shape)
        for number in range(count_octaves(*gray.shape)):
            first = number == 0
            last = number + 1 == count_octaves(*gray.shape)
            smaller = NO_PIXELS if last else np.empty((height // 2, width // 2), np.float32)
            source = gray if first else NO_GRAY

            def one(plan: Plan, source: Gray = source, pixels: Floats = pixels,
                    smaller: Floats = smaller) -> NDArray[np.float64]:  # fmt: skip
                room = Rows(
                    np.zeros(plan.images_size, np.float32),
                    np.empty(plan.dogs_size, np.float32),
                    np.empty((2, plan.stride), np.float32),
                    np.empty(plan.stride, np.float32),
                )
                words = np.zeros(plan.stride // 8, np.uint64)
                limits = threshold, self.contrast, self.edge
                given = source, pixels, plan, halves, room, words.view(np.uint8), words, *limits
                columns = plan.column_end - plan.column
                found, at = np.empty((LAYERS * columns + 256, NUMBERS)), np.array([0, -1, -1])
                while not scan(*given, smaller, found, at):
                    found = np.concatenate([found, np.empty_like(found)])
                return found[: at[0]]

            plans = plans_for(height, width, [len(half) - 1 for half in halves], first, threads)
            blobs = np.concatenate(in_threads(one, plans, threads))
            octaves.append(Octave(source, pixels, blobs))
            pixels = smaller
            height, width = height // 2, width // 2
        return octaves

    def _chosen(self, found: Keypoints, mask: Gray | None) -> NDArray[np.int64]:
        """Numbers of the blobs that are kept, before their directions are known."""
        shown = np.arange(len(found))
        if mask is not None:
            x, y = (found.points[:, :2] + 0.5).astype(np.int64).T
            shown = np.flatnonzero(mask[y.clip(0, len(mask) - 1), x.clip(0, mask.shape[1] - 1)])
        found = found.take(shown)
        if not self.repeats:
            some = choose_places(found, n=None if self.spread else self.max_keypoints)
        else:  # extrema that moved to the same place are one
            _, some = np.unique(found.points, axis=0, return_index=True)
            order = found.take(some).strongest_first(None if self.spread else self.max_keypoints)
            some = some[order]
        if self.spread and self.max_keypoints is not None:
            some = some[choose_spread(found.take(some), self.max_keypoints)]
        return np.asarray(shown[some])


def _directions(
    octaves: list[Octave],
    numbers: NDArray[np.int64],
    chosen: NDArray[np.int64],
    dog: Dog,
    threads: int,
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Angles and heights (N, 18) of the peaks of chosen blobs, and how many there are (N,)."""
    angles = np.zeros((len(chosen), BINS // 2), np.float32)
    heights = np.zeros_like(angles)
    count = np.zeros(len(chosen), np.int64)
    ends = np.cumsum([0, *(len(octave.blobs) for octave in octaves)])
    totals = dog.sigma * 2.0 ** (np.arange(1, LAYERS + 1) / LAYERS)
    # The first octave needs the widest filters; others of the same lengths do for the rest.
    reaches = [round(REACH * float(np.sqrt(total**2 - DOUBLED**2))) for total in totals]
    run, longest = compile_orient(*(reach + 1 for reach in reaches)), max(reaches)

    def one(work: tuple[int, NDArray[np.int64]]) -> None:
        number, part = work
        gray, pixels, every = octaves[number]
        blobs = every[chosen[part] - ends[number]]
        before = dog.sigma if number else DOUBLED
        halves = tuple(
            gaussian(float(np.sqrt(total**2 - before**2)), reach)
            for total, reach in zip(totals, reaches, strict=True)
        )
        into = angles[part], heights[part], count[part]
        run(gray, pixels, blobs, dog._scales(blobs), halves, longest, *into)
        angles[part], heights[part], count[part] = into

    of_octave = [np.flatnonzero(numbers[chosen] == number) for number in range(len(octaves))]
    works = [
        (number, some[start : start + BLOCK])
        for number, some in enumerate(of_octave)
        for start in range(0, len(some), BLOCK)
    ]
    in_threads(one, works, threads)
    return angles, heights, count


def _halves_type(lengths: Iterable[int]) -> Any:
    return Structure(tuple, tuple(Structure(tuple, ("float32",) * n) for n in lengths))


@locked_cache
def compile_scan(*lengths: int) -> Callable[..., int]:
    """The compiled loop for filters of these lengths (their halves), from the cache if there."""
    written, floats = (array_type(dtype, 1, written=True) for dtype in ("int64", "float32"))
    kinds = get_type_hints(Plan).values()
    fields = tuple("int64" if kind is int else written for kind in kinds)
    arguments = (
        array_type("uint8", 2),
        array_type("float32", 2),
        Structure(Plan, fields),
        _halves_type(lengths),
        Structure(Rows, (floats, floats, array_type("float32", 2, written=True), floats)),
        array_type("uint8", 1, written=True),
        array_type("uint64", 1, written=True),
        "float32",
        "float64",
        "float64",
        array_type("float32", 2, written=True),
        array_type("float64", 2, written=True),
        written,
    )
    return compile_loop("mkdesc.images.detectors.dog_numba:scan_tile", arguments)


@locked_cache
def compile_orient(*lengths: int) -> Callable[..., None]:
    """The compiled loop for filters of these lengths (their halves), from the cache if there."""
    arguments = (
        array_type("uint8", 2),
        array_type("float32", 2),
        array_type("float64", 2),
        array_type("float64", 1),
        _halves_type(lengths),
        "int64",
        array_type("float32", 2, written=True),
        array_type("float32", 2, written=True),
        array_type("int64", 1, written=True),
    )
    return compile_loop("mkdesc.images.detectors.dog_orientation_numba:orient", arguments)
