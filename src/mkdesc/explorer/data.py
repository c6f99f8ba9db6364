"""What the page knows: kernels, whitenings, patches, as JSON with arrays in base64."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.version import __version__
from mkdesc.descriptor import MKD
from mkdesc.explorer.patches import PATCH_SIZE, SOURCE_SIZE, bundled_patches, sample_photo
from mkdesc.heads.head import Affine, Head, Power
from mkdesc.kernels.parametrization import NAMED, as_parametrization
from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON
from mkdesc.kernels.pixelvalues import SPATIAL
from mkdesc.kernels.preparation import PREPARATIONS
from mkdesc.models import bundled_models, load_model
from mkdesc.visual.whitenings import bundled_whitenings, load_whitening

__all__ = [
    "MAX_IMAGE_BYTES",
    "MAX_MODEL_BYTES",
    "MOST_DIMS",
    "encode_gray",
    "encode_model",
    "page_data",
]

#: Files that are taken, at most.
MAX_IMAGE_BYTES = 20_000_000
MAX_MODEL_BYTES = 8_000_000


#: Longest raw descriptor that the page computes without lagging.
MOST_DIMS = 2500


def page_data() -> dict[str, Any]:
    """All that the page needs besides its own files.

    >>> sorted(page_data()["preparations"])
    ['paper', 'standard']
    """
    fitting = {
        name: asdict(one)
        for name, one in PREPARATIONS.items()
        if one.side is None or PATCH_SIZE % one.side == 0
    }
    named = {name: str(k) for name, k in NAMED.items() if k.preparation.name in fitting}
    named["polar+cartesian"] = str(as_parametrization("polar+cartesian"))
    models = [encode_model(name, load_whitening(name), "linear") for name in bundled_whitenings()]
    for name in bundled_models():
        mkd = load_model(name)
        if mkd.patch_size == PATCH_SIZE and mkd.whitening is not None:  # no hidden layers
            models.append(encode_model(name, mkd, "model"))
    photo = sample_photo()
    return {
        "version": __version__,
        "patch_size": PATCH_SIZE,
        "source_size": SOURCE_SIZE,
        "most_bytes": {"image": MAX_IMAGE_BYTES, "model": MAX_MODEL_BYTES},
        "most_dims": MOST_DIMS,
        "attributes": SPATIAL,
        "shape_epsilon": SHAPE_EPSILON,
        "preparations": fitting,
        "named": named,
        "models": models,
        "patches": [
            {"name": name, "label": label, **encode_gray(pixels)}
            for name, (label, pixels) in bundled_patches(photo).items()
        ],
        "photo": None if photo is None else encode_gray(photo),
    }


def encode_model(name: str, mkd: MKD, kind: str) -> dict[str, Any]:
    """A whitening for the page; ValueError if it is not one that the page can show.

    ``kind`` says where it comes from: ``"linear"`` (for patch maps), ``"model"`` or ``"file"``.
    """
    parametrization = as_parametrization(mkd.parametrization)
    if mkd.patch_size != PATCH_SIZE:
        raise ValueError(
            f"{name}: expected a model of {PATCH_SIZE}-px patches, got one of {mkd.patch_size} px"
        )
    if parametrization.dims > MOST_DIMS:
        raise ValueError(
            f"{name}: expected at most {MOST_DIMS} raw numbers, got {parametrization.dims}"
        )
    head = mkd.effective_head()
    if head is None:
        raise ValueError(f"{name}: this model has no whitening")
    linear = head.linear()
    if linear is None or mkd.whitening is None:
        raise ValueError(f"{name}: the page shows learned whitenings only, got {head!r}")
    powers = _powers(head)
    return {
        "name": name,
        "kind": kind,
        "parametrization": str(parametrization),
        "method": mkd.whitening.method,
        "dims": linear.matrix.shape[1],
        "power": powers[0],
        "square_root": powers[1] == 0.5,
        "mean": _encode(linear.centre, "<f4"),
        "matrix": _encode(linear.matrix, "<f4"),
    }


def _powers(head: Head) -> tuple[float, float]:
    """The exponents before and after the projection of a linear head; 1: none."""
    found = [1.0, 1.0]
    after = 0
    for stage in head.stages:
        after += isinstance(stage, Affine)
        if isinstance(stage, Power):
            found[after] = stage.exponent
    return found[0], found[1]


def encode_gray(image: NDArray[np.uint8]) -> dict[str, Any]:
    """A gray image (H, W).

    >>> encode_gray(np.zeros((1, 3), np.uint8))
    {'width': 3, 'height': 1, 'pixels': 'AAAA'}
    """
    height, width = image.shape
    return {"width": width, "height": height, "pixels": _encode(image, "u1")}


def _encode(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()
