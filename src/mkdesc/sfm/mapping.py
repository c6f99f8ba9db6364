"""COLMAP's verification and incremental mapping of a database, and why they may fail."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from mkdesc._support.progress import Progress
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.sfm.centres import refine_centres

__all__ = ["SPARSE", "map_images", "verify_pairs", "why_no_model"]

#: Where models are, in the folder of a reconstruction.
SPARSE = "sparse"
#: Matches of two images that must agree, for COLMAP to connect them.
LEAST = 15


def verify_pairs(base: Path, seed: int | None, tell: Progress) -> None:
    """Let COLMAP find which matches of a database agree on one geometry."""
    pycolmap = pycolmap_module()
    tell("verifying", 0, 0)
    options = pycolmap.TwoViewGeometryOptions()
    options.min_num_inliers = LEAST
    options.ransac.random_seed = seed or 0
    pycolmap.geometric_verification(base, two_view_geometry_options=options)
    tell("verifying", 1, 1)


def map_images(
    base: Path,
    images: Path,
    target: Path,
    seed: int | None,
    centres: bool,
    tell: Progress,
) -> dict[int, Any]:
    """COLMAP's incremental mapping; replaces the models of an earlier run as a whole.

    Parameters
    ----------
    base
        Database of verified matches.
    images
        Folder of the photographs.
    target
        Folder in which to make ``sparse``.
    seed
        The same seed gives the same models, by one thread; None: by all, and they may differ.
    centres
        Whether to move principal points.
    tell
        Told of every image.

    Returns
    -------
    dict of int to pycolmap.Reconstruction
        Empty if there is none; the largest is 0.
    """
    pycolmap = pycolmap_module()
    pycolmap.set_random_seed(seed or 0)
    options = pycolmap.IncrementalPipelineOptions()
    # COLMAP's own limits are for thousands of photographs; small sets lose by them.
    options.min_model_size = 3
    options.max_num_models = 1000
    options.triangulation.ignore_two_view_tracks = False
    # It takes minutes for an image that shares little with a model, and mostly in vain: in a mix
    # of places that is every image at the edge of one.
    options.structure_less_registration_fallback = False
    options.random_seed = seed or 0
    if seed is not None:  # which of several threads is first changes what is found
        options.num_threads = options.mapper.num_threads = 1
    with pycolmap.Database.open(base) as file:
        count = file.num_images()
    work = target / f".{SPARSE}.{os.getpid()}"
    work.mkdir()
    seen = 0

    def more(images: int) -> None:
        nonlocal seen
        seen += images
        tell("mapping", min(seen, count), count)

    try:
        found = pycolmap.incremental_mapping(
            base,
            images,
            work,
            options,
            initial_image_pair_callback=lambda: more(2),
            next_image_callback=lambda: more(1),
        )
        shutil.rmtree(work)
        work.mkdir()
        largest = sorted(found.values(), key=lambda model: -model.num_reg_images())
        models = dict(enumerate(largest))
        for number, model in models.items():
            if centres:
                refine_centres(model, seed)
            folder = work / str(number)
            folder.mkdir()
            model.write_binary(folder)
            model.export_PLY(folder / "points.ply")
        if models:
            if (target / SPARSE).exists():
                shutil.rmtree(target / SPARSE)
            work.rename(target / SPARSE)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return models


def why_no_model(base: Path, log: Path) -> str:
    """One line: why no model came of a database, and what to try."""
    with closing(sqlite3.connect(base)) as file:
        names = dict(file.execute("SELECT image_id, name FROM images"))
        pairs = file.execute(
            "SELECT pair_id, rows FROM two_view_geometries WHERE rows >= ?", (LEAST,)
        ).fetchall()
        most = file.execute("SELECT pair_id, rows FROM matches ORDER BY rows DESC").fetchone()
    few = [name for number, name in names.items() if not _is_in(number, pairs)]
    if not pairs:
        if most is None or not most[1]:
            found = f"no two of {len(names)} images have a match"
        else:
            found = (
                f"no two of {len(names)} images have {LEAST} matches that agree; the most matches "
                f"are {most[1]}, of {' and '.join(names[one] for one in _ids(most[0]))}"
            )
        return (
            f"{found}: they may not overlap, or too little; try more keypoints, a higher ratio, "
            f"other pairs, or photographs between them (see {log})"
        )
    most = max(pairs, key=lambda pair: int(pair[1]))
    alone = f"; {len(few)} images agree with no other: {', '.join(few[:5])}" if few else ""
    return (
        f"{len(pairs)} pairs of images agree, {' and '.join(names[i] for i in _ids(most[0]))} "
        f"best ({most[1]} matches), but none could begin a model{alone}: the camera may only "
        f"have turned, or hardly moved; try more keypoints or views from further apart "
        f"(see {log})"
    )


def _ids(pair: int) -> tuple[int, int]:
    """The two images of COLMAP's number of a pair."""
    one, other = pycolmap_module().pair_id_to_image_pair(pair)
    return int(one), int(other)


def _is_in(image: int, pairs: list[tuple[int, int]]) -> bool:
    return any(image in _ids(pair) for pair, _ in pairs)
