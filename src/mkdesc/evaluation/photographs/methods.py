"""From names to ways of finding and describing keypoints.

===================================  ==============================================================
``mkdesc``                           what :class:`mkdesc.Features` does by itself
``DETECTOR``, ``MODEL``,             the same with another detector (``sift``, ``dog``, ...), with
``DETECTOR+MODEL+upright+bits``      another model (``photo-net``, a model file), upright, by the
                                     signs alone; any of these, with ``+`` between
``rootsift``, ``sift-descriptor``    OpenCV's SIFT keypoints with its descriptor, and its root;
``rootsift-plain``                   the last with keypoints as ``cv2.SIFT_create()`` finds them,
                                     which are half a pixel of the doubled image off
``orb``, ``akaze``                   OpenCV's, binary
``aliked:FILE``, ``disk:FILE``,      kornia's networks with these weights; nothing is downloaded
``xfeat:FILE``
``opencv-aliked:FILE``,              OpenCV 5's, with an ONNX file
``opencv-disk:FILE``
``hloc:FILE``                        features in an HDF5 file of hloc's layout
``FEATURES+lightglue:FILE``          matches of these features (aliked, disk, xfeat, hloc or your
                                     own) by kornia's LightGlue with weights that were taught
                                     for them, instead of mutual nearest neighbours
``MODULE:FUNCTION``                  any Python function: gray (H, W) uint8 and a number of
                                     keypoints in; positions (N, 2), or keypoints (N, 4) with
                                     sigma and angle, and descriptors (N, D) out
``METHOD+grow``                      any of these, its matches grown by
                                     :func:`mkdesc.grow_matches`
===================================  ==============================================================
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.evaluation.contenders.base import file_hash
from mkdesc.evaluation.contenders.from_opencv import root
from mkdesc.evaluation.photographs.base import (
    GROW,
    LIGHTGLUE,
    Extract,
    Method,
    Photograph,
    PhotographFeatures,
)
from mkdesc.features.features import Features
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.registry import (
    DEFAULT_DETECTOR,
    DETECTORS,
    make_detector,
    settings_of,
)
from mkdesc.images.reading import opencv
from mkdesc.matching.growing.arguments import checked_keypoints
from mkdesc.measures.descriptors import as_descriptors
from mkdesc.models import DEFAULT_MODEL, bundled_models, read_card
from mkdesc.models.files import new_name

#: Binary features of OpenCV, and the arguments by which they find many keypoints.
_BINARY: dict[str, tuple[str, dict[str, Any]]] = {
    "orb": ("ORB_create", {"nfeatures": 100_000}),
    "akaze": ("AKAZE_create", {}),
}

#: OpenCV's SIFT: whether descriptors are rooted, and keypoints of the doubled image precise.
_SIFT = {
    "rootsift": (True, True),
    "rootsift-plain": (True, False),
    "sift-descriptor": (False, True),
}

#: Methods that need a file.
_FROM_FILES = ("aliked", "disk", "xfeat", "opencv-aliked", "opencv-disk", "hloc")


def get_methods(names: list[str]) -> list[Method]:
    """Several methods, each once; see :func:`get_method`."""
    if not names:
        raise ValueError("methods: expected at least one, got none")
    if len(set(names)) < len(names):
        raise ValueError(f"methods: expected different ones, got {', '.join(names)}")
    return [get_method(name) for name in names]


def get_method(name: str) -> Method:
    """The method of a name, as the table at the top of this module has them.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> get_method("rootsift").extract(Photograph("noise", image), 10).descriptors.shape
    (10, 128)
    """
    if name.endswith(GROW):
        return replace(get_method(name.removesuffix(GROW)), name=name)
    features, glued, weights = name.partition(LIGHTGLUE)
    if glued or name.startswith("lightglue:"):
        return _with_lightglue(name, features, weights)
    kind, colon, rest = name.partition(":")
    if name == "superpoint" or kind == "superpoint":
        raise ValueError(
            f"method {name!r}: kornia has no SuperPoint; extract its features with hloc, and give "
            "hloc:FILE"
        )
    if name in _BINARY:
        return Method(name, _opencv_binary(name), _opencv_version())
    if name in _SIFT:
        return Method(name, _opencv_sift(*_SIFT[name]), _opencv_version())
    if colon and kind in _FROM_FILES:
        if not Path(rest).is_file():
            raise ValueError(f"method {name!r}: expected {kind}:FILE, and there is no such file")
        return Method(name, _from_file(kind, rest), {"sha256": file_hash(rest)})
    if colon and kind.replace(".", "").isidentifier() and not Path(name.split("+")[0]).exists():
        return Method(name, _python_function(name, kind, rest))
    return _ours(name)


def _with_lightglue(name: str, features: str, weights: str) -> Method:
    """A method whose features a network of its own matches."""
    if ":" not in features or not weights:
        raise ValueError(
            f"method {name!r}: expected FEATURES+lightglue:FILE, with weights that were taught "
            "for these features (aliked:FILE, disk:FILE, xfeat:FILE, hloc:FILE or "
            "MODULE:FUNCTION); there are none for mkdesc's and for OpenCV's"
        )
    if not Path(weights).is_file():
        raise ValueError(f"method {name!r}: there is no file {weights}")
    from mkdesc.evaluation.photographs.lightglue import lightglue_matcher

    found = get_method(features)
    identity = {**found.identity, "lightglue sha256": file_hash(weights)}
    return Method(name, found.extract, identity, lightglue_matcher(Path(weights)))


def _ours(name: str) -> Method:
    """Parts with ``+`` between: a detector, a model, ``upright``, ``bits``; each at most once."""
    given: dict[str, Any] = {}
    key: str
    value: str | bool
    parts = name.split("+")
    for part in parts[1:] if parts[0] == "mkdesc" else parts:
        if part == "upright":
            key, value = "upright", True
        elif part == "bits":
            key, value = "output", part
        elif part in DETECTORS:
            key, value = "detector", part
        elif part in bundled_models() or Path(part).is_file():
            key, value = "model", part
        else:
            raise ValueError(
                f"no method {name!r}: {part!r}{new_name(part)} is no detector "
                f"({', '.join(DETECTORS)}), no model ({', '.join(bundled_models())} or a file), "
                "and not mkdesc, rootsift, orb, akaze, aliked:FILE, disk:FILE, xfeat:FILE, "
                "hloc:FILE or MODULE:FUNCTION"
            )
        if key in given:
            raise ValueError(f"method {name!r}: expected one {key}, got two")
        given[key] = value
    settings = {"detector": DEFAULT_DETECTOR, "model": DEFAULT_MODEL, "upright": False, **given}
    identity = {key: str(value) for key, value in settings.items()}
    identity["sha256"] = read_card(settings["model"]).sha256
    found_by = settings_of(make_detector(str(settings["detector"])))
    if "weights sha256" in found_by:
        identity["weights sha256"] = found_by["weights sha256"]
    known: dict[int, Features] = {}

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        if most not in known:
            known[most] = Features(**settings, max_keypoints=most, n_threads=1)
        found, descriptors = known[most].extract(photograph.gray)
        if known[most].output == "bits":
            descriptors = np.unpackbits(descriptors, axis=1)
        return PhotographFeatures(found.points, np.asarray(descriptors, np.float32))

    return Method(name, extract, identity)


def _opencv_version() -> dict[str, str]:
    return {"opencv": opencv().__version__}


def _opencv_sift(rooted: bool, precise: bool) -> Extract:
    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        made = opencv().SIFT_create(enable_precise_upscale=precise)
        keypoints = _strongest(made.detect(photograph.gray, None), most)
        keypoints, descriptors = made.compute(photograph.gray, keypoints)
        if descriptors is None:
            descriptors = np.empty((0, 128), np.float32)
        return _opencv_features(keypoints, root(descriptors) if rooted else descriptors)

    return extract


def _opencv_binary(name: str) -> Extract:
    factory, arguments = _BINARY[name]
    if not hasattr(opencv(), factory):
        raise ValueError(f"method {name!r}: this OpenCV ({opencv().__version__}) has no {factory}")

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        made = getattr(opencv(), factory)(**arguments)
        if name == "orb":
            made.setMaxFeatures(most)  # it spreads them over its pyramid
        keypoints, packed = made.detectAndCompute(photograph.gray, None)
        if packed is None:
            packed = np.empty((0, made.descriptorSize()), np.uint8)
        order = np.argsort([-keypoint.response for keypoint in keypoints], kind="stable")[:most]
        bits = np.unpackbits(packed[order], axis=1)
        return _opencv_features([keypoints[i] for i in order], bits.astype(np.float32))

    return extract


def _strongest(keypoints: Any, most: int) -> Any:
    return sorted(keypoints, key=lambda one: (-one.response, one.pt, one.size, one.angle))[:most]


def _opencv_features(keypoints: Any, descriptors: NDArray[Any]) -> PhotographFeatures:
    points = Keypoints.from_opencv(keypoints).points
    return PhotographFeatures(points, np.asarray(descriptors, np.float32))


def _opencv_network(factory: str, file: str) -> Extract:
    cv2 = opencv()
    if not hasattr(cv2, factory):
        raise ValueError(f"this OpenCV ({cv2.__version__}) has no {factory}; OpenCV 5 has")
    made = getattr(cv2, factory)(file)

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        colour = cv2.cvtColor(photograph.gray, cv2.COLOR_GRAY2BGR)
        keypoints, descriptors = made.detectAndCompute(colour, None)
        if descriptors is None:
            return PhotographFeatures(np.empty((0, 2)), np.empty((0, 128), np.float32))
        order = np.argsort([-keypoint.response for keypoint in keypoints], kind="stable")[:most]
        xy = np.array([keypoint.pt for keypoint in keypoints], np.float64)
        return PhotographFeatures(xy[order], np.asarray(descriptors[order], np.float32))

    return extract


def _from_file(kind: str, file: str) -> Extract:
    if kind.startswith("opencv-"):
        return _opencv_network(f"{kind.removeprefix('opencv-').upper()}_create", file)
    if kind == "hloc":
        from mkdesc.evaluation.photographs.stored import stored_features

        return stored_features(Path(file))
    from mkdesc.evaluation.photographs.kornia_networks import extractor

    return extractor(kind, Path(file))


def _python_function(name: str, module: str, function: str) -> Extract:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"method {name!r}: expected MODULE:FUNCTION ({error})") from None
    if not callable(found):
        raise ValueError(f"method {name!r}: expected a function, got {found!r}")

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        result = found(photograph.gray, most)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"{name}: expected positions and descriptors, got {type(result)}")
        keypoints = checked_keypoints(name, result[0])
        return PhotographFeatures(keypoints, as_descriptors(result[1], len(keypoints), name))

    return extract
