"""Keypoints of several kinds, in a photograph and in views of it, as frames of the photograph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.work import in_order
from mkdesc.features.features import Features
from mkdesc.images.affine import adapted_frames, region_frames
from mkdesc.images.detectors.opencv import BLOBS
from mkdesc.images.detectors.registry import make_detector
from mkdesc.images.frames import frames_from_points
from mkdesc.images.views import View, back_to_photograph, synthesise, turns_for
from mkdesc.matching.frame_matches import LocalFeatures, join_features

#: The part of a frame's square, around its centre, that must be in the photograph.
CORE = 0.3

Floats = NDArray[np.float64]


def features_in_views(
    gray: NDArray[np.uint8],
    tilt: float,
    features: Features,
    most: int,
    threads: int,
    progress: Callable[[int, int], object],
) -> LocalFeatures:
    """Blobs, blobs with a shape and regions, in all views of a photograph at one tilt.

    Parameters
    ----------
    gray
        The photograph, (H, W).
    tilt
        Of the views; 1: the photograph itself.
    features
        What describes; of one thread.
    most
        Keypoints of a kind at most, in the photograph itself; a view has fewer pixels, and a
        share as its tilt says.
    threads
        Views at a time.
    progress
        Told how many views are done, of how many.
    """
    turns = turns_for(tilt)
    limit = max(int(most / tilt), 1)

    def one(turn: float) -> LocalFeatures:
        view = synthesise(gray, tilt, turn)
        return features_in_view(view, gray.shape, features, limit)

    parts = []
    for part in in_order(one, turns, threads):
        parts.append(part)
        progress(len(parts), len(turns))
    return join_features(parts)


def features_in_view(
    view: View,
    shape: tuple[int, ...],
    features: Features,
    most: int,
) -> LocalFeatures:
    """What a view shows of a photograph, described as it is seen there.

    Parameters
    ----------
    view
        Of the photograph.
    shape
        Of the photograph: (height, width).
    features
        What describes.
    most
        Keypoints of a kind at most.
    """
    detector = make_detector("sift", max_keypoints=most, n_threads=1, **BLOBS)
    points = detector.detect(view.image).strongest(most).points
    side = features.sides[0]  # of the square that a frame stands for
    places = np.unique(points * [1, 1, 1, 0], axis=0)  # without their several directions
    frames = [
        frames_from_points(points, side),
        adapted_frames(view.image, places, side),
        region_frames(view.image, most),
    ]
    seen = np.concatenate(frames)
    kinds = np.repeat(np.arange(len(frames), dtype=np.uint8), [len(some) for some in frames])
    found = back_to_photograph(seen, view.matrix)
    inside = _within(found, shape)
    described = features.describe(view.image, seen[inside])
    return LocalFeatures(found[inside], described, kinds[inside])


def _within(frames: Floats, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which frames have their core in the photograph: beyond it, a view shows nothing real."""
    reach = CORE * np.abs(frames[:, :, :2]).sum(axis=2)
    size = np.array([shape[1], shape[0]])
    low, high = frames[:, :, 2] - reach, frames[:, :, 2] + reach
    return np.asarray(((low >= -0.5) & (high <= size - 0.5)).all(axis=1))
