"""Before anything is matched: features, the pairs worth matching, and a database of both."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mkdesc._support.check import check_choice
from mkdesc._support.files import atomic_path, saying_what_failed
from mkdesc._support.progress import Progress
from mkdesc._support.targets import check_target, is_same
from mkdesc._support.work import Workers
from mkdesc._support.workfolder import content_part
from mkdesc.belief.judgement import BELIEFS
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.folder import extract_features
from mkdesc.features.image_features import content_of
from mkdesc.features.stores import colmap_database as database
from mkdesc.images.listing import check_names, find_images
from mkdesc.retrieval.pairs import NamePair, all_pairs, read_pairs, sequential_pairs
from mkdesc.retrieval.similar import retrieved_pairs
from mkdesc.sfm.earlier_matches import copy_matches, is_verified
from mkdesc.sfm.log import LOG
from mkdesc.sfm.mapping import SPARSE, TRIES
from mkdesc.sfm.options import DATABASE, FEATURES, REFINED, Matched, SfmOptions
from mkdesc.sfm.page import PAGE

#: Ways to choose pairs, besides a file of them.
PAIRS = ("auto", "exhaustive", "sequential", "retrieved")


#: Images that are all matched with each other if nothing else is said.
FEW = 50


def prepare(
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
    check_choice("belief", options.belief, BELIEFS)
    check_choice("refine", options.refine, REFINED)
    options.settings.check_numbers("COLMAP")
    database.check_cameras(options.cameras, options.camera_model)
    check_seed(options.seed)
    found = find_images([images])
    check_names(found, "COLMAP")
    if len(found) < 2:
        raise ValueError(f"{images}: expected two images or more, got {len(found)}")
    if str(pairs) not in PAIRS and not Path(pairs).is_file():
        raise ValueError(f"pairs: expected {', '.join(PAIRS)} or a text file, got {str(pairs)!r}")
    listed = None if str(pairs) in PAIRS else read_pairs(pairs, found)
    check_not_replaced(target, [*found.values(), *([] if listed is None else [Path(pairs)])])
    check_pages(target)
    settings = options.to_json()
    base = target / DATABASE
    stored = database.stored_images(base, settings)
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
    names = ("refine", "refine_centres", "seed")
    own = {name: getattr(options, name) for name in names}
    made_of = {
        "settings": {**json.loads(settings), **own},
        "pairs": _digest(wanted),
        "images": _digest(contents.items()),
    }
    if not is_verified(base, made_of):
        before = {name: content_part(str(source)) for name, source in stored.items()}
        same = {name for name, content in contents.items() if before.get(name) == content}
        # Images of one camera are verified as those of two are; which share one is seen then.
        cameras = "per-image" if options.cameras == "auto" else options.cameras
        failing = saying_what_failed(base, RuntimeError, sqlite3.Error)
        with failing, atomic_path(base) as partial:
            database.write_features(
                partial,
                target / FEATURES,
                sorted(usable),
                settings,
                Path(images),
                cameras,
                options.camera_model,
            )
            copy_matches(base, partial, wanted, same)
            remove_journals(base)
    return Matched(base, len(usable), extracted.bad, made_of), wanted


def _journals(base: Path) -> list[Path]:
    """What SQLite may have beside a database."""
    return [base.with_name(base.name + ending) for ending in ("-journal", "-wal", "-shm")]


def remove_journals(base: Path) -> None:
    """Remove what SQLite has beside a database that is replaced: it is not for the new one."""
    for file in _journals(base):
        file.unlink(missing_ok=True)


def check_not_replaced(target: Path, read: Iterable[Path]) -> None:
    """Refuse inputs among what is replaced: the folder of models, and journals of the database.

    Where there is no database, a file of the name of its journal is somebody else's.
    """
    replaced = (target / SPARSE).resolve()
    base = target / DATABASE
    journals = [file for file in _journals(base) if os.path.lexists(file)]
    for file in read:
        if file.resolve().is_relative_to(replaced):
            raise ValueError(f"{file}: is an input in {target / SPARSE}, which is replaced")
        if any(is_same(file, journal) for journal in journals):
            raise ValueError(f"{file}: is an input of a name that SQLite uses; move it away")
    if journals and not base.exists():
        raise ValueError(
            f"{journals[0]}: not made by mkdesc; move it away or choose another output"
        )


def check_pages(target: Path) -> None:
    """Refuse a folder that has other files of our names, besides those that are read first."""
    check_target(target / PAGE, own=rb"<title>Reconstruction</title>")
    check_target(target / LOG, own=rb"\ALog file created at")


def check_seed(seed: int | None) -> None:
    """Refuse a seed that COLMAP cannot take."""
    if seed is not None and not 0 <= seed < 2**31 - TRIES:
        raise ValueError(f"seed: expected an integer >= 0 and < 2**31 - {TRIES}, got {seed}")


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
