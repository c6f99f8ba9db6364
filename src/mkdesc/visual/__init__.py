"""Seeing what the kernels do: patch maps, the paper's figures, and why two patches are alike.

May use: _support, kernels, heads, compute, descriptor, models, images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.visual.figures import draw_figures as draw_figures
    from mkdesc.visual.inspection import Contributions as Contributions
    from mkdesc.visual.inspection import contributions as contributions
    from mkdesc.visual.inspection_figure import Inspection as Inspection
    from mkdesc.visual.inspection_figure import inspect_pair as inspect_pair
    from mkdesc.visual.patchmaps import patch_map as patch_map
    from mkdesc.visual.typical import typical_scores as typical_scores

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
