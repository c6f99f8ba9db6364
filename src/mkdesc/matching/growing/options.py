"""What growing accepts."""

from __future__ import annotations

from dataclasses import dataclass

from mkdesc._support.check import check_integer, check_number


@dataclass(frozen=True, kw_only=True)
class GrowOptions:
    """What growing accepts as a match, and how far it looks for more.

    Attributes
    ----------
    min_correlation
        Of the gray values of both windows, after the fit; above 0, at most 1.
    neighbours
        Nearest keypoints of the same photograph whose matches predict where one is.
    min_agree
        Of these, how many must predict a match where it was found.
    tolerance, tolerance_share
        What a prediction may be off: pixels, and share of the distance to the neighbour.
    tries
        Predictions that are tried for each keypoint, at most.
    max_return
        Pixels that a match may be off after a second fit, from the other photograph back.
    min_texture
        Smaller eigenvalue of the structure matrix of a window with deviation 1: what a shift by
        one sample in the worst direction changes. 0: edges count, too.
    apart
        Pixels: of two matches that are nearer in both photographs, the one with the higher
        correlation is kept.

    Examples
    --------
    >>> GrowOptions(min_correlation=2)
    Traceback (most recent call last):
    ValueError: min_correlation: expected a number > 0 and <= 1, got 2
    """

    min_correlation: float = 0.75
    neighbours: int = 12
    min_agree: int = 3
    tolerance: float = 1.0
    tolerance_share: float = 0.1
    tries: int = 4
    max_return: float = 1.5
    min_texture: float = 0.0
    apart: float = 2.0

    def __post_init__(self) -> None:
        check_number("min_correlation", self.min_correlation, above=0, most=1)
        check_integer("neighbours", self.neighbours, most=1000)
        check_integer("min_agree", self.min_agree, least=0)
        check_integer("tries", self.tries, most=1000)
        for name in ("tolerance", "tolerance_share", "max_return", "min_texture", "apart"):
            check_number(name, getattr(self, name), least=0)
