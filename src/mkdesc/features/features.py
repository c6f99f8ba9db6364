"""Keypoints and descriptors of photographs, in OpenCV's manner."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import checked_sides
from mkdesc.descriptor import MKD, Side
from mkdesc.features.choices import can_be_on_device, sides_for
from mkdesc.images.cutting import cut_patches
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR, Detector, as_detector
from mkdesc.images.frames import centres_of, outside
from mkdesc.images.gray import as_gray, as_gray_uint8, check_gray_range
from mkdesc.images.reading import opencv
from mkdesc.models import DEFAULT_MODEL, load_model

if TYPE_CHECKING:
    import cv2

    from mkdesc.features.features_torch import Features as DeviceFeatures


class Features:
    """Detect and describe, with the methods of ``cv2.SIFT``: put it where that one was.

    Parameters
    ----------
    first, detector
        ``"learned"``, ``"dog"``, ``"sift"``, ``"orb"``, ... (see
        :data:`mkdesc.images.detectors.registry.DETECTORS`), one of these with your own settings
        (:func:`~mkdesc.images.make_detector`), or an OpenCV detector: the first argument, or by
        its name. A number in its place is taken for ``max_keypoints``: ``Features(2000)`` is what
        ``cv2.SIFT_create(2000)`` was.
    max_keypoints
        How many to keep, the strongest by response; None: all.
    model
        Name of a bundled model, a model file, or an :class:`mkdesc.MKD`.
    side
        Side of the square that is described, in units of sigma (half a keypoint's size); None:
        what suits the detector, if the sizes of its keypoints mean something of their own, or
        what the model is best used at (20 if it does not say). For a model that looks at several
        squares: one for each.
    upright
        Whether to ignore the orientation of keypoints: better if the camera was level.
    output
        ``"float32"``: unit vectors. ``"uint8"`` or ``"int8"``: a quarter of the memory (OpenCV's
        matchers take uint8, not int8). ``"bits"``: signs, packed, for the Hamming distance, as
        ORB's. None: as ``model`` has it, float32 if it is a name or file. See
        :class:`mkdesc.MKD`.
    n_threads
        Number of threads; None: one per core.
    device
        Where PyTorch does all of the work, such as ``"cuda"``, with the detector ``"learned"``
        and a number of keypoints; otherwise it describes patches there, and
        detects if the detector can. None: as ``model`` has it; ``"cpu"``: the same, since PyTorch
        is slower there.
    **others
        Arguments of OpenCV's: they are refused, with what to use here.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (100, 100), np.uint8)
    >>> features = Features(max_keypoints=20)
    >>> keypoints, descriptors = features.detectAndCompute(image, None)
    >>> len(keypoints), descriptors.shape, descriptors.dtype
    (20, (20, 128), dtype('float32'))
    >>> Features(2000, upright=True)
    Features(max_keypoints=2000, upright=True)
    """

    def __init__(
        self,
        first: str | int | Detector | cv2.Feature2D | None = None,
        /,
        max_keypoints: int | None = None,
        model: str | os.PathLike[str] | MKD = DEFAULT_MODEL,
        side: Side = None,
        upright: bool = False,
        output: str | None = None,
        n_threads: int | None = None,
        device: str | None = None,
        *,
        detector: str | int | Detector | cv2.Feature2D = DEFAULT_DETECTOR,
        **others: Never,
    ) -> None:
        _refuse(others)
        if first is None and _is_number(detector):
            first, detector = detector, DEFAULT_DETECTOR
        if _is_number(first):
            if max_keypoints is not None:
                raise ValueError(
                    f"detector: expected a name or an OpenCV detector, got {first}; the number "
                    f"of keypoints is there already (max_keypoints={max_keypoints})"
                )
            max_keypoints = int(first)
        elif first is not None:
            if detector != DEFAULT_DETECTOR:
                raise ValueError(f"detector: expected one, got {first!r} and {detector!r}")
            detector = first
        self._given: dict[str, Any] = {
            "detector": detector,
            "max_keypoints": max_keypoints,
            "model": model,
            "side": side,
            "upright": upright,
            "output": output,
            "n_threads": n_threads,
            "device": device,
        }
        if device == "cpu":  # where compiled loops are faster than PyTorch
            device = None
        self._device = device
        self.detector = as_detector(
            detector,
            max_keypoints=max_keypoints,
            upright=upright,
            n_threads=n_threads,
            device=device,
        )
        given = model if isinstance(model, MKD) else load_model(model)
        sides = sides_for(self.detector, given) if side is None else checked_sides(side)
        if len(sides) != given.squares:
            raise ValueError(f"side: expected {given.squares} for this model, got {side!r}")
        self.max_keypoints = max_keypoints
        own: dict[str, Any] = {"n_threads": n_threads}
        if output is not None:
            own["output"] = output
        if device is not None:
            own |= {"backend": "torch", "device": device}
        self.mkd = MKD(**{**given.get_params(deep=False), **own}).fit()
        #: Sides of the squares that are described, in units of sigma.
        self.sides = sides
        self.upright = upright
        size = int(self.mkd.patch_size)
        nothing = np.empty((0, len(sides), size, size), np.uint8)
        self._dims = self.mkd.transform(nothing).shape[1]
        self._module: DeviceFeatures | None = None

    def get_params(self) -> dict[str, Any]:
        """The constructor's arguments, as they were given."""
        return dict(self._given)

    def replace(self, **changes: Any) -> Features:
        """The same with other arguments: ``features.replace(n_threads=1)``."""
        return Features(**{**self._given, **changes})

    def __repr__(self) -> str:
        defaults = inspect.signature(Features).parameters
        shown = (
            f"{name}={value!r}"
            for name, value in self._given.items()
            if value is not defaults[name].default and value != defaults[name].default
        )
        return f"Features({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Features, tuple(self._given.values())

    def __deepcopy__(self, memo: dict[int, Any]) -> Features:
        return Features(**self._given)  # a detector of one's own is shared

    def extract(
        self, image: ArrayLike, mask: ArrayLike | None = None
    ) -> tuple[Keypoints, NDArray[Any]]:
        """Keypoints of an image, the strongest first, and their descriptors (N, D), as arrays.

        Parameters
        ----------
        image, mask
            As for :meth:`detect`.

        Examples
        --------
        >>> image = np.random.default_rng(0).integers(0, 256, (100, 100), np.uint8)
        >>> keypoints, descriptors = Features(20).extract(image)
        >>> keypoints.points.shape, keypoints.scores.shape, descriptors.shape
        ((20, 4), (20,), (20, 128))
        """
        gray = as_gray(image)
        module = self.on_device()
        if module is not None:
            check_gray_range(gray)
            where = None if mask is None else _as_mask(mask, gray.shape)
            return module.extract_array(gray, where)
        found = self.find_keypoints(gray, mask)
        return found, self.describe(gray, found)

    def on_device(self) -> DeviceFeatures | None:
        """What does all on a device, if there is one, and the detector can."""
        if self._device is None:
            return None
        if self._module is None and can_be_on_device(self.detector, self.max_keypoints):
            from mkdesc._support.launching import chosen_device
            from mkdesc.features.features_torch import Features as DeviceFeatures

            made = DeviceFeatures(
                self.detector,
                int(self.max_keypoints or 0),
                self.mkd,
                self.sides,
                self.upright,
                self.output,
            )
            self._module = made.to(chosen_device(self._device)).eval()
        return self._module

    def find_keypoints(self, image: ArrayLike, mask: ArrayLike | None = None) -> Keypoints:
        """Keypoints of an image, the strongest first, as arrays; :meth:`detect` gives objects.

        Parameters
        ----------
        image, mask
            As for :meth:`detect`.
        """
        gray = as_gray_uint8(image)
        where = None if mask is None else _as_mask(mask, gray.shape)
        found = self.detector.detect(gray, where)
        return (found.upright() if self.upright else found).strongest(self.max_keypoints)

    def detect(self, image: ArrayLike, mask: ArrayLike | None = None) -> tuple[cv2.KeyPoint, ...]:
        """Keypoints (``cv2.KeyPoint``) of an image, the strongest first.

        Parameters
        ----------
        image
            Gray (H, W) or colour (H, W, 3 or 4; blue first), uint8, uint16, or floats in [0, 1].
        mask
            bool or uint8 (H, W): keypoints are looked for where it is not zero.
        """
        return tuple(self.find_keypoints(image, mask).to_opencv())

    def compute(
        self, image: ArrayLike, keypoints: Sequence[cv2.KeyPoint], descriptors: None = None
    ) -> tuple[tuple[cv2.KeyPoint, ...], NDArray[Any]]:
        """Descriptors (N, D) of given keypoints, and the keypoints.

        As in OpenCV, those that cannot be described are removed: those more than a pixel outside
        of the image. Those at its border are not: beyond it, its outermost pixels go on.

        Parameters
        ----------
        image
            As for :meth:`detect`.
        keypoints
            ``cv2.KeyPoint`` objects.
        descriptors
            Only there because OpenCV has it.
        """
        if descriptors is not None:
            raise ValueError(
                "descriptors: expected None; they are returned, not written into an argument"
            )
        gray, found = as_gray(image), Keypoints.from_opencv(keypoints)
        kept = np.flatnonzero(~outside(found.points[:, :2], gray.shape))
        return tuple(keypoints[i] for i in kept.tolist()), self.describe(gray, found.take(kept))

    def detectAndCompute(
        self, image: ArrayLike, mask: ArrayLike | None = None
    ) -> tuple[tuple[cv2.KeyPoint, ...], NDArray[Any]]:
        """Keypoints of an image and their descriptors (N, D); (0, D) if there are none.

        Parameters
        ----------
        image, mask
            As for :meth:`detect`.
        """
        found, descriptors = self.extract(image, mask)
        return tuple(found.to_opencv()), descriptors

    def describe(self, image: ArrayLike, frames: Keypoints | ArrayLike) -> NDArray[Any]:
        """Descriptors (N, D) of keypoints, points (N, 4) or frames (N, 2 or 3, 3) of an image.

        Parameters
        ----------
        image
            As for :meth:`detect`.
        frames
            As for :func:`mkdesc.images.cut_patches`. Refused: those whose centre is more than a
            pixel outside of the image.
        """
        places = np.asarray(frames.points if isinstance(frames, Keypoints) else frames, np.float64)
        if self.upright and places.ndim == 2 and places.shape[1:] == (4,):
            places = places * [1, 1, 1, 0]
        gray = as_gray(image)
        check_gray_range(gray)
        centres = centres_of(places)
        lost = outside(centres, gray.shape)
        if lost.any():
            i = int(lost.argmax())
            (height, width), (x, y) = gray.shape, centres[i]
            raise ValueError(
                f"frames[{i}]: expected a place on the image, {width} x {height}, got {x:g}, {y:g}"
            )
        size = int(self.mkd.patch_size)
        threads = self.mkd.n_threads
        patches = cut_patches(
            gray, places, size, self.sides, interpolation="linear", n_threads=threads
        )
        return self.mkd.transform(patches)

    @property
    def output(self) -> str:
        """Type of the descriptors: ``"float32"``, ``"int8"``, ``"uint8"`` or ``"bits"``."""
        return self.mkd.output

    @property
    def ratio(self) -> float | None:
        """Of Lowe's test, that suits the model: what to put where SIFT's 0.75 stood.

        None if its card does not say.

        >>> 0.8 < Features().ratio < 1
        True
        """
        return None if self.mkd.ratio is None else float(self.mkd.ratio)

    def descriptorSize(self) -> int:
        """Numbers per descriptor; of bits, which are packed, bytes."""
        return self._dims

    def descriptorType(self) -> int:
        """OpenCV's name for the type of a descriptor: CV_32F, CV_8S or CV_8U."""
        cv2 = opencv()
        return int({"float32": cv2.CV_32F, "int8": cv2.CV_8S}.get(self.output, cv2.CV_8U))

    def defaultNorm(self) -> int:
        """OpenCV's name for the distance that compares descriptors: NORM_L2, NORM_HAMMING."""
        cv2 = opencv()
        return int(cv2.NORM_HAMMING if self.output == "bits" else cv2.NORM_L2)

    def empty(self) -> bool:
        """Whether there is nothing to detect with: never."""
        return False


#: What OpenCV's ``create`` functions take, and what to use here.
_OPENCV = {
    "nfeatures": "max_keypoints={value!r}, or the first argument",
    "contrastThreshold": 'make_detector("sift", contrast={value!r}) as the detector',
    "edgeThreshold": 'make_detector("sift", edge={value!r}) as the detector',
    "sigma": 'make_detector("sift", sigma={value!r}) as the detector',
    "nOctaveLayers": "cv2.SIFT_create(nOctaveLayers={value!r}) as the detector",
    "descriptorType": 'output="uint8" or another type',
    "scaleFactor": "cv2.ORB_create(scaleFactor={value!r}) as the detector",
    "nlevels": "cv2.ORB_create(nlevels={value!r}) as the detector",
    "fastThreshold": "cv2.ORB_create(fastThreshold={value!r}) as the detector",
    "threshold": "max_keypoints: the strongest are kept",
}


def _refuse(others: Mapping[str, object]) -> None:
    """Say what to use instead of arguments of OpenCV's; a TypeError for any others."""
    for name, value in others.items():
        if name not in _OPENCV:
            raise TypeError(f"Features() got an unexpected keyword argument {name!r}")
        raise ValueError(f"{name}: OpenCV's name; use {_OPENCV[name].format(value=value)}")


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _as_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """A mask as detectors take it; ValueError for what would lose its meaning as uint8.

    >>> _as_mask([[True, False]], (1, 2)).tolist()
    [[1, 0]]
    """
    expected = f"mask: expected bool or uint8 (H, W) = {shape}"
    if isinstance(mask, np.ma.MaskedArray):
        raise ValueError(f"{expected}, got a masked array; fill it first (.filled(value))")
    try:
        found = np.asarray(mask)
    except (ValueError, TypeError):
        raise ValueError(f"{expected}, got {type(mask).__name__}") from None
    if found.dtype not in (np.bool_, np.uint8):
        raise ValueError(f"{expected}, got {found.dtype}")
    if found.shape != shape:
        raise ValueError(f"mask: expected the image's shape {shape}, got {found.shape}")
    return np.ascontiguousarray(found, np.uint8)
