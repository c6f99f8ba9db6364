"""The ways of computing: names, and the modules that do it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mkdesc.heads.head import Head
from mkdesc.kernels.parametrization import Parametrization

#: Each module has a function ``describe``; ``reference`` is the definition.
BACKENDS = {
    "cpu": "mkdesc.compute.cpu.backend",
    "numpy": "mkdesc.compute.plain",
    "reference": "mkdesc.compute.reference",
    "torch": "mkdesc.compute.torch.backend",
}


class Describe(Protocol):
    """What every backend offers."""

    def __call__(
        self,
        patches: NDArray[Any],
        parametrization: Parametrization,
        *,
        head: Head | None = None,
        squares: int = 1,
        n_threads: int = 1,
        first: int = 0,
    ) -> NDArray[np.float32]:
        """Describe patches.

        Parameters
        ----------
        patches
            (N, W, W), checked by :func:`~mkdesc.kernels.patches.as_patches`.
        parametrization
            What is computed.
        head
            What raw descriptors go through; None: they are returned as they are.
        squares
            How many patches after each other show one keypoint; their raw descriptors become one,
            end to end.
        n_threads
            How many threads may share the work.
        first
            Index of the first patch, for error messages.

        Returns
        -------
        ndarray of shape (N / squares, D)
            Unit vectors, the same to rounding for any number of threads and any split of the
            patches; of ``cpu`` to the last bit. Without a head, ``squares`` of them end to end.
            ValueError for what a backend does not have.
        """


def load_backend(name: str, device: str | None = None) -> Describe:
    """The function that describes patches, imported when it is first needed.

    ``device`` is where ``torch`` computes; others have none.

    >>> load_backend("reference").__module__
    'mkdesc.compute.reference'
    """
    describe: Callable[..., NDArray[np.float32]] = import_module(BACKENDS[name]).describe
    return describe if device is None else partial(describe, device=device)
