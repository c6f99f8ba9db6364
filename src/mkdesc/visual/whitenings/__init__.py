"""Linear projections for patch maps: the bundled ones, and those of any model.

The bundled whitenings were learned from photographs by the paper's methods, with nothing but a
linear projection between raw descriptor and final l2; ``make models`` learns them again.
"""

from __future__ import annotations

import os
from importlib.resources import as_file, files
from pathlib import Path

from mkdesc.descriptor import MKD
from mkdesc.heads.whitening import Projection, Whitening
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.models import load_model

__all__ = ["WhiteningLike", "as_projection", "bundled_whitenings", "load_whitening"]

#: What stands for a projection: itself, whatever holds one, or the name or file of a model.
WhiteningLike = Projection | Whitening | MKD | str | os.PathLike[str]

_SUFFIX = ".safetensors"


def bundled_whitenings() -> list[str]:
    """Names of the whitenings that come with the package for patch maps.

    >>> bundled_whitenings()
    ['cartesian-lw', 'polar-cartesian-lw', 'polar-lw', 'polar-pca']
    """
    names = (item.name for item in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def as_projection(whitening: WhiteningLike, parametrization: str | Parametrization) -> Projection:
    """The projection that something holds, checked to be one of ``parametrization``.

    Parameters
    ----------
    whitening
        A projection, a fitted :class:`~mkdesc.Whitening`, a descriptor with one, or what
        :func:`load_whitening` takes.
    parametrization
        Of the raw descriptors that it is applied to.

    Examples
    --------
    >>> as_projection("polar-lw", "polar").matrix.shape
    (175, 128)
    """
    kernels = as_parametrization(parametrization)
    if isinstance(whitening, (str, os.PathLike)):
        whitening = load_whitening(whitening)
    if isinstance(whitening, MKD):
        learned_on = as_parametrization(whitening.parametrization)
        if learned_on != kernels:
            raise ValueError(f"whitening: learned on {learned_on}, expected {kernels}")
        if whitening.whitening is None:
            raise ValueError("whitening: this MKD has none")
        whitening = whitening.whitening
    if isinstance(whitening, Whitening):
        whitening = whitening.learned()
    if not isinstance(whitening, Projection):
        raise ValueError(
            "whitening: expected a Whitening, a Projection, an MKD, a name or a file, got "
            f"{whitening!r}"
        )
    if whitening.matrix.ndim != 2 or not (
        len(whitening.mean) == len(whitening.matrix) == kernels.dims
    ):
        raise ValueError(
            f"whitening: learned on {len(whitening.mean)} numbers, expected {kernels.dims} "
            f"({kernels})"
        )
    return whitening


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
    file, *choice = name.rsplit(":", 2)
    if len(choice) == 2 and Path(file).is_file():
        return load_model(file, set=choice[0], method=choice[1])
    try:
        return load_model(name)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}, {', '.join(bundled_whitenings())}") from None
