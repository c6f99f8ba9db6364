"""Reading and writing models: ours, the bundled ones, and those in the layout of kornia/mkd."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc._support.text import shorten
from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import METHODS, Whitening, linear_head, pca_scale
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.models.card import Card, fingerprint

__all__ = ["bundled_models", "load_model", "read_card", "read_tensors", "save_model"]

_SUFFIX = ".safetensors"
#: Raw dimensions of the files in the layout of kornia/mkd, which do not name their kernels.
_KORNIA = {238: "polar+cartesian", 175: "polar", 63: "cartesian"}
_KORNIA_PATCH_SIZE = 64

#: Characters of an error message that quotes from a file.
_LONGEST_MESSAGE = 400

Tensors = dict[str, NDArray[Any]]


def bundled_models() -> list[str]:
    """Names of the models that come with the package.

    >>> "default" in bundled_models()
    True
    """
    folder = files("mkdesc.models")
    names = (item.name for item in folder.iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def save_model(
    mkd: MKD, path: str | os.PathLike[str], learned_from: dict[str, Any] | None = None
) -> Card:
    """Write a descriptor and its whitening to a safetensors file.

    Parameters
    ----------
    mkd
        A descriptor whose ``whitening`` is a fitted :class:`~mkdesc.heads.whitening.Whitening`.
    path
        Where to; should end in ``.safetensors``.
    learned_from
        Anything worth remembering of the learning, as plain values.

    Returns
    -------
    Card
        What the file says of itself.
    """
    from safetensors.numpy import save_file

    whitening = mkd.whitening
    if not isinstance(whitening, Whitening) or not whitening.__sklearn_is_fitted__():
        raise ValueError(f"mkd.whitening: expected a fitted Whitening, got {whitening!r}")
    parametrization = as_parametrization(mkd.parametrization)
    linear = whitening.learned(parametrization.dims).linear()
    assert linear is not None
    tensors = {"mean": linear.centre, "projection": linear.matrix}
    params = whitening.get_params()
    card = Card(
        parametrization=str(parametrization),
        patch_size=int(mkd.patch_size),
        method=params.pop("method"),
        dims=linear.matrix.shape[1],
        params={name: value for name, value in params.items() if name != "dims"},
        learned_from=learned_from or {},
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    card = replace(card, sha256=fingerprint(tensors, card))
    with atomic_path(path) as partial:
        save_file(tensors, partial, {"mkdesc": card.to_json()})
    return card


def load_model(
    model: str | os.PathLike[str],
    set: str | None = None,
    method: str | None = None,
    dims: int = 128,
) -> MKD:
    """Load a descriptor with its whitening.

    Parameters
    ----------
    model
        Name of a bundled model (``mkdesc models`` lists them) or path of a model file.
    set, method, dims
        For files in the layout of kornia/mkd only, which hold several models: the training set
        (such as ``"liberty"``), the whitening (pca, pcawt, pcaws or lw), the dimensions kept.

    Examples
    --------
    >>> mkd = load_model("default")
    >>> mkd.patch_size, mkd.transform(np.zeros((2, 64, 64), np.uint8)).shape
    (64, (2, 128))
    """
    path, tensors, metadata = _read(model)
    with _naming(path):
        if "mkdesc" in metadata:
            if set is not None or method is not None:
                raise ValueError("set and method are for files in the layout of kornia/mkd")
            return _from_ours(tensors, Card.from_json(metadata["mkdesc"]))
        return _from_kornia(tensors, set, method, dims)


def read_card(model: str | os.PathLike[str]) -> Card:
    """The card of a bundled model or of a model file, after checking the file.

    >>> read_card("default").dims
    128
    """
    path, tensors, metadata = _read(model)
    if "mkdesc" not in metadata:
        raise ValueError(f"{path}: not a model of mkdesc (it has no card)")
    with _naming(path):
        card = Card.from_json(metadata["mkdesc"])
        _from_ours(tensors, card)
    return card


def read_tensors(path: str | os.PathLike[str]) -> tuple[Tensors, dict[str, str]]:
    """Tensors and metadata of a model file; ValueError of one line for anything else."""
    try:
        return read_safetensors(path)
    except ValueError as error:  # may quote the name of a tensor
        raise ValueError(shorten(str(error), _LONGEST_MESSAGE)) from None


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors name the file, in one line: they quote names and values from it."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{path}: its card is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: {shorten(str(error), _LONGEST_MESSAGE)}") from None


def _read(model: str | os.PathLike[str]) -> tuple[str, Tensors, dict[str, str]]:
    if not isinstance(model, (str, os.PathLike)):
        raise ValueError(f"model: expected a name or a path, got {model!r}")
    name = os.fspath(model)
    if name in bundled_models():
        with as_file(files("mkdesc.models") / f"{name}{_SUFFIX}") as path:
            return name, *read_tensors(path)
    if not Path(name).is_file():
        raise FileNotFoundError(
            f"no model {name!r}: neither a file nor one of {', '.join(bundled_models())}"
        )
    return name, *read_tensors(name)


def _finite(name: str, tensor: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A tensor of the expected shape, of real finite numbers."""
    if tensor.shape != shape:
        raise ValueError(f"{name} has the shape {tensor.shape}, expected {shape}")
    with np.errstate(over="ignore"):
        single = tensor.astype(np.float32)
    if tensor.dtype.kind != "f" or not np.isfinite(single).all():
        raise ValueError(f"{name} has NaN, infinity or no real numbers")
    return single


