"""Features of one's own beside others, on photographs that they were not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkdesc._support.progress import Progress, no_progress
from mkdesc.features.features import Features
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import reduced
from mkdesc.learn.ratio import SIZE, match_view

#: Views that are matched with their photographs, at least.
VIEWS = 12
#: Photographs below which a comparison says little.
FEW = 3
#: Share of right matches by which features must differ to be called better or worse.
SAME = 0.01


class Score(NamedTuple):
    """Mutual nearest neighbours in photographs and views of them: right ones, and all."""

    right: int
    matches: int

    @property
    def precision(self) -> float:
        """Share of the matches that are right."""
        return self.right / max(self.matches, 1)

    def __str__(self) -> str:
        return f"{self.right:,} right matches, precision {self.precision:.3f}"


@dataclass(frozen=True)
class Comparison:
    """How well features match, beside others.

    Attributes
    ----------
    photos, views
        How many photographs, and how many views of them were matched.
    mine, others
        What both find.
    """

    photos: int
    views: int
    mine: Score
    others: Score

    @property
    def gain(self) -> float:
        """Right matches more than the others', as a share of those.

        >>> Comparison(3, 12, Score(110, 150), Score(100, 150)).gain
        0.1
        """
        return (self.mine.right - self.others.right) / max(self.others.right, 1)

    def lines(self, other: str, advice: str) -> list[str]:
        """The comparison for reading.

        Parameters
        ----------
        other
            Name of the others.
        advice
            What to do if one's own are not better.
        """
        if self.gain > SAME:
            verdict = f"better than {other}"
        elif self.gain < -SAME:
            verdict = f"worse than {other}: {advice}"
        else:
            verdict = f"not better than {other}: {advice}"
        width = max(len(other), len("yours")) + 1
        lines = [
            f"on {self.views} views of {self.photos} photographs that were held out:",
            f"  {other + ':':<{width}} {self.others}",
            f"  {'yours:':<{width}} {self.mine}",
            verdict,
        ]
        if self.photos < FEW:
            lines.append("(of so few photographs this says little: learn from more)")
        return lines


def compare_features(
    mine: Features,
    others: Features,
    photos: Sequence[str | Path],
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Comparison:
    """Match photographs with random views of themselves, by two kinds of features.

    Parameters
    ----------
    mine, others
        What is compared; both see the same views.
    photos
        Files that neither should have been learned from. Those that cannot be read are left out.
    seed
        Of the views.
    progress
        Told of every view.

    Examples
    --------
    >>> import tempfile, cv2
    >>> noise = np.random.default_rng(0).integers(0, 256, (120, 120), np.uint8)
    >>> file = Path(tempfile.mkdtemp()) / "noise.png"
    >>> _ = cv2.imwrite(str(file), cv2.GaussianBlur(noise, (0, 0), 2))
    >>> found = compare_features(Features(60), Features(20), [file])
    >>> found.photos, found.views, found.gain > 1
    (1, 12, True)
    """
    images = []
    for photo in photos:
        with suppress(ValueError, OSError):
            images.append(reduced(read_gray(photo), SIZE))
    if not images:
        raise ValueError(f"photos: none of {len(photos)} can be read")
    totals = np.zeros((2, 2), np.int64)
    count = len(images) * -(-VIEWS // len(images))
    for number in range(count):
        gray = images[number % len(images)]
        for row, features in enumerate((mine, others)):
            found = match_view(features, gray, np.random.default_rng((seed, number)))
            totals[row] += np.count_nonzero(found.right), len(found.right)
        progress("comparing", number + 1, count)
    return Comparison(len(images), count, *(Score(*row) for row in totals.tolist()))
