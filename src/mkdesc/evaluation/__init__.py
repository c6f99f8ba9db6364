"""How well and how fast features and descriptors do: ours and others', on photographs and by the
protocols of the two benchmarks of patches.

May use: _support, kernels, geometry, measures, heads, compute, descriptor, models, images,
datasets, matching, features, visual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.evaluation.contenders.base import PatchDescriptor as PatchDescriptor
    from mkdesc.evaluation.contenders.registry import get_descriptor as get_descriptor
    from mkdesc.evaluation.contenders.registry import named_descriptors as named_descriptors
    from mkdesc.evaluation.hpatches.benchmark import run_hpatches as run_hpatches
    from mkdesc.evaluation.photographs.base import PhotographOptions as PhotographOptions
    from mkdesc.evaluation.photographs.homography import run_homography as run_homography
    from mkdesc.evaluation.photographs.pose import run_pose as run_pose
    from mkdesc.evaluation.phototourism.benchmark import run_phototourism as run_phototourism
    from mkdesc.evaluation.phototourism.protocols import evaluate_revisited as evaluate_revisited
    from mkdesc.evaluation.phototourism.protocols import score_pairs as score_pairs
    from mkdesc.evaluation.report.compare import compare_runs as compare_runs
    from mkdesc.evaluation.report.runs import Results as Results
    from mkdesc.evaluation.speed import measure_speeds as measure_speeds
    from mkdesc.evaluation.speed import run_speed as run_speed

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
