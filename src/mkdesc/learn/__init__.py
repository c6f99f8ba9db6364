"""Learning a head: where matching pairs come from, and what is made of them.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets,
features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.learn.descriptors import LearnedDescriptor, learn_descriptor
    from mkdesc.learn.keypoints import LearnedKeypoints, learn_keypoints
    from mkdesc.learn.learner import learn_model
    from mkdesc.learn.photos import Recipe
    from mkdesc.learn.ratio import CalibratedRatio, calibrated_ratio
    from mkdesc.learn.report import Learned, Report
    from mkdesc.learn.shards import Shard, TrainingBlock
    from mkdesc.learn.sources import (
        learn_colmap,
        learn_hpatches,
        learn_patches,
        learn_photos,
        learn_phototourism,
    )
    from mkdesc.learn.trained_head import TrainedHead
    from mkdesc.learn.view_report import ViewReport

__all__ = [
    "CalibratedRatio",
    "Learned",
    "LearnedDescriptor",
    "LearnedKeypoints",
    "Recipe",
    "Report",
    "Shard",
    "TrainedHead",
    "TrainingBlock",
    "ViewReport",
    "calibrated_ratio",
    "learn_colmap",
    "learn_descriptor",
    "learn_hpatches",
    "learn_keypoints",
    "learn_model",
    "learn_patches",
    "learn_photos",
    "learn_phototourism",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
