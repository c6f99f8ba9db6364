"""Structure from motion: from a folder of photographs to cameras and points, by COLMAP."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mkdesc._support.files import atomic_path, only_here, saying_what_failed
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import check_target, is_same
from mkdesc._support.work import Workers
from mkdesc._support.workfolder import content_part
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.folder import Settings, content_of, extract_features, load_features
from mkdesc.features.stores import colmap_database as database
from mkdesc.images.listing import check_names, find_images
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.matching.nearest import check_limits
from mkdesc.retrieval.pairs import AT_HAND, NamePair, all_pairs, read_pairs, sequential_pairs
from mkdesc.retrieval.similar import retrieved_pairs
from mkdesc.sfm.doubtful_pairs import drop_doubtful_pairs
from mkdesc.sfm.guided import guide_pairs
from mkdesc.sfm.log import LOG, colmap_log
from mkdesc.sfm.mapping import (
    SPARSE,
    TRIES,
    check_models,
    map_images,
    verify_pairs,
    why_no_model,
)
from mkdesc.sfm.matching import match_pairs
from mkdesc.sfm.page import PAGE, write_page
from mkdesc.sfm.report import SfmReport, make_report, read_report
from mkdesc.sfm.scenes import share_cameras

#: Ways to choose pairs, besides a file of them.
PAIRS = ("auto", "exhaustive", "sequential", "retrieved")
#: Images that are all matched with each other if nothing else is said.
FEW = 50
#: Names inside the folder of a reconstruction.
FEATURES, DATABASE, REPORT = "features", "database.db", "report.json"


#: Settings that are written elsewhere, or matches do not depend on.
_OTHERS = ("settings", "refine_centres", "seed", "device")


@dataclass(frozen=True)
class SfmOptions:
    """How images become a model.

    Attributes
    ----------
    settings
        How images are described.
    ratio, max_distance
        Tests that mutual nearest neighbours must pass, as for
        :func:`mkdesc.match_descriptors`.
    cameras
        Which images share a camera: auto, single, per-image, per-folder.
    camera_model
        COLMAP's name of the camera model.
    refine_centres
        Whether to move principal points (:mod:`mkdesc.sfm.principal_points`) or leave them in the
        middle.
    seed
        The same seed gives the same model on the same machine, mapped by one thread; None: all
        threads are used, and models may differ a little from run to run.
    guided
        Whether to match verified pairs once more, guided by their geometry.
    device
        Where PyTorch describes and matches, such as ``"cuda"``; None: compiled code on the CPU
        does.
    """

    settings: Settings = Settings(max_keypoints=8192, sensitive=True)  # noqa: RUF009 (frozen)
    ratio: float | None = 0.95
    max_distance: float | None = None
    cameras: str = "auto"
    camera_model: str = "SIMPLE_RADIAL"
    refine_centres: bool = True
    seed: int | None = None
    guided: bool = False
    device: str | None = None

    def to_json(self) -> str:
        """As text: what matches in a database depend on."""
        own = {key: value for key, value in asdict(self).items() if key not in _OTHERS}
        return json.dumps({**json.loads(self.settings.to_json()), **own}, indent=1)


class Matched(NamedTuple):
    """A database of verified matches.

    Attributes
    ----------
    database
        COLMAP's file.
    images
        How many of them are in it.
    bad
        Images that were left out, and why.
    made_of
        Settings, and the number and a digest of the pairs: what the matches depend on.
    """

    database: Path
    images: int
    bad: dict[str, str]
    made_of: dict[str, Any]


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
        matched, wanted = _prepared(images, target, options, pairs, progress, max_pixels, workers)
        if before is not None and (target / SPARSE).is_dir():
            earlier = SfmReport.from_dict(before, matched.made_of)
            if earlier is not None:
                return earlier
        check_models(target)
        _match(target, wanted, options, progress, workers)
        return _mapped(matched, Path(images), target, options, progress)


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
        matched, wanted = _prepared(images, target, options, pairs, progress, max_pixels, workers)
        _match(target, wanted, options, progress, workers)
    return matched


def _prepared(
    images: str | Path,
    target: Path,
    options: SfmOptions,
    pairs: str | Path,
    progress: Progress,
    max_pixels: int,
    workers: Workers,
) -> tuple[Matched, list[NamePair]]:
    """Describe the images, choose the pairs, and begin the database."""
    pycolmap_module()  # said before the work if it is not there
    options = replace(
        options, settings=replace(options.settings, as_stored=True)
    )  # as COLMAP reads them
    check_limits(options.ratio, options.max_distance)
    options.settings.check_numbers("COLMAP")
    database.check_cameras(options.cameras, options.camera_model)
    _check_seed(options.seed)
    found = find_images([images])
    check_names(found, "COLMAP")
    if len(found) < 2:
        raise ValueError(f"{images}: expected two images or more, got {len(found)}")
    if str(pairs) not in PAIRS and not Path(pairs).is_file():
        raise ValueError(f"pairs: expected {', '.join(PAIRS)} or a text file, got {str(pairs)!r}")
    listed = None if str(pairs) in PAIRS else read_pairs(pairs, found)
    _check_not_replaced(target, [*found.values(), *([] if listed is None else [Path(pairs)])])
    _check_pages(target)
    settings = options.to_json()
    base = target / DATABASE
    stored = database.stored_images(base, settings)
    if (target / SPARSE).exists() and not (target / REPORT).exists() and not base.exists():
        raise ValueError(f"{target / SPARSE}: not made by mkdesc; choose another output")
    extracted = extract_features(
        found,
        target / FEATURES,
        settings=options.settings,
        progress=progress,
        max_pixels=max_pixels,
        workers=workers,
        device=options.device,
    )
    usable = [name for name in found if name not in extracted.bad]
    if len(usable) < 2:
        reasons = "".join(f"; {reason}" for reason in extracted.bad.values())
        raise ValueError(f"{images}: expected two usable images, got {len(usable)}{reasons}")
    if listed is None:
        wanted = _chosen(str(pairs), usable, target / FEATURES, progress, workers)
    else:
        wanted = [pair for pair in listed if extracted.bad.keys().isdisjoint(pair)]
        if not wanted:
            raise ValueError(f"{pairs}: no pairs of usable images in this file")
    contents = {name: content_of(target / FEATURES, name) for name in usable}
    before = {name: content_part(str(source)) for name, source in stored.items()}
    # Matches of photographs that are others now, or of pairs that nobody asks for any more.
    if not before.items() <= contents.items() or not _has_only(base, wanted):
        for journal in ("", "-journal", "-wal", "-shm"):
            (target / f"{DATABASE}{journal}").unlink(missing_ok=True)
        stored = {}
    new = contents.keys() - stored.keys()
    if new:
        # Images of one camera are verified as those of two are; which share one is seen then.
        cameras = "per-image" if options.cameras == "auto" else options.cameras
        database.add_features(
            base, target / FEATURES, new, settings, Path(images), cameras, options.camera_model
        )
    own = {"refine_centres": options.refine_centres, "seed": options.seed}
    made_of = {
        "settings": {**json.loads(settings), **own},
        "pairs": _digest(wanted),
        "images": _digest(contents.items()),
    }
    return Matched(base, len(usable), extracted.bad, made_of), wanted


def _check_not_replaced(target: Path, read: Iterable[Path]) -> None:
    """Refuse inputs in the folder of models, which is replaced as a whole."""
    replaced = (target / SPARSE).resolve()
    for file in read:
        if file.resolve().is_relative_to(replaced):
            raise ValueError(f"{file}: is an input in {target / SPARSE}, which is replaced")


def _has_only(base: Path, wanted: list[NamePair]) -> bool:
    """Whether all pairs that a database has matches of are wanted."""
    if not base.exists():
        return True
    pycolmap = pycolmap_module()
    with pycolmap.Database.open(base) as file:
        ids = {image.name: image.image_id for image in file.read_all_images()}
    known = [(ids[a], ids[b]) for a, b in wanted if a in ids and b in ids]
    allowed = {pycolmap.image_pair_to_pair_id(*pair) for pair in known}
    with closing(sqlite3.connect(base)) as file:
        return allowed.issuperset(pair for (pair,) in file.execute("SELECT pair_id FROM matches"))


def _check_pages(target: Path) -> None:
    """Refuse a folder that has other files of our names, besides those that are read first."""
    check_target(target / PAGE, own=rb"<title>Reconstruction</title>")
    check_target(target / LOG, own=rb"\ALog file created at")


def _check_seed(seed: int | None) -> None:
    if seed is not None and not 0 <= seed < 2**31 - TRIES:
        raise ValueError(f"seed: expected an integer >= 0 and < 2**31 - {TRIES}, got {seed}")


def _match(
    target: Path, wanted: list[NamePair], options: SfmOptions, progress: Progress, workers: Workers
) -> None:
    base = target / DATABASE
    with saying_what_failed(base, RuntimeError, sqlite3.OperationalError):
        with colmap_log(target):
            match_pairs(
                base,
                target / FEATURES,
                wanted,
                options.ratio,
                options.max_distance,
                progress,
                workers,
                options.device,
            )
        verify_pairs(base, options.seed, progress)
        drop_doubtful_pairs(base, progress, target / FEATURES)
        if options.guided:
            kept = lru_cache(AT_HAND)(lambda name: load_features(target / FEATURES, name))
            with colmap_log(target):
                guide_pairs(base, wanted, kept, options.ratio, progress)
            verify_pairs(base, options.seed, progress)
            drop_doubtful_pairs(base, progress, target / FEATURES)
        if options.cameras == "auto":
            share_cameras(base)


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
        matched = _copied(Path(existing), Path(images), target, options, progress)
        return _mapped(matched, Path(images), target, options, progress)


def _copied(
    existing: Path, images: Path, target: Path, options: SfmOptions, progress: Progress
) -> Matched:
    """A database of anybody's in the folder of a reconstruction, verified."""
    pycolmap = pycolmap_module()
    _check_seed(options.seed)
    read_report(target / REPORT)  # refuses what is not ours
    if (target / SPARSE).exists() and not (target / REPORT).exists():
        raise ValueError(f"{target / SPARSE}: not made by mkdesc; choose another output")
    base = target / DATABASE
    if not existing.is_file():
        what = "expected a file" if existing.exists() else "does not exist"
        raise FileNotFoundError(f"{existing}: {what}")
    if is_same(base, existing):
        raise ValueError(f"{existing}: lies in the output folder {target}; choose another output")
    if base.exists() and not any((target / name).exists() for name in (REPORT, LOG)):
        raise ValueError(f"{base}: not made by mkdesc; choose another output")
    _check_not_replaced(target, [existing, images])
    check_models(target)
    _check_pages(target)
    with colmap_log(target), atomic_path(base) as partial:
        shutil.copyfile(existing, partial)
        try:
            with pycolmap.Database.open(partial) as file:
                count = (file.num_images(), file.num_matched_image_pairs())
                verified = file.num_verified_image_pairs()
        except Exception as error:  # pycolmap raises whatever sqlite does
            raise ValueError(f"{existing}: not a COLMAP database ({error})") from None
        if not count[1] and not verified:
            raise ValueError(f"{existing}: no matches in this database")
    with saying_what_failed(base, RuntimeError):
        if not verified:
            verify_pairs(base, options.seed, progress)
        drop_doubtful_pairs(base, progress)
    digest = hashlib.sha256(base.read_bytes()).hexdigest()
    return Matched(base, count[0], {}, {"database": digest})


