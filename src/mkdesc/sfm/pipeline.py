"""Structure from motion: from a folder of photographs to cameras and points, by COLMAP."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from pathlib import Path

from mkdesc._support.files import atomic_path, only_here, saying_what_failed
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import is_same
from mkdesc._support.work import Workers
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.retrieval.pairs import NamePair
from mkdesc.sfm.earlier_matches import is_ours, is_verified, say_verified
from mkdesc.sfm.log import LOG, colmap_log
from mkdesc.sfm.mapping import SPARSE, check_models, map_images, verify_pairs, why_no_model
from mkdesc.sfm.matching import Matcher, match_pairs
from mkdesc.sfm.options import DATABASE, FEATURES, REPORT, Matched, SfmOptions
from mkdesc.sfm.others_database import copy_database
from mkdesc.sfm.page import PAGE, write_page
from mkdesc.sfm.preparing import (
    check_not_replaced,
    check_pages,
    check_seed,
    prepare,
    remove_journals,
)
from mkdesc.sfm.report import SfmReport, make_report, read_report, write_report
from mkdesc.sfm.scenes import share_cameras
from mkdesc.sfm.tracks import error_before, refine_tracks


def reconstruct(
    images: str | Path,
    output: str | Path,
    *,
    options: SfmOptions | None = None,
    pairs: str | Path = "auto",
    progress: Progress = no_progress,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
) -> SfmReport:
    """Reconstruct a scene: describe, match, verify, map; what is done already is kept.

    Parameters
    ----------
    images
        Folder of photographs (those of folders in it too).
    output
        Folder to write: ``features/``, ``database.db``, ``sparse/<n>/`` (COLMAP's binary files
        and ``points.ply``, the largest model as 0), ``report.json``, ``report.html`` (if plotly
        is there) and ``colmap.log``.
    options
        All settings.
    pairs
        Which images are matched. ``"exhaustive"``: all. ``"retrieved"``: those that look alike.
        ``"sequential"``: those that follow each other. ``"auto"``: all of up to 50, otherwise
        retrieved ones. Anything else: a text file of pairs of names; those of images that turn
        out not to be usable are left out.
    progress
        Told of every step and how far it is.
    max_pixels
        Larger images are refused.
    workers
        Who describes and matches: so many threads (None: one per core), an executor or a Dask
        client. COLMAP verifies and maps here.

    Returns
    -------
    SfmReport
        ValueError, which says why, if no model came out.
    """
    options = options or SfmOptions()
    target = Path(output)
    with only_here(target):
        before = read_report(target / REPORT)
        check_models(target)
        clock = _Clock()
        matched, wanted = prepare(images, target, options, pairs, progress, max_pixels, workers)
        clock.lap("describing")
        if before is not None and before.get("files") == _sizes(target):
            earlier = SfmReport.from_dict(before, matched.made_of)
            if earlier is not None and is_verified(matched.database, matched.made_of):
                return earlier
        matcher = _matcher(images, target, options, max_pixels)
        _match(matched, matcher, wanted, options, progress, workers, clock)
        return _mapped(matched, Path(images), target, options, progress, clock)


def match_images(
    images: str | Path,
    output: str | Path,
    options: SfmOptions | None = None,
    pairs: str | Path = "auto",
    progress: Progress = no_progress,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
) -> Matched:
    """The first half of :func:`reconstruct`: ``features/`` and ``database.db``."""
    options = options or SfmOptions()
    target = Path(output)
    with only_here(target):
        matched, wanted = prepare(images, target, options, pairs, progress, max_pixels, workers)
        matcher = _matcher(images, target, options, max_pixels)
        _match(matched, matcher, wanted, options, progress, workers, _Clock())
    return matched


class _Clock:
    """Seconds by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now


def _matcher(images: str | Path, target: Path, options: SfmOptions, max_pixels: int) -> Matcher:
    folders = (target / FEATURES).absolute(), Path(images).absolute()
    return Matcher(*folders, options.belief, max_pixels, options.device)


