"""Structure from motion: from a folder of photographs to cameras and points, by COLMAP."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mkdesc._support.files import atomic_path
from mkdesc._support.progress import Progress, nobody
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.folder import Settings, extract_features, load_features
from mkdesc.features.stores import colmap_database as database
from mkdesc.images.listing import find_images
from mkdesc.images.reading import MAX_PIXELS
from mkdesc.matching.nearest import check_limits, match_descriptors
from mkdesc.retrieval.pairs import AT_HAND, all_pairs, read_pairs
from mkdesc.sfm.centres import refine_centres
from mkdesc.sfm.report import Report, make_report, read_report

__all__ = ["Mapping", "reconstruct"]

#: Names inside the folder of a reconstruction.
FEATURES, DATABASE, SPARSE, REPORT = "features", "database.db", "sparse", "report.json"


@dataclass(frozen=True)
class Mapping:
    """How images become a model.

    Attributes
    ----------
    settings
        How images are described.
    ratio, max_distance
        Tests that mutual nearest neighbours must pass, as for
        :func:`mkdesc.matching.nearest.match_descriptors`.
    cameras
        Which images share a camera: auto, single, per-image, per-folder.
    camera_model
        COLMAP's name of the camera model.
    refine_centres
        Whether to move principal points (:mod:`mkdesc.sfm.centres`) or leave them in the middle.
    seed
        The same seed gives the same model on the same machine.
    """

    settings: Settings = Settings(max_keypoints=8192, sensitive=True)  # noqa: RUF009 (frozen)
    ratio: float | None = 0.95
    max_distance: float | None = None
    cameras: str = "auto"
    camera_model: str = "SIMPLE_RADIAL"
    refine_centres: bool = True
    seed: int = 0

    def to_json(self) -> str:
        """As text: what matches in a database depend on."""
        own = {key: value for key, value in asdict(self).items() if key != "settings"}
        return json.dumps({**json.loads(self.settings.to_json()), **own}, indent=1)


def reconstruct(
    images: str | Path,
    output: str | Path,
    how: Mapping | None = None,
    pairs: str | Path | None = None,
    progress: Progress | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Report:
    """Reconstruct a scene: describe, match, verify, map; what is done already is kept.

    Parameters
    ----------
    images
        Folder of photographs (those of folders in it too).
    output
        Folder to write: ``features/``, ``database.db``, ``sparse/<n>/`` (COLMAP's binary files
        and ``points.ply``, the largest model as 0), and ``report.json``.
    how
        All settings.
    pairs
        Text file of pairs of names to match; None: every image with every other. Pairs of
        images that turn out not to be usable are left out.
    progress
        Told of every step and how far it is.
    max_pixels
        Larger images are refused.

    Returns
    -------
    Report
        ValueError if no model came out.
    """
    how = how or Mapping()
    tell = progress or nobody
    pycolmap = pycolmap_module()
    check_limits(how.ratio, how.max_distance)
    database.check_cameras(how.cameras, how.camera_model)
    found = find_images([images])
    listed = None if pairs is None else read_pairs(pairs, found)
    settings = how.to_json()
    target = Path(output)
    base, finished = target / DATABASE, target / REPORT
    stored = database.stored_names(base, settings)
    before = read_report(finished)
    if (target / SPARSE).exists() and before is None and not base.exists():
        raise ValueError(f"{target / SPARSE}: not made by mkdesc; choose another place")

    extracted = extract_features(
        found,
        target / FEATURES,
        how.settings,
        tell,
        max_pixels,
    )
    usable = [name for name in found if name not in extracted.bad]
    if len(usable) < 2:
        reasons = "".join(f"; {reason}" for reason in extracted.bad.values())
        raise ValueError(f"{images}: expected two usable images, got {len(usable)}{reasons}")
    if listed is None:
        wanted = list(all_pairs(usable))
    else:
        wanted = [pair for pair in listed if extracted.bad.keys().isdisjoint(pair)]
        if not wanted:
            raise ValueError(f"{pairs}: no pairs of usable images in this file")

    new = set(usable) - stored
    if new:
        database.add_features(
            base, target / FEATURES, new, settings, Path(images), how.cameras, how.camera_model
        )
    made_of = {"settings": json.loads(settings), "pairs": [list(pair) for pair in wanted]}
    if before is not None and (target / SPARSE).is_dir():
        earlier = Report.from_dict(before, made_of)
        if earlier is not None:
            return earlier
    pycolmap.set_random_seed(how.seed)
    _match(base, target / FEATURES, wanted, how, tell)
    tell("verifying", 0, 0)
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = how.seed
    pycolmap.geometric_verification(base, two_view_geometry_options=verification)
    tell("verifying", 1, 1)
    models = _map(base, Path(images), target, how, tell, len(usable))
    report = make_report(models, base, len(usable), extracted.bad)
    with atomic_path(finished) as partial:
        partial.write_text(json.dumps(report.to_dict(made_of), indent=1))
    return report


def _match(
    base: Path, features: Path, wanted: Iterable[tuple[str, str]], how: Mapping, tell: Progress
) -> None:
    """Write the matches of all wanted pairs that have none yet."""
    pycolmap = pycolmap_module()

    @lru_cache(AT_HAND)
    def descriptors(name: str) -> Any:
        return load_features(features, name).descriptors

    pairs = list(wanted)
    with pycolmap.Database.open(base) as file:
        ids = {image.name: image.image_id for image in file.read_all_images()}
        for done, (a, b) in enumerate(pairs, 1):
            if not file.exists_matches(ids[a], ids[b]):
                matches = match_descriptors(
                    descriptors(a),
                    descriptors(b),
                    ratio=how.ratio,
                    max_distance=how.max_distance,
                )
                file.write_matches(ids[a], ids[b], matches.pairs.astype("uint32"))
            tell("matching", done, len(pairs))


def _map(
    base: Path, images: Path, target: Path, how: Mapping, tell: Progress, count: int
) -> dict[int, Any]:
    """COLMAP's incremental mapping; replaces the models of an earlier run as a whole."""
    pycolmap = pycolmap_module()
    options = pycolmap.IncrementalPipelineOptions()
    # COLMAP's own limits are for thousands of photographs; small sets lose by them.
    options.min_model_size = 3
    options.triangulation.ignore_two_view_tracks = False
    options.random_seed = how.seed
    work = target / f".{SPARSE}.{os.getpid()}"
    work.mkdir()
    seen = 0

    def more(images: int) -> None:
        nonlocal seen
        seen += images
        tell("mapping", min(seen, count), count)

    try:
        models = pycolmap.incremental_mapping(
            base,
            images,
            work,
            options,
            initial_image_pair_callback=lambda: more(2),
            next_image_callback=lambda: more(1),
        )
        if not models:
            raise ValueError(
                f"{images}: no model could be made; too few matches agree (see {base})"
            )
        for number, model in models.items():
            if how.refine_centres:
                refine_centres(model)
            model.write_binary(work / str(number))
            model.export_PLY(work / str(number) / "points.ply")
        if (target / SPARSE).exists():
            shutil.rmtree(target / SPARSE)
        work.rename(target / SPARSE)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return dict(models)
