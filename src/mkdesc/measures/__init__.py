"""Numbers about descriptors: distances between them, and how well scores rank.

May use: _support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.measures.distances import pair_distances as pair_distances
    from mkdesc.measures.ranking import average_precision as average_precision
    from mkdesc.measures.ranking import average_precisions as average_precisions
    from mkdesc.measures.ranking import fpr95 as fpr95
    from mkdesc.measures.ranking import fpr_at_recall as fpr_at_recall
    from mkdesc.measures.ranking import precision_recall_curve as precision_recall_curve
    from mkdesc.measures.ranking import roc_auc as roc_auc
    from mkdesc.measures.ranking import roc_curve as roc_curve

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
