"""What follows the raw descriptor: stages such as power, projection, root and norm,
statistics, and how linear heads are learned from them.

May use: _support, measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.heads.head import L2 as L2
    from mkdesc.heads.head import Affine as Affine
    from mkdesc.heads.head import Head as Head
    from mkdesc.heads.head import Power as Power
    from mkdesc.heads.head import Relu as Relu
    from mkdesc.heads.statistics import Statistics as Statistics
    from mkdesc.heads.whitening import Whitening as Whitening

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
