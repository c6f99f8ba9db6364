"""What came of learning from pairs of views of photographs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """How well keypoints match, per pair of views: as many as a detector would be asked for.

    Attributes
    ----------
    right, matches, points
        Right matches (within 4 px, or 8 at coarse levels), mutual matches, keypoints.
    """

    right: float
    matches: float
    points: float

    @property
    def precision(self) -> float:
        """Share of the matches that are right."""
        return self.right / max(self.matches, 1.0)

    def __str__(self) -> str:
        return (
            f"{self.right:.1f} right matches of {self.points:.0f} keypoints, "
            f"precision {self.precision:.3f}"
        )


#: Fewer steps than this are told of.
FEW_STEPS = 50


@dataclass(frozen=True)
class ViewReport:
    """What came of teaching.

    Attributes
    ----------
    photos, held_out
        How many photographs were learned from, and the names of those that were not.
    before, after
        Figures on photographs that were held out (too few: on all), before and after.
    steps, seconds, interrupted
        How long training took, without what came before and after, and whether Ctrl-C ended it.
    """

    photos: int
    held_out: list[str]
    before: Figures
    after: Figures
    steps: int
    seconds: float
    interrupted: bool

    def lines(self) -> list[str]:
        """The report for reading."""
        which = "photographs held out" if self.held_out else "the photographs learned from"
        pace = f"{self.steps / max(self.seconds, 1e-9):.1f} steps/s"
        trained = f", {self.steps:,} steps in {self.seconds:.1f} s ({pace})" if self.steps else ""
        lines = [
            f"{self.photos} photographs{trained}",
            f"on pairs of views of {which}:",
            f"  before: {self.before}",
            f"  after:  {self.after}",
        ]
        if 0 < self.steps < FEW_STEPS:
            lines.insert(1, "so few steps change hardly anything")
        if self.interrupted:
            lines.insert(1, "interrupted: this is the best until then")
        return lines
