"""How well and how fast features and descriptors do: ours and others', on photographs and by the
protocols of the two benchmarks of patches.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets,
matching, features, visual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.evaluation.contenders.base import PatchDescriptor
    from mkdesc.evaluation.contenders.registry import get_descriptor, named_descriptors
    from mkdesc.evaluation.hpatches.benchmark import run_hpatches
    from mkdesc.evaluation.photographs.homography import run_homography
    from mkdesc.evaluation.photographs.pose import run_pose
    from mkdesc.evaluation.photographs.scoring import PhotographOptions
    from mkdesc.evaluation.phototourism.benchmark import run_phototourism
    from mkdesc.evaluation.phototourism.protocols import evaluate_revisited, score_pairs
    from mkdesc.evaluation.report.compare import compare_runs
    from mkdesc.evaluation.report.runs import Results
    from mkdesc.evaluation.speed import measure_speeds, run_speed

__all__ = [
    "PatchDescriptor",
    "PhotographOptions",
    "Results",
    "compare_runs",
    "evaluate_revisited",
    "get_descriptor",
    "measure_speeds",
    "named_descriptors",
    "run_homography",
    "run_hpatches",
    "run_phototourism",
    "run_pose",
    "run_speed",
    "score_pairs",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
