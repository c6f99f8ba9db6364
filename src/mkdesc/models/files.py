"""Reading and writing model files, and the bundled ones."""

from __future__ import annotations

import copy
import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from mkdesc._support.check import checked_sides
from mkdesc._support.files import atomic_path, read_safetensors
from mkdesc._support.targets import check_target
from mkdesc._support.text import shorten
from mkdesc.descriptor import MKD, Side
from mkdesc.heads.head import Affine, Head
from mkdesc.heads.whitening import Whitening, linear_head
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.models.card import Card, read_json
from mkdesc.models.kornia_layout import from_kornia
from mkdesc.models.operations import Tensors, head_of, operations_of

#: What model files of this package have in them.
OWN_MODEL = rb"(?s)\A.{8}\{.*\"mkdesc\""

_SUFFIX = ".safetensors"

#: What bundled models were called before, and are called now.
_RENAMED = {"default": "paper", "default-32": "paper-32px", "compact": "paper-64"}

#: Characters of an error message that quotes from a file.
_LONGEST_MESSAGE = 400


def bundled_models() -> list[str]:
    """Names of the models that come with the package.

    >>> "paper" in bundled_models()
    True
    """
    return list(_bundled_names())


def new_name(name: str) -> str:
    """For errors: what a bundled model is called now, if it was called this before.

    >>> new_name("default"), new_name("photo")
    (" (now called 'paper')", '')
    """
    return f" (now called {_RENAMED[name]!r})" if name in _RENAMED else ""


def bundled_file(name: str) -> Path:
    """The file of a model that comes with the package."""
    return Path(str(files("mkdesc.models") / f"{name}{_SUFFIX}"))


