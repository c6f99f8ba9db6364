"""How a robust estimator searches."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache

import numpy as np

from mkdesc._support.check import check_choice, check_integer, check_number

#: The libraries that can estimate. ``"auto"``: PoseLib, or OpenCV where there is no PoseLib.
BACKENDS = ("auto", "poselib", "opencv")


@dataclass(frozen=True)
class EstimatorOptions:
    """How a robust estimator searches; thresholds are arguments of their own.

    Parameters
    ----------
    confidence
        Probability of having drawn a sample without outliers at which the search may end.
    min_iterations, max_iterations
        Samples that are drawn at least and at most.
    seed
        Of the random numbers: the same input gives the same bits.
    backend
        ``"poselib"`` (LO-RANSAC, then least squares), ``"opencv"`` (MAGSAC++), or ``"auto"``:
        PoseLib if it is installed. It is on every platform but Linux on ARM.

    Examples
    --------
    >>> EstimatorOptions(max_iterations=1000).confidence
    0.9999
    >>> EstimatorOptions(confidence=2)
    Traceback (most recent call last):
    ValueError: confidence: expected a number > 0 and < 1, got 2
    """

    confidence: float = 0.9999
    min_iterations: int = 100
    max_iterations: int = 10_000
    seed: int = 0
    backend: str = "auto"

    def __post_init__(self) -> None:
        check_number("confidence", self.confidence, above=0, below=1)
        most = int(np.iinfo(np.int32).max)
        check_integer("min_iterations", self.min_iterations, least=0, most=most)
        check_integer("max_iterations", self.max_iterations, most=most)
        check_integer("seed", self.seed, least=0, most=most)
        check_choice("backend", self.backend, BACKENDS)

    @property
    def library(self) -> str:
        """``"poselib"`` or ``"opencv"``: what estimates."""
        if self.backend != "auto":
            return self.backend
        return "poselib" if _has_poselib() else "opencv"

    def for_poselib(self, error: str, threshold: float) -> dict[str, float]:
        """PoseLib's options, with the threshold of this kind of error."""
        return {
            "success_prob": self.confidence,
            "min_iterations": min(self.min_iterations, self.max_iterations),
            "max_iterations": self.max_iterations,
            "seed": self.seed,
            error: threshold,
        }


@cache
def _has_poselib() -> bool:
    return importlib.util.find_spec("poselib") is not None
