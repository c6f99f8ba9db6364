"""The detectors: names, and the classes that detect."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.detectors.keypoints import Keypoints, check_max_keypoints
from mkdesc.images.detectors.learned_weights import weights_file

#: Names and classes. OpenCV's: some builds lack akaze, kaze or brisk.
DETECTORS = {
    "learned": "mkdesc.images.detectors.learned:Learned",
    "sift": "mkdesc.images.detectors.opencv:Sift",
    "dog": "mkdesc.images.detectors.dog:Dog",
    "orb": "mkdesc.images.detectors.opencv:Orb",
    "akaze": "mkdesc.images.detectors.opencv:Akaze",
    "kaze": "mkdesc.images.detectors.opencv:Kaze",
    "brisk": "mkdesc.images.detectors.opencv:Brisk",
    "fast": "mkdesc.images.detectors.opencv:Fast",
    "gftt": "mkdesc.images.detectors.opencv:Gftt",
    "mser": "mkdesc.images.detectors.opencv:Mser",
}

#: What finds keypoints, unless told otherwise.
DEFAULT_DETECTOR = "learned"

#: Fields that say how much is done, and where; the others of a detector are its own settings.
COMMON = ("max_keypoints", "upright", "n_threads", "device")


@runtime_checkable
class Detector(Protocol):
    """What every detector offers: a frozen dataclass of plain values that can be pickled.

    Its fields begin with ``max_keypoints: int | None = None``, ``upright: bool = False`` and
    ``n_threads: int | None = None``; its own settings follow. One that can also compute by
    PyTorch has a field ``device: str | None = None``; one that can be used on a device, for many
    images at a time, has a method ``detect_padded(images, masks)``, which takes tensors
    (B, H, W), returns :class:`~mkdesc.images.detectors.padded_torch.PaddedKeypoints` and waits
    for nothing, and a property ``fits_device``: whether that finds what ``detect`` does. A class
    attribute ``SENSITIVE`` holds the settings that find weak keypoints too, if it has any.
    """

    @property
    def side(self) -> float | None:
        """Side of the square, in sigmas, that suits its keypoints; None: the model decides."""

    def detect(self, gray: NDArray[np.uint8], mask: NDArray[np.uint8] | None = None) -> Keypoints:
        """Find the keypoints of an image, in any order; safe in several threads at a time.

        Parameters
        ----------
        gray
            (H, W) uint8.
        mask
            (H, W) uint8: keypoints are looked for where it is not zero; None: everywhere.

        Returns
        -------
        Keypoints
            At least the ``max_keypoints`` strongest, if there are as many. Where ``upright`` is
            set their angles do not matter, and the same place and sigma counts once.
        """


def make_detector(
    name: str,
    *,
    max_keypoints: int | None = None,
    upright: bool = False,
    n_threads: int | None = None,
    device: str | None = None,
    sensitive: bool = False,
    **settings: Any,
) -> Detector:
    """Make a detector by its name.

    Parameters
    ----------
    name
        One of :data:`DETECTORS`.
    max_keypoints
        How many of the strongest are wanted; None: all. A detector may find more.
    upright
        Whether angles do not matter.
    n_threads
        Number of threads; None: one per core. OpenCV's detectors have a setting of their own
        (``cv2.setNumThreads``).
    device
        Where those detectors compute that can use PyTorch; None: compiled code on the CPU.
    sensitive
        Whether to find weak keypoints too, where the detector has settings for that.
    settings
        Of this detector.

    Examples
    --------
    >>> make_detector("sift", contrast=0.01)
    Sift(max_keypoints=None, upright=False, n_threads=None, contrast=0.01, ...)
    """
    if name not in DETECTORS:
        raise ValueError(
            f"detector: expected one of {', '.join(DETECTORS)} or an OpenCV detector, got {name!r}"
        )
    check_max_keypoints(max_keypoints)
    module, _, kind = DETECTORS[name].partition(":")
    made_by = getattr(import_module(module), kind)
    known = [field.name for field in fields(made_by)]
    own = [field for field in known if field not in COMMON]
    for setting in settings:
        if setting not in own:
            has = ", ".join(own) or "none"
            raise ValueError(f"{setting}: no setting of the detector {name}, which has {has}")
    if sensitive:
        settings = {**getattr(made_by, "SENSITIVE", {}), **settings}
    if "device" in known:
        settings["device"] = device
    detector: Detector = made_by(max_keypoints, upright, n_threads, **settings)
    return detector


def as_detector(
    detector: Any,
    *,
    max_keypoints: int | None = None,
    upright: bool = False,
    n_threads: int | None = None,
    device: str | None = None,
) -> Detector:
    """A detector: made by its name, one of ours as it is, or an object of OpenCV's wrapped.

    Examples
    --------
    >>> as_detector("orb").side
    2.0
    """
    check_max_keypoints(max_keypoints)
    if isinstance(detector, str):
        return make_detector(
            detector,
            max_keypoints=max_keypoints,
            upright=upright,
            n_threads=n_threads,
            device=device,
        )
    if isinstance(detector, Detector):
        return detector
    if not hasattr(detector, "detect"):
        raise ValueError(
            f"detector: expected a name ({', '.join(DETECTORS)}) or an OpenCV detector, got "
            f"{detector!r}"
        )
    from mkdesc.images.detectors.opencv import OpenCVObject

    return OpenCVObject(detector)


def settings_of(detector: Detector) -> dict[str, Any]:
    """What keypoints depend on besides the image and how many are wanted: its own settings.

    Examples
    --------
    >>> settings_of(make_detector("sift", n_threads=2))
    {'contrast': 0.04, 'edge': 10.0, 'sigma': 1.6, 'precise': True}
    """
    every: Any = detector
    found = {
        field.name: getattr(detector, field.name)
        for field in fields(every)
        if field.name not in COMMON
    }
    if "weights" in found:  # a name may come to stand for others
        content = weights_file(found["weights"]).read_bytes()
        found["weights sha256"] = hashlib.sha256(content).hexdigest()
    return found
