"""Large files of patches to files of descriptors, piece by piece, here or on a cluster.

May use: _support, datasets, descriptor, models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.batches.describing import describe_file as describe_file
    from mkdesc.batches.outputs import FORMATS as FORMATS

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