def _from_ours(tensors: Tensors, card: Card) -> MKD:
    if sorted(tensors) != ["mean", "projection"]:
        raise ValueError(f"expected the tensors mean and projection, got {', '.join(tensors)}")
    parametrization = as_parametrization(card.parametrization)
    raw = parametrization.dims
    checked = {
        "mean": _finite("mean", tensors["mean"], (raw,)),
        "projection": _finite("projection", tensors["projection"], (raw, card.dims)),
    }
    if fingerprint(checked, card) != card.sha256:
        raise ValueError("card and tensors do not belong together (sha256 differs)")
    if card.params.keys() != {"t", "shrinkage", "ridge", "power"}:
        raise ValueError(f"its whitening has the parameters {', '.join(card.params)}")
    try:
        whitening = Whitening(card.method, card.dims, **card.params)
        whitening.check()
    except TypeError:
        raise ValueError(f"its whitening has the parameters {card.params}") from None
    whitening.head_ = linear_head(
        checked["mean"],
        checked["projection"],
        power=whitening.power,
        square_root=card.method == "pca",
    )
    mkd = MKD(parametrization, card.patch_size, whitening)
    return mkd.fit()


def _from_kornia(tensors: Tensors, subset: str | None, method: str | None, dims: int) -> MKD:
    sets = sorted({name.split(".")[0] for name in tensors if name.count(".") == 2})
    if not sets:
        raise ValueError("neither a model of mkdesc nor one in the layout of kornia/mkd")
    if subset not in sets:
        raise ValueError(f"set: expected one of {', '.join(sets)}, got {subset!r}")
    if method not in ("pca", "pcawt", "pcaws", "lw"):
        raise ValueError(f"method: expected pca, pcawt, pcaws or lw, got {method!r}")
    if not isinstance(dims, int) or dims < 1:
        raise ValueError(f"dims: expected an integer >= 1, got {dims!r}")
    prefix = f"{subset}.{'lw' if METHODS[method] else 'pca'}"
    names = [f"{prefix}.{part}" for part in ("mean", "eigvecs", "eigvals")]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise ValueError(f"the tensor {missing[0]} is missing")
    raw = tensors[names[0]].size
    if raw not in _KORNIA:
        raise ValueError(f"expected descriptors of 238, 175 or 63 numbers, got {raw}")
    shapes = ((raw,), (raw, raw), (raw,))
    mean, vectors, values = (
        _finite(name, tensors[name], shape) for name, shape in zip(names, shapes, strict=True)
    )
    if not (values > 0).all():
        raise ValueError(f"{names[2]} has eigenvalues that are not positive")
    whitening = Whitening(method, dims)
    if not METHODS[method]:
        vectors = vectors * pca_scale(values, method, whitening.t, whitening.shrinkage)
    whitening.head_ = linear_head(
        mean, np.ascontiguousarray(vectors[:, :dims], np.float32), square_root=method == "pca"
    )
    return MKD(_KORNIA[raw], _KORNIA_PATCH_SIZE, whitening).fit()