def _sizes(target: Path) -> dict[str, int]:
    """The files of all models and the page, and how large they are."""
    files = [target / PAGE, *(target / SPARSE).rglob("*")]
    there = [file for file in files if file.is_file()]
    return {file.relative_to(target).as_posix(): file.stat().st_size for file in there}


def _match(
    matched: Matched,
    matcher: Matcher,
    wanted: list[NamePair],
    options: SfmOptions,
    progress: Progress,
    workers: Workers,
    clock: _Clock,
) -> None:
    """Match, refine and verify, unless that is done."""
    base = matched.database
    if is_verified(base, matched.made_of):
        return
    with saying_what_failed(base, RuntimeError, sqlite3.OperationalError):
        match_pairs(base, matcher, wanted, progress, workers)
        clock.lap("matching")
        if options.refine == "tracks":
            refine_tracks(base, progress)
            clock.lap("refining")
        verify_pairs(base, options.seed, progress)
        if options.cameras == "auto":
            share_cameras(base)
        say_verified(base, matched.made_of)
        clock.lap("verifying")


def map_database(
    existing: str | Path,
    images: str | Path,
    output: str | Path,
    options: SfmOptions | None = None,
    progress: Progress = no_progress,
) -> SfmReport:
    """The second half of :func:`reconstruct`, for a database of anybody's.

    Parameters
    ----------
    existing
        COLMAP's database: images, keypoints and matches. It is copied, not changed.
    images
        Folder of the photographs.
    output
        As for :func:`reconstruct`; without ``features/``.
    options
        ``refine_centres`` and ``seed`` matter.
    progress
        Told of every step and how far it is.
    """
    options, target = options or SfmOptions(), Path(output)
    with only_here(target):
        clock = _Clock()
        matched = _copied(Path(existing), Path(images), target, options, progress)
        clock.lap("verifying")
        return _mapped(matched, Path(images), target, options, progress, clock)


def _copied(
    existing: Path, images: Path, target: Path, options: SfmOptions, progress: Progress
) -> Matched:
    """A database of anybody's in the folder of a reconstruction, verified.

    Its pairs are believed: whoever made it has chosen them.
    """
    pycolmap_module()  # said before the work if it is not there
    check_seed(options.seed)
    check_models(target)
    base = target / DATABASE
    if not existing.is_file():
        what = "expected a file" if existing.exists() else "does not exist"
        raise FileNotFoundError(f"{existing}: {what}")
    if is_same(base, existing):
        raise ValueError(f"{existing}: lies in the output folder {target}; choose another output")
    if base.exists() and not is_ours(base):
        raise ValueError(f"{base}: not made by mkdesc; choose another output")
    check_not_replaced(target, [existing, images])
    check_pages(target)
    with colmap_log(target), atomic_path(base) as partial:
        counts = copy_database(existing, partial, base)
        remove_journals(base)
    with saying_what_failed(base, RuntimeError):
        if not counts.verified:
            verify_pairs(base, options.seed, progress)
    digest = hashlib.sha256(base.read_bytes()).hexdigest()
    return Matched(base, counts.images, {}, {"database": digest})


def _mapped(
    matched: Matched,
    images: Path,
    target: Path,
    options: SfmOptions,
    progress: Progress,
    clock: _Clock,
) -> SfmReport:
    """Map what is matched, and write the reports."""
    with colmap_log(target):
        models = map_images(matched.database, images, target, options, progress)
    clock.lap("mapping")
    if not models:
        bad = "".join(f"; left out: {reason}" for reason in matched.bad.values())
        raise ValueError(f"{images}: {why_no_model(matched.database, target / LOG)}{bad}")
    refined = "pairs" in matched.made_of and options.refine == "tracks"
    before = error_before(models[0], target / FEATURES) if refined else None
    report = make_report(
        models, matched.database, matched.images, matched.bad, before, clock.seconds
    )
    write_page(target / PAGE, report, models, matched.database)
    found = report.to_dict(matched.made_of)
    write_report(target / REPORT, {**found, "files": _sizes(target)})
    return report
