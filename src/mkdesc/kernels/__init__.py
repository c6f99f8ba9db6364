"""The paper's section 3: kernels, what they look at in a patch, and parametrizations, which
are products and sums of them; the exact match kernel.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.kernels.angles import AngleKernel
    from mkdesc.kernels.exact import match_kernel
    from mkdesc.kernels.grid import patch_grid
    from mkdesc.kernels.parametrization import (
        CARTESIAN,
        CARTESIAN_RELATIVE,
        POLAR,
        POLAR_ABSOLUTE,
        Parametrization,
        as_parametrization,
        product,
    )
    from mkdesc.kernels.patches import resize_patches
    from mkdesc.kernels.pixelfeatures import Intensity, Shape
    from mkdesc.kernels.preparation import Preparation
    from mkdesc.kernels.registering import register_feature
    from mkdesc.kernels.vonmises import VonMises

__all__ = [
    "CARTESIAN",
    "CARTESIAN_RELATIVE",
    "POLAR",
    "POLAR_ABSOLUTE",
    "AngleKernel",
    "Intensity",
    "Parametrization",
    "Preparation",
    "Shape",
    "VonMises",
    "as_parametrization",
    "match_kernel",
    "patch_grid",
    "product",
    "register_feature",
    "resize_patches",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
