"""Linear projections for patch maps: the bundled ones, and those of any model.

The bundled whitenings were learned from photographs by the paper's methods, with nothing but a
linear projection between raw descriptor and final l2; ``make models`` learns them again.
"""

from __future__ import annotations

import os
from importlib.resources import as_file, files

from mkdesc.descriptor import MKD, check_one_square
from mkdesc.heads.head import Affine, Head
from mkdesc.heads.whitening import Whitening
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.models import load_model, open_model

__all__ = ["WhiteningLike", "as_head", "bundled_whitenings", "linear_part", "load_whitening"]

#: What stands for a projection: itself, whatever holds one, or the name or file of a model.
WhiteningLike = Head | Whitening | MKD | str | os.PathLike[str]

_SUFFIX = ".safetensors"


def bundled_whitenings() -> list[str]:
    """Names of the whitenings that come with the package for patch maps.

    >>> bundled_whitenings()
    ['cartesian-lw', 'polar-cartesian-lw', 'polar-lw', 'polar-pca']
    """
    names = (item.name for item in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def as_head(whitening: WhiteningLike, parametrization: str | Parametrization) -> Head:
    """The head that something holds, checked to be one of ``parametrization``.

    Parameters
    ----------
    whitening
        A head, a fitted :class:`~mkdesc.Whitening`, a descriptor with one, or what
        :func:`load_whitening` takes.
    parametrization
        Of the raw descriptors that it is applied to.

    Examples
    --------
    >>> as_head("polar-lw", "polar").dims_out
    128
    """
    kernels = as_parametrization(parametrization)
    if isinstance(whitening, (str, os.PathLike)):
        whitening = load_whitening(whitening)
    if isinstance(whitening, MKD):
        check_one_square(whitening, "whitening", "a map")
        learned_on = as_parametrization(whitening.parametrization)
        if learned_on != kernels:
            raise ValueError(f"whitening: learned on {learned_on}, expected {kernels}")
        head = whitening.effective_head()
        if head is None:
            raise ValueError("whitening: this MKD has none")
        whitening = head
    if isinstance(whitening, Whitening):
        whitening = whitening.learned()
    if not isinstance(whitening, Head):
        raise ValueError(
            f"whitening: expected a Whitening, a Head, an MKD, a name or a file, got {whitening!r}"
        )
    if whitening.dims_in != kernels.dims:
        raise ValueError(
            f"whitening: learned on {whitening.dims_in} numbers, expected {kernels.dims} "
            f"({kernels})"
        )
    return whitening


def linear_part(head: Head) -> Affine:
    """The projection of a linear head; ValueError for others, which have no patch maps."""
    linear = head.linear()
    if linear is None:
        raise ValueError(
            "whitening: this head has a hidden layer: it is no projection, and what a pixel adds "
            "depends on all others; expected a linear head"
        )
    return linear


def load_whitening(name: str | os.PathLike[str]) -> MKD:
    """A descriptor with its whitening: a name of :func:`bundled_whitenings`, or a model.

    Parameters
    ----------
    name
        Besides, a bundled model, a model file, or ``FILE:SET:METHOD`` for one of the models in a
        file in the layout of kornia/mkd, such as ``mkd-polar-64.safetensors:liberty:lw``.

    Examples
    --------
    >>> load_whitening("polar-pca").whitening.method
    'pca'
    """
    name = os.fspath(name)
    if name in bundled_whitenings():
        with as_file(files(__name__) / f"{name}{_SUFFIX}") as path:
            return load_model(path)
    try:
        return open_model(name)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}, {', '.join(bundled_whitenings())}") from None
