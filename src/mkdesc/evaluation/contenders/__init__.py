"""Named descriptors: ours, OpenCV's, kornia's, files of others, and any Python callable."""

from __future__ import annotations

from mkdesc.evaluation.contenders.base import (
    CsvDescriptor,
    Descriptor,
    LearnedDescriptor,
    PatchDescriptor,
    ProjectedDescriptor,
    base_of,
)
from mkdesc.evaluation.contenders.registry import (
    get_descriptor,
    get_descriptors,
    named_descriptors,
)

__all__ = [
    "CsvDescriptor",
    "Descriptor",
    "LearnedDescriptor",
    "PatchDescriptor",
    "ProjectedDescriptor",
    "base_of",
    "get_descriptor",
    "get_descriptors",
    "named_descriptors",
]
