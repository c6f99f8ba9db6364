"""What the page knows: kernels, whitenings, patches, as JSON with arrays in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.version import __version__
from mkdesc.descriptor import MKD, check_one_square
from mkdesc.explorer.patches import PATCH_SIZE, SOURCE_SIZE, bundled_patches, sample_photo
from mkdesc.kernels.parametrization import NAMED, as_parametrization
from mkdesc.kernels.patches import SMALLEST
from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON
from mkdesc.kernels.pixelvalues import SPATIAL
from mkdesc.kernels.preparation import PREPARATIONS
from mkdesc.kernels.products import ANGULAR, FEATURES
from mkdesc.models import bundled_models, load_model
from mkdesc.models.operations import operations_of
from mkdesc.visual.colours import DIVERGING, LINES, MAP
from mkdesc.visual.plotting import MUCH
from mkdesc.visual.whitenings import bundled_whitenings, load_whitening

#: Files that are taken, at most.
MAX_IMAGE_BYTES = 20_000_000
MAX_MODEL_BYTES = 8_000_000
#: The longer side of an image that the page gets.
MAX_SIDE = 1024
#: Most frequencies of a kernel that the page computes without lagging.
MOST_FREQUENCIES = 12
#: Sides of the patches of a model, in pixels.
PATCH_SIZES = (SMALLEST, 2 * PATCH_SIZE)

#: Longest raw descriptor that the page computes without lagging.
MOST_DIMS = 2500


def constants() -> dict[str, Any]:
    """What the page's scripts know of Python before any data come.

    >>> constants()["SIZE"]
    64
    """
    return {
        "SIZE": PATCH_SIZE,
        "LONGEST": MAX_SIDE,
        "MOST_FREQUENCIES": MOST_FREQUENCIES,
        "ANGULAR": ANGULAR,
        "EXPLICIT": list(FEATURES),
        "MUCH": MUCH,
        "COLOURS": {"map": MAP, "diverging": DIVERGING, "lines": LINES},
    }


def page_data() -> dict[str, Any]:
    """All that the page needs besides its own files.

    >>> sorted(page_data()["preparations"])
    ['fine-24', 'paper', 'standard', 'standard-24']
    """
    named = {name: str(k) for name, k in NAMED.items()}
    named["polar+cartesian"] = str(as_parametrization("polar+cartesian"))
    models = [encode_model(name, load_whitening(name), "linear") for name in bundled_whitenings()]
    bundled = {name: load_model(name) for name in bundled_models()}
    models += [
        encode_model(name, mkd, "model") for name, mkd in bundled.items() if mkd.squares == 1
    ]
    photo = sample_photo()
    return {
        "version": __version__,
        "patch_sizes": PATCH_SIZES,
        "source_size": SOURCE_SIZE,
        "most_bytes": {"image": MAX_IMAGE_BYTES, "model": MAX_MODEL_BYTES},
        "most_dims": MOST_DIMS,
        "attributes": SPATIAL,
        "shape_epsilon": SHAPE_EPSILON,
        "preparations": {name: one.to_dict() for name, one in PREPARATIONS.items()},
        "named": named,
        "models": models,
        "patches": [
            {"name": name, "label": label, **encode_gray(pixels)}
            for name, (label, pixels) in bundled_patches(photo).items()
        ],
        "photo": None if photo is None else encode_gray(photo),
    }


def encode_model(name: str, mkd: MKD, kind: str) -> dict[str, Any]:
    """A model for the page; ValueError if it is not one that the page can show.

    ``kind`` says where it comes from: ``"linear"`` (for patch maps), ``"model"`` or ``"file"``.
    Heads are operations and tensors, as in model files. Matrices after the first are large, and go
    in half precision, which is enough for the three digits that the page shows.
    """
    check_one_square(mkd, name, "the page")
    parametrization = as_parametrization(mkd.parametrization)
    low, high = PATCH_SIZES
    if not low <= mkd.patch_size <= high:
        raise ValueError(
            f"{name}: expected a model of patches of {low} to {high} px, got {mkd.patch_size} px"
        )
    if parametrization.dims > MOST_DIMS:
        raise ValueError(
            f"{name}: expected at most {MOST_DIMS} raw numbers, got {parametrization.dims}"
        )
    head = mkd.effective_head()
    if head is None:
        raise ValueError(f"{name}: this model has no whitening")
    operations, tensors = operations_of(head)
    first = next(operation["matrix"] for operation in operations if operation["op"] == "affine")
    return {
        "name": name,
        "kind": kind,
        "parametrization": str(parametrization),
        "patch_size": int(mkd.patch_size),
        "method": None if mkd.whitening is None else mkd.whitening.method,
        "head": operations,
        "tensors": {
            key: _encode_tensor(tensor, half=tensor.ndim == 2 and key != first)
            for key, tensor in tensors.items()
        },
    }


def _encode_tensor(tensor: NDArray[np.float32], half: bool) -> dict[str, str]:
    dtype, code = ("F16", "<f2") if half else ("F32", "<f4")
    return {"dtype": dtype, "data": _encode(tensor, code)}


def encode_gray(image: NDArray[np.uint8]) -> dict[str, Any]:
    """A gray image (H, W).

    >>> encode_gray(np.zeros((1, 3), np.uint8))
    {'width': 3, 'height': 1, 'pixels': 'AAAA'}
    """
    height, width = image.shape
    return {"width": width, "height": height, "pixels": _encode(image, "u1")}


def _encode(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()
