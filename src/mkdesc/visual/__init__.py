"""Seeing what the kernels do: patch maps, the paper's figures, and why two patches are alike.

May use: _support, kernels, heads, compute, descriptor, models, images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.visual.figures import draw_figures
    from mkdesc.visual.inspection import Contributions, contributions
    from mkdesc.visual.inspection_figure import Inspection, inspect_pair
    from mkdesc.visual.patchmaps import patch_map
    from mkdesc.visual.typical import typical_scores

__all__ = [
    "Contributions",
    "Inspection",
    "contributions",
    "draw_figures",
    "inspect_pair",
    "patch_map",
    "typical_scores",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
