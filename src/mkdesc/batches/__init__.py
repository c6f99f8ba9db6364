"""Large files of patches to files of descriptors, piece by piece, here or on a cluster.

May use: _support, datasets, descriptor, models.
"""

from mkdesc.batches.describing import describe_file
from mkdesc.batches.outputs import FORMATS

__all__ = ["FORMATS", "describe_file"]
