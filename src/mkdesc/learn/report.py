"""What came of learning: a descriptor, and how well it does on points that were held out."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mkdesc.descriptor import MKD
from mkdesc.models import Card, save_model


@dataclass(frozen=True)
class Report:
    """What came of learning.

    Attributes
    ----------
    patches, points, pairs
        How many patches and distinct points there were, and how many matching pairs of them
        were learned from.
    held_out_pairs
        Matching pairs that were kept aside for the two scores.
    fpr95_raw, fpr95_learned
        False positive rate at 95% recall, in per cent, of the descriptors before and after the
        head, on held-out points; NaN if there were too few.
    seconds
        How long it took.
    fpr95_linear
        For heads that were trained: the same after the whitening that it began as.
    steps, interrupted
        For heads that were trained: how many steps, and whether Ctrl-C ended it early.
    """

    patches: int
    points: int
    pairs: int
    held_out_pairs: int
    fpr95_raw: float
    fpr95_learned: float
    seconds: float
    fpr95_linear: float = np.nan
    steps: int = 0
    interrupted: bool = False

    def lines(self) -> list[str]:
        """The report for reading."""
        text = [
            f"{self.patches:,} patches of {self.points:,} points, {self.pairs:,} matching pairs, "
            f"{self.seconds:.1f} s"
        ]
        if self.interrupted:
            text.append(f"interrupted after {self.steps:,} steps: this is the best until then")
        if np.isnan(self.fpr95_learned):
            return [*text, "too few points to hold any out for a score"]
        trained = not np.isnan(self.fpr95_linear)
        rates = {
            "raw": self.fpr95_raw,
            "linear": self.fpr95_linear,
            "trained" if trained else "learned": self.fpr95_learned,
        }
        known = (f"{rate:.2f}% {name}" for name, rate in rates.items() if not np.isnan(rate))
        return [
            *text,
            f"held out: {self.held_out_pairs:,} matching pairs, FPR95 {', '.join(known)}",
        ]


@dataclass(frozen=True)
class Learned:
    """What was learned.

    Attributes
    ----------
    mkd
        The descriptor with its whitening, or with the head that was trained.
    report
        How the learning went.
    source
        What it was learned from, for the card of the model.
    training
        How a head was trained, for the card too.
    held_out
        Photographs that were not learned from.
    """

    mkd: MKD
    report: Report
    source: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    held_out: list[str] = field(default_factory=list)

    def with_source(self, source: str, **settings: Any) -> Learned:
        """The same, with the source and settings noted."""
        return replace(self, source={"source": source, **settings})

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Card:
        """Write the model to a safetensors file; returns its card.

        A file that is no model is replaced only if ``overwrite`` says so.
        """
        facts = {name: value for name, value in asdict(self.report).items() if value == value}
        facts.pop("seconds")
        if not facts["steps"]:  # nothing was trained
            del facts["steps"], facts["interrupted"]
        for name in ("fpr95_raw", "fpr95_linear", "fpr95_learned"):
            if name in facts:
                facts[name] = round(facts[name], 2)
        known = self.source | self.training | facts
        return save_model(self.mkd, path, known, overwrite=overwrite)
