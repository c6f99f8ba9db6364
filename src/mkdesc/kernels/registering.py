"""Your own pixel features, known by name."""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_integer
from mkdesc.kernels.parametrization import MOST_DIMS, NAMED
from mkdesc.kernels.pixelfeatures import OwnFeature, remember_feature
from mkdesc.kernels.preparation import PREPARATIONS
from mkdesc.kernels.products import BUILT_IN

Array = NDArray[np.float64]


def register_feature(name: str, function: Callable[[Array], Any], dims: int = 1) -> OwnFeature:
    """Make a pixel feature of one's own known by name, for parametrizations and model files.

    It is then a factor like ``intensity`` and ``shape``: in a text ``name(dims)``, in
    :func:`mkdesc.product` the object that this returns. Programs that load a model with it must
    register it first: model files hold the name, not the function. An installed package may have
    it done in every process, on the workers of a cluster too, by an entry point of the group
    ``mkdesc.features``: a function without arguments that calls this one.

    Parameters
    ----------
    name
        A new name, as Python's variables have them, that means nothing else in parametrizations.
    function
        Takes prepared patches (N, S, S), float64, of mean 0 and standard deviation 1, and returns
        features (N, S, S, dims). It may be called from several threads.
    dims
        Number of features.

    Examples
    --------
    Where it is bright, softly, in two levels:

    >>> levels = register_feature(
    ...     "levels", lambda q: np.stack([np.tanh(q - 1), np.tanh(q + 1)], axis=-1), dims=2
    ... )
    >>> from mkdesc import MKD
    >>> MKD("standard: x(8,2)*y(8,2)*levels(2)").transform(np.eye(64)).shape
    (1, 50)
    """
    taken = (*BUILT_IN, *NAMED, *PREPARATIONS)
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or iskeyword(name)
        or name in taken
        or name.lower() in NAMED  # read in any case
    ):
        raise ValueError(
            f"name: expected an identifier other than {', '.join(taken)}, got {name!r}"
        )
    if not callable(function):
        raise ValueError(f"function: expected something to call, got {function!r}")
    check_integer("dims", dims, 1, MOST_DIMS)
    return remember_feature(name, function, int(dims))
