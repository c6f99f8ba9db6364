"""Learning a head: where matching pairs come from, and what is made of them.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets,
features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.learn.comparison import Comparison as Comparison
    from mkdesc.learn.comparison import Score as Score
    from mkdesc.learn.comparison import compare_features as compare_features
    from mkdesc.learn.descriptors import LearnedDescriptor as LearnedDescriptor
    from mkdesc.learn.descriptors import learn_descriptor as learn_descriptor
    from mkdesc.learn.keypoints import LearnedKeypoints as LearnedKeypoints
    from mkdesc.learn.keypoints import learn_keypoints as learn_keypoints
    from mkdesc.learn.learner import learn_model as learn_model
    from mkdesc.learn.photos import Recipe as Recipe
    from mkdesc.learn.ratio import CalibratedRatio as CalibratedRatio
    from mkdesc.learn.ratio import calibrated_ratio as calibrated_ratio
    from mkdesc.learn.report import Learned as Learned
    from mkdesc.learn.report import Report as Report
    from mkdesc.learn.shards import Shard as Shard
    from mkdesc.learn.shards import TrainingBlock as TrainingBlock
    from mkdesc.learn.sources import learn_colmap as learn_colmap
    from mkdesc.learn.sources import learn_hpatches as learn_hpatches
    from mkdesc.learn.sources import learn_patches as learn_patches
    from mkdesc.learn.sources import learn_photos as learn_photos
    from mkdesc.learn.sources import learn_phototourism as learn_phototourism
    from mkdesc.learn.trained_head import TrainedHead as TrainedHead
    from mkdesc.learn.view_report import ViewReport as ViewReport

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
