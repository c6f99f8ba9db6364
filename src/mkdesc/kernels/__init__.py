"""The paper's section 3: kernels, what they look at in a patch, and parametrizations, which
are products and sums of them; the exact match kernel.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.kernels.angles import AngleKernel as AngleKernel
    from mkdesc.kernels.exact import match_kernel as match_kernel
    from mkdesc.kernels.grid import patch_grid as patch_grid
    from mkdesc.kernels.parametrization import CARTESIAN as CARTESIAN
    from mkdesc.kernels.parametrization import CARTESIAN_RELATIVE as CARTESIAN_RELATIVE
    from mkdesc.kernels.parametrization import POLAR as POLAR
    from mkdesc.kernels.parametrization import POLAR_ABSOLUTE as POLAR_ABSOLUTE
    from mkdesc.kernels.parametrization import Parametrization as Parametrization
    from mkdesc.kernels.parametrization import as_parametrization as as_parametrization
    from mkdesc.kernels.parametrization import product as product
    from mkdesc.kernels.patches import resize_patches as resize_patches
    from mkdesc.kernels.pixelfeatures import Intensity as Intensity
    from mkdesc.kernels.pixelfeatures import Shape as Shape
    from mkdesc.kernels.preparation import Preparation as Preparation
    from mkdesc.kernels.registering import register_feature as register_feature
    from mkdesc.kernels.vonmises import VonMises as VonMises

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
