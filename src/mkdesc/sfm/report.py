"""What a reconstruction came to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from mkdesc._support.files import atomic_path
from mkdesc._support.version import __version__
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.retrieval.pairs import NamePair
from mkdesc.sfm.grown_pairs import RefusedPair, name_pair, refused_pairs
from mkdesc.sfm.options import REPORT
from mkdesc.sfm.scenes import verified_counts

#: Matches of two images below which an image that has no others is doubtful.
WEAK = 100
#: Share of the points that the median image of a model sees, below which an image is doubtful.
FAINT = 0.1
#: Images that must see a point that counts in any case.
MANY = 3


@dataclass(frozen=True)
class SfmReport:
    """Numbers of the largest model, and what it was made of.

    Attributes
    ----------
    images, registered
        Usable images, and those of them whose camera was found.
    points, observations
        3-D points, and keypoints that see one.
    track_length
        Images that see a point, on average.
    points_of_many, track_length_of_many
        The same of points that three or more images see: two images agree on a point too easily.
    reprojection_error
        How far, in pixels, points are from where they are seen, on average.
    error_before
        The same from where the detector had found them, if keypoints were moved.
    models
        Number of models: parts of the scene that were not connected.
    sizes
        Images of each, the largest first.
    matched_pairs, verified_pairs, matches, inliers
        Pairs of images with matches, and with verified ones; how many of either.
    bad
        Images that were left out, and why.
    unregistered
        Names of usable images that are in no model.
    weak
        Images of a model that hang on one pair with few matches: that image, by name, and how
        many matches. They may be in a wrong place.
    faint
        Images that see few points of their model, and how many: less than a tenth of the median
        of its images. They may be in a wrong place, too.
    refused
        Pairs of images that were not used because their matches are wrong, or may be, and why.
    seconds
        What each stage took in this run, if it had anything to do.
    """

    images: int
    registered: int
    points: int
    observations: int
    track_length: float
    points_of_many: int
    track_length_of_many: float
    reprojection_error: float
    error_before: float | None
    models: int
    matched_pairs: int
    verified_pairs: int
    matches: int
    inliers: int
    bad: dict[str, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    weak: dict[str, tuple[str, int]] = field(default_factory=dict)
    faint: dict[str, int] = field(default_factory=dict)
    refused: list[RefusedPair] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def to_dict(self, made_of: dict[str, Any]) -> dict[str, Any]:
        """What is the same in each run, the version that made it, and what it was made of."""
        found = {**asdict(self), "mkdesc": __version__, "made_of": made_of}
        del found["seconds"]
        return found

    @classmethod
    def from_dict(cls, found: dict[str, Any], made_of: dict[str, Any]) -> SfmReport | None:
        """What :meth:`to_dict` gave, if it was made of the same; None otherwise."""
        if found.get("made_of") != made_of or found.get("mkdesc") != __version__:
            return None
        names = [key.name for key in fields(cls) if key.name != "seconds"]
        if not found.keys() >= {*names}:
            return None
        weak = {name: (other, count) for name, (other, count) in found["weak"].items()}
        own = {"weak": weak, "refused": [RefusedPair(*pair) for pair in found["refused"]]}
        return cls(**{name: found[name] for name in names} | own)

    @property
    def most_are_lost(self) -> bool:
        """Whether less than half of what was given is in any model."""
        given = self.images + len(self.bad)
        return 2 * (self.images - len(self.unregistered)) < given

    def lines(self) -> list[str]:
        """As text."""
        before = "" if self.error_before is None else f" ({self.error_before:.2f} px as found)"
        return [
            f"{self.registered} of {self.images} images registered"
            + (f" (the largest of {self.models} models: {_some(self.sizes)})" * (self.models > 1)),
            f"{self.points:,} points, mean track length {self.track_length:.2f}; "
            f"{self.points_of_many:,} in three images or more, {self.track_length_of_many:.2f}",
            f"mean reprojection error {self.reprojection_error:.2f} px{before}",
            f"{self.matches:,} matches of {self.matched_pairs} pairs; {self.inliers:,} of "
            f"{self.verified_pairs} pairs verified",
            *([f"not registered: {_some(self.unregistered)}"] if self.unregistered else []),
            *(
                f"doubtful: {name} hangs on {count} matches with {other} alone"
                for name, (other, count) in self.weak.items()
            ),
            *(
                f"doubtful: {name} sees {count} points, where most images see far more"
                for name, count in self.faint.items()
            ),
            *_first([f"refused: {name_pair(one[:2])}: {one.reason}" for one in self.refused]),
            *(f"left out: {reason}" for reason in self.bad.values()),
            *([_LOST.format(self.images + len(self.bad))] if self.most_are_lost else []),
        ]

    def times(self) -> str:
        """What each stage took, as text."""
        return ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in self.seconds.items())


#: What to do where most photographs are in no model.
_LOST = (
    "less than half of {} photographs could be placed: add photographs in between (each should "
    "show most of what another one shows), or try more --keypoints, --pairs exhaustive or "
    "--belief off"
)


def _first(lines: Sequence[str]) -> list[str]:
    """The first ten of some lines."""
    more = [f"... and {len(lines) - 10} more, see {REPORT}"] if len(lines) > 10 else []
    return [*lines[:10], *more]


def _some(items: Sequence[object]) -> str:
    """The first ten of some numbers or names as text."""
    more = f" and {len(items) - 10} more" if len(items) > 10 else ""
    return ", ".join(map(str, items[:10])) + more


def read_report(path: Path) -> dict[str, Any] | None:
    """What :meth:`SfmReport.to_dict` gave, out of a file; None if there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "mkdesc" not in found:
        raise ValueError(f"{path}: damaged, or not a report of mkdesc; remove it to continue")
    return found


