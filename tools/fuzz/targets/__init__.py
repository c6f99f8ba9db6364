"""Every reader of the package, and small good files for it, by room.

A target makes a folder of good files, says which of them may be damaged, and reads them all.
"""

from __future__ import annotations

from targets.batches import BATCHES
from targets.datasets import DATASETS
from targets.evaluation import EVALUATION
from targets.features import FEATURES
from targets.images import IMAGES
from targets.models import MODELS
from targets.outputs import OUTPUTS
from targets.retrieval import RETRIEVAL
from targets.target import Target

__all__ = ["TARGETS", "Target"]

#: By name.
TARGETS = {
    target.name: target
    for target in (
        *MODELS,
        *DATASETS,
        *IMAGES,
        *FEATURES,
        *RETRIEVAL,
        *BATCHES,
        *EVALUATION,
        *OUTPUTS,
    )
}
