"""Patches to descriptors in one line, with a bundled model or a model file."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc.models.opening import PATCH_MODEL, open_model


def describe(
    patches: ArrayLike, model: str | os.PathLike[str] = PATCH_MODEL, resize: bool = False
) -> NDArray[np.float32]:
    """Describe patches with a learned model, in one line.

    Parameters
    ----------
    patches
        (N, W, W), (N, 1, W, W) or one (W, W); for a model that looks at k squares of a keypoint,
        (N, k, W, W). uint8, uint16, or float32 or float64 from 0 to 1.
    model
        What :func:`~mkdesc.models.open_model` takes: a bundled model (``mkdesc models`` lists
        them), a model file, or ``FILE:SET:METHOD``. The default, ``extended``, takes
        patches of 32 px, 64 px and other multiples of 32.
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
    return open_model(model).set_params(resize=resize).transform(patches)