def write_report(path: Path, content: dict[str, Any]) -> None:
    """Write what :func:`read_report` reads."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")


def make_report(
    models: Mapping[int, Any],
    database: Path,
    images: int,
    bad: dict[str, str],
    error_before: float | None,
    seconds: dict[str, float],
) -> SfmReport:
    """Count what came out.

    Parameters
    ----------
    models
        ``pycolmap.Reconstruction`` by number.
    database
        The database they are from.
    images
        Number of usable images.
    bad
        Images left out, and why.
    error_before, seconds
        See :class:`SfmReport`.
    """
    best = max(models.values(), key=lambda model: model.num_reg_images())
    registered = [
        {image.name for image in model.images.values() if image.has_pose}
        for model in models.values()
    ]
    pairs = verified_counts(database)
    lengths = np.array([point.track.length() for point in best.points3D.values()])
    many = lengths[lengths >= MANY]
    with pycolmap_module().Database.open(database) as base:
        names = [image.name for image in base.read_all_images()]
        counts = {
            "matched_pairs": base.num_matched_image_pairs(),
            "verified_pairs": len(pairs),
            "matches": base.num_matches(),
            "inliers": base.num_inlier_matches(),
        }
    return SfmReport(
        images=images,
        registered=best.num_reg_images(),
        points=best.num_points3D(),
        observations=best.compute_num_observations(),
        track_length=best.compute_mean_track_length(),
        points_of_many=len(many),
        track_length_of_many=float(many.mean()) if len(many) else 0.0,
        reprojection_error=best.compute_mean_reprojection_error(),
        error_before=error_before,
        models=len(models),
        **counts,
        bad=bad,
        sizes=sorted((model.num_reg_images() for model in models.values()), reverse=True),
        unregistered=sorted({*names}.difference(*registered)),
        weak=_weak(registered, pairs),
        faint=_faint(
            {image.name: image.num_points3D for image in model.images.values() if image.has_pose}
            for model in models.values()
        ),
        refused=refused_pairs(database),
        seconds=seconds,
    )


def _faint(models: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Images that see few points, of models given by the points that their images see.

    >>> _faint([{"a": 500, "b": 700, "c": 40}, {"d": 30, "e": 31}])
    {'c': 40}
    """
    return {
        name: count
        for seen in models
        for name, count in sorted(seen.items())
        if count < FAINT * np.median(list(seen.values()))
    }


def _weak(models: Sequence[set[str]], pairs: Mapping[NamePair, int]) -> dict[str, tuple[str, int]]:
    """Images that a single pair with few matches ties to the others of their model."""
    weak = {}
    for names in models:
        ties: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
        for (a, b), count in pairs.items():
            if a in names and b in names:
                ties[a].append((b, count))
                ties[b].append((a, count))
        for name, others in ties.items():
            if len(names) > 2 and len(others) == 1 and others[0][1] < WEAK:
                weak[name] = others[0]
    return dict(sorted(weak.items()))