@cache
def _bundled_names() -> tuple[str, ...]:
    names = (item.name for item in files("mkdesc.models").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def save_model(
    mkd: MKD,
    path: str | os.PathLike[str],
    learned_from: dict[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> Card:
    """Write a descriptor and its head to a safetensors file.

    Parameters
    ----------
    mkd
        A descriptor with a head, or with a fitted :class:`~mkdesc.Whitening`.
    path
        Where to; should end in ``.safetensors``.
    learned_from
        Anything worth remembering of the learning, as plain values.
    overwrite
        Whether to replace a file that is no model of this package.

    Returns
    -------
    Card
        What the file says of itself.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.safetensors"
    >>> card = save_model(load_model("extended-64"), file, {"of": "a copy"})
    >>> load_model(file).transform(np.zeros((1, 64, 64), np.uint8)).shape
    (1, 64)
    """
    from safetensors.numpy import save

    check_target(path, own=OWN_MODEL, overwrite=overwrite)
    head = mkd.effective_head()
    if head is None:
        raise ValueError(f"mkd: expected one with a head or a fitted Whitening, got {mkd!r}")
    _check_unit(mkd, head)
    operations, tensors = operations_of(head)
    params = {} if mkd.whitening is None else mkd.whitening.get_params()
    card = Card(
        parametrization=str(as_parametrization(mkd.parametrization)),
        patch_size=int(mkd.patch_size),
        dims=head.dims_out,
        head=operations,
        method=params.pop("method", None),
        params={name: value for name, value in params.items() if name != "dims"},
        side=_plain_side(mkd.side),
        ratio=None if mkd.ratio is None else float(mkd.ratio),
        learned_from=learned_from or {},
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    card = replace(card, sha256=card.fingerprint(tensors))
    with atomic_path(path) as partial:
        # Not by save_file, which leaves a temporary file of its own if it is killed.
        partial.write_bytes(save(tensors, {"mkdesc": card.to_json()}))
    return card


def _plain_side(side: Side) -> float | list[float] | None:
    """Sides as a card has them."""
    if side is None:
        return None
    one, *others = checked_sides(side)
    return [one, *others] if others else one


def _check_unit(mkd: MKD, head: Head) -> None:
    """Refuse a head that does not make unit vectors, such as one learned from a few patches."""
    kernels, size = as_parametrization(mkd.parametrization), int(mkd.patch_size)
    shape = (4, mkd.squares, size, size)
    patches = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    raw = MKD(kernels, size, backend="numpy", side=mkd.side).transform(patches)
    lengths = np.linalg.norm(head.apply(raw), axis=1)
    if not np.allclose(lengths, 1, atol=1e-3):
        worst = lengths[np.argmax(np.where(np.isfinite(lengths), np.abs(lengths - 1), np.inf))]
        raise ValueError(
            f"mkd: its head makes descriptors of length {worst:.3g}, expected 1; was it learned "
            "from too few patches?"
        )


def load_model(
    model: str | os.PathLike[str],
    set: str | None = None,
    method: str | None = None,
    dims: int = 128,
) -> MKD:
    """Load a descriptor with its head.

    Parameters
    ----------
    model
        Name of a bundled model (``mkdesc models`` lists them) or path of a model file.
    set, method, dims
        For files in the layout of kornia/mkd only, which hold several models: the training set
        (such as ``"liberty"``), the whitening (pca, pcawt, pcaws or lw), the dimensions kept.

    Examples
    --------
    >>> import numpy as np
    >>> mkd = load_model("paper")
    >>> mkd.patch_size, mkd.transform(np.zeros((2, 64, 64), np.uint8)).shape
    (64, (2, 128))
    """
    if set is None and method is None and model in _bundled_names():
        mkd = copy.copy(_bundled(os.fspath(model))[1])  # a caller may change its parameters
        mkd.whitening = copy.copy(mkd.whitening)
        return mkd
    path, tensors, metadata = _read(model)
    with _naming(path):
        if "mkdesc" in metadata:
            if set is not None or method is not None:
                raise ValueError("set and method are for files in the layout of kornia/mkd")
            return _checked(tensors, metadata["mkdesc"])[1]
        return from_kornia(tensors, set, method, dims)


def read_card(model: str | os.PathLike[str]) -> Card:
    """The card of a bundled model or of a model file, after checking the file.

    >>> read_card("paper").dims
    128
    """
    if model in _bundled_names():
        return copy.deepcopy(_bundled(os.fspath(model))[0])
    path, tensors, metadata = _read(model)
    if "mkdesc" not in metadata:
        raise ValueError(f"{path}: not a model of mkdesc (it has no card)")
    with _naming(path):
        return _checked(tensors, metadata["mkdesc"])[0]


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


@cache
def _bundled(name: str) -> tuple[Card, MKD]:
    """A bundled model, read and checked once; its numbers are read-only."""
    _, tensors, metadata = _read(name)
    return _checked(tensors, metadata["mkdesc"])


def _read(model: str | os.PathLike[str]) -> tuple[str, Tensors, dict[str, str]]:
    if not isinstance(model, (str, os.PathLike)):
        raise ValueError(f"model: expected a name or a path, got {model!r}")
    name = os.fspath(model)
    if name in _bundled_names():
        with as_file(files("mkdesc.models") / f"{name}{_SUFFIX}") as path:
            return name, *read_tensors(path)
    if not Path(name).is_file():
        raise FileNotFoundError(
            f"no model {name!r}{new_name(name)}: neither a file nor one of "
            f"{', '.join(_bundled_names())}"
        )
    return name, *read_tensors(name)


def _checked(tensors: Tensors, text: str) -> tuple[Card, MKD]:
    """A card and the descriptor that it and the tensors make."""
    card = Card.from_values(read_json(text))
    head = head_of(card.head, tensors)
    if card.fingerprint(tensors) != card.sha256:
        raise ValueError("its card does not match its tensors (sha256 differs)")
    if head.dims_out != card.dims:
        raise ValueError(f"its card says dims = {card.dims}, its head gives {head.dims_out}")
    kernels = as_parametrization(card.parametrization)
    side = tuple(card.side) if isinstance(card.side, list) else card.side
    mkd = MKD(kernels, card.patch_size, side=side, ratio=card.ratio)
    if card.method is None:
        mkd.head = head
    else:
        mkd.whitening = _whitening(card, head)
    mkd.effective_head()  # refuses what does not fit
    return card, mkd


def _whitening(card: Card, head: Head) -> Whitening:
    """The whitening that a head was learned by."""
    if card.params.keys() != {"t", "shrinkage", "ridge", "power"}:
        raise ValueError(f"its whitening has the parameters {', '.join(card.params)}")
    try:
        whitening = Whitening.of_head(head, method=card.method, dims=card.dims, **card.params)
    except TypeError:
        raise ValueError(f"its whitening has the parameters {card.params}") from None
    linear, root = head.linear(), card.method == "pca"
    if linear is None or _kinds(head) != _kinds(
        linear_head(linear.centre, linear.matrix, power=whitening.power, square_root=root)
    ):
        raise ValueError(f"its head ({head}) is not one of {card.method}, {card.params}")
    return whitening


def _kinds(head: Head) -> list[object]:
    """The stages of a head, whatever its matrices."""
    return [Affine if isinstance(stage, Affine) else stage for stage in head.stages]