def _mapped(
    matched: Matched, images: Path, target: Path, options: SfmOptions, progress: Progress
) -> SfmReport:
    """Map what is matched, and write the reports."""
    with colmap_log(target):
        models = map_images(
            matched.database, images, target, options.seed, options.refine_centres, progress
        )
    if not models:
        bad = "".join(f"; left out: {reason}" for reason in matched.bad.values())
        raise ValueError(f"{images}: {why_no_model(matched.database, target / LOG)}{bad}")
    report = make_report(models, matched.database, matched.images, matched.bad)
    write_page(target / PAGE, report, models, matched.database)
    with atomic_path(target / REPORT) as partial:
        partial.write_text(json.dumps(report.to_dict(matched.made_of), indent=1), encoding="utf-8")
    return report


def _chosen(
    way: str, names: Sequence[str], features: Path, progress: Progress, workers: Workers
) -> list[NamePair]:
    """The pairs to match."""
    if way == "auto":
        way = "exhaustive" if len(names) <= FEW else "retrieved"
    if way == "exhaustive":
        return list(all_pairs(names))
    if way == "sequential":
        return sequential_pairs(names)
    return retrieved_pairs(features, names, progress=progress, workers=workers)


def _digest(pairs: Collection[NamePair]) -> dict[str, Any]:
    """What a report says of pairs: thousands of photographs have millions."""
    text = "\n".join(f"{a}\t{b}" for a, b in sorted(pairs))
    return {"count": len(pairs), "sha256": hashlib.sha256(text.encode()).hexdigest()}
