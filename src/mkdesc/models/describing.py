"""Patches to descriptors in one line, with a bundled model or a model file."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.kernels.patches import as_patches
from mkdesc.models.opening import open_model


def describe(
    patches: ArrayLike, model: str | os.PathLike[str] | None = None, resize: bool = False
) -> NDArray[np.float32]:
    """Describe patches with a learned model, in one line.

    Parameters
    ----------
    patches
        (N, W, W), (N, 1, W, W) or one (W, W); for a model that looks at k squares of a keypoint,
        (N, k, W, W). uint8, uint16, or float32 or float64 from 0 to 1.
    model
        What :func:`~mkdesc.models.open_model` takes: a bundled model (``mkdesc models`` lists
        them), a model file, or ``FILE:SET:METHOD``. None: ``default`` for 64-px patches, its
        sibling ``default-32`` for 32-px ones.
    resize
        Whether patches of another size than the model's are resampled or refused.

    Returns
    -------
    ndarray of shape (N, D), float32
        Unit vectors, one per keypoint.

    Examples
    --------
    >>> describe(np.zeros((3, 64, 64), np.uint8)).shape
    (3, 128)
    """
    if model is None:
        patches = as_patches(patches)
        model = "default-32" if patches.shape[-1] == 32 else "default"
    return open_model(model).set_params(resize=resize).transform(patches)
