"""Learning a head: where matching pairs come from, and what is made of them.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets.
"""

from __future__ import annotations

from mkdesc.learn.keypoints import KeypointReport, LearnedKeypoints, learn_keypoints
from mkdesc.learn.learner import learn_model, learn_shards
from mkdesc.learn.report import Learned, Report
from mkdesc.learn.shards import Shard, TrainingBlock
from mkdesc.learn.sources import (
    learn_colmap,
    learn_hpatches,
    learn_patches,
    learn_photos,
    learn_phototourism,
)
from mkdesc.learn.trained import TrainedHead

__all__ = [
    "KeypointReport",
    "Learned",
    "LearnedKeypoints",
    "Report",
    "Shard",
    "TrainedHead",
    "TrainingBlock",
    "learn_colmap",
    "learn_hpatches",
    "learn_keypoints",
    "learn_model",
    "learn_patches",
    "learn_photos",
    "learn_phototourism",
    "learn_shards",
]
