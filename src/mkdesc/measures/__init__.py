"""Numbers about descriptors: distances between them, and how well scores rank.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.measures.distances import pair_distances
    from mkdesc.measures.ranking import (
        average_precision,
        average_precisions,
        fpr95,
        fpr_at_recall,
        precision_recall_curve,
        roc_auc,
        roc_curve,
    )

__all__ = [
    "average_precision",
    "average_precisions",
    "fpr95",
    "fpr_at_recall",
    "pair_distances",
    "precision_recall_curve",
    "roc_auc",
    "roc_curve",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
