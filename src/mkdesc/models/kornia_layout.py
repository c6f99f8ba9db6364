"""Models in the layout of kornia/mkd: several in one file, by training set and whitening."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_choice, check_integer
from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import METHODS, Whitening, linear_head, pca_scale
from mkdesc.models.operations import Tensors

#: Raw dimensions of these files, which do not name their kernels.
_KERNELS = {238: "polar+cartesian", 175: "polar", 63: "cartesian"}
_PATCH_SIZE = 64


def from_kornia(tensors: Tensors, subset: str | None, method: str | None, dims: int) -> MKD:
    """The descriptor with one of the whitenings."""
    sets = sorted({name.split(".")[0] for name in tensors if name.count(".") == 2})
    if not sets:
        raise ValueError("neither a model of mkdesc nor one in the layout of kornia/mkd")
    check_choice("set", subset, sets)
    method = check_choice("method", method, ("pca", "pcawt", "pcaws", "lw"))
    check_integer("dims", dims)
    prefix = f"{subset}.{'lw' if METHODS[method] else 'pca'}"
    names = [f"{prefix}.{part}" for part in ("mean", "eigvecs", "eigvals")]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise ValueError(f"the tensor {missing[0]} is missing")
    raw = tensors[names[0]].size
    if raw not in _KERNELS:
        raise ValueError(f"expected descriptors of 238, 175 or 63 numbers, got {raw}")
    shapes = ((raw,), (raw, raw), (raw,))
    mean, vectors, values = (
        _finite(name, tensors[name], shape) for name, shape in zip(names, shapes, strict=True)
    )
    if not (values > 0).all():
        raise ValueError(f"{names[2]} has eigenvalues that are not positive")
    plain = Whitening(method, dims)
    if not METHODS[method]:
        vectors = vectors * pca_scale(values, method, plain.t, plain.shrinkage)
    matrix = np.ascontiguousarray(vectors[:, :dims], np.float32)
    head = linear_head(mean, matrix, square_root=method == "pca")
    whitening = Whitening.of_head(head, **plain.get_params())
    return MKD(_KERNELS[raw], _PATCH_SIZE, whitening).fit()


def _finite(name: str, tensor: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A tensor of the expected shape, of real finite numbers."""
    if tensor.shape != shape:
        raise ValueError(f"{name} has the shape {tensor.shape}, expected {shape}")
    with np.errstate(over="ignore"):
        single = tensor.astype(np.float32)
    if tensor.dtype.kind != "f" or not np.isfinite(single).all():
        raise ValueError(f"{name} has NaN, infinity or no real numbers")
    return single
