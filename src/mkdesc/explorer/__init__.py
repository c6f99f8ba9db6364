"""A page in the browser in which kernels, patch maps and two patches can be played with.

May use: _support, kernels, heads, descriptor, models, images, visual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.explorer.page import export_page as export_page
    from mkdesc.explorer.server import serve as serve

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
