"""COLMAP's verification and incremental mapping of a database, and why they may fail."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from mkdesc._support.files import atomic_folder
from mkdesc._support.isolation import run_isolated
from mkdesc._support.progress import Progress
from mkdesc._support.version import __version__
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.sfm.grown_pairs import name_pair, refused_pairs
from mkdesc.sfm.log import colmap_log
from mkdesc.sfm.options import REPORT, SfmOptions
from mkdesc.sfm.principal_points import refine_centres
from mkdesc.sfm.report import read_report, write_report
from mkdesc.sfm.scenes import certain_pairs, scenes_among, verified_counts, with_weakly_tied

if TYPE_CHECKING:
    import pycolmap


#: Where models are, in the folder of a reconstruction.
SPARSE = "sparse"
#: Files of a model: COLMAP's, and the points alone.
OWN = {f"{name}.bin" for name in ("cameras", "frames", "images", "points3D", "rigs")}
OWN |= {"points.ply"}
#: Matches of two images that must agree, for COLMAP to connect them.
LEAST = 15
#: How often to try scenes of how many images, where some are left over.
TRIES, SMALL = 4, 30


def verify_pairs(base: Path, seed: int | None, progress: Progress) -> None:
    """Let COLMAP find which matches of a database agree on one geometry.

    Where its threads find no room on the disk it ends the process, so it has one of its own; a
    RuntimeError says how that ended. What it says is added to ``colmap.log`` beside the database.
    """
    progress("verifying", 0, 0)
    run_isolated(_verify, str(base), seed or 0)
    progress("verifying", 1, 1)


def _verify(base: str, seed: int) -> None:
    pycolmap = pycolmap_module()
    options = pycolmap.TwoViewGeometryOptions()
    options.min_num_inliers = LEAST
    options.ransac.random_seed = seed
    with colmap_log(Path(base).parent):
        pycolmap.geometric_verification(base, two_view_geometry_options=options)


def map_images(
    base: Path,
    images: Path,
    target: Path,
    options: SfmOptions,
    progress: Progress,
) -> dict[int, pycolmap.Reconstruction]:
    """COLMAP's mapping of each scene; replaces earlier models as a whole.

    Parameters
    ----------
    base
        Database of verified matches.
    images
        Folder of the photographs.
    target
        Folder in which to make ``sparse``.
    options
        With a seed, mapping gives the same models, by one thread; without, by all, and they may
        differ.
    progress
        Told of every scene, in images.

    Returns
    -------
    dict of int to pycolmap.Reconstruction
        Empty if there is none; the largest is 0.
    """
    models = []
    for model in _all_models(base, images, options.seed, progress):
        if options.refine_centres:
            refine_centres(model, options.seed)
        models.append(model)
    models.sort(key=lambda model: -model.num_reg_images())
    if models:
        check_models(target)
        with atomic_folder(target / SPARSE) as partial:
            for number, model in enumerate(models):
                _write_model(model, partial / str(number))
            # Whatever ends the work between the models and their report: they are ours.
            count = max(_count(target), len(models))
            write_report(target / REPORT, {"mkdesc": __version__, "models": count})
    return dict(enumerate(models))


def check_models(target: Path) -> None:
    """Refuse to replace a folder of models in which others have put anything.

    Ours are those that the report counts.
    """
    own = {str(number) for number in range(_count(target))}
    for file in sorted((target / SPARSE).rglob("*")):
        number, *names = file.relative_to(target / SPARSE).parts
        is_model = number in own and not names and file.is_dir()
        if not is_model and not (len(names) == 1 and names[0] in OWN and file.is_file()):
            raise ValueError(f"{file}: not made by mkdesc; move it away or choose another output")


def _count(target: Path) -> int:
    """How many models a report tells of."""
    count = (read_report(target / REPORT) or {}).get("models", 0)
    return count if isinstance(count, int) else 0


def _write_model(model: pycolmap.Reconstruction, folder: Path) -> None:
    folder.mkdir()
    model.write_binary(folder)
    model.export_PLY(folder / "points.ply")


def _all_models(
    base: Path, images: Path, seed: int | None, progress: Progress
) -> Iterator[pycolmap.Reconstruction]:
    """The models of each scene by itself, then those of what they leave over of it.

    COLMAP keeps a model of two images, and tries pairs that are less good to begin with, only
    where it has found nothing else; so a scene is mapped as if there were no other.
    """
    certain = certain_pairs(base)
    with pycolmap_module().Database.open(base) as file:
        names = [image.name for image in file.read_all_images()]
    waiting = with_weakly_tied(scenes_among(names, certain), verified_counts(base), names)
    sure = {name for pair in certain for name in pair}
    total = sum(map(len, waiting))
    done = seen = 0
    scene: list[str] = []

    def more(count: int) -> None:
        nonlocal seen
        seen = min(seen + count, len(scene))
        progress("mapping", done + seen, total)

    while waiting:
        scene = waiting.pop(0)
        seen = 0
        left = set(scene)
        for model in _best_models(base, scene, sure, images, seed, more):
            left -= {image.name for image in model.images.values() if image.has_pose}
            yield model
        rest = scenes_among(left, certain) if len(left) < len(scene) else []
        waiting += rest
        done += len(scene) - sum(map(len, rest))
        progress("mapping", done, total)


def _best_models(
    base: Path,
    scene: list[str],
    sure: Collection[str],
    images: Path,
    seed: int | None,
    more: Callable[[int], None],
) -> list[pycolmap.Reconstruction]:
    """The models of a scene; where it is small, of the best of some tries.

    Where COLMAP begins is chance, and decides how many images join. It is tried again if any
    that must be of the scene have not.
    """
    wanted = len({*scene} & {*sure})
    best: list[pycolmap.Reconstruction] = []
    for number in range(TRIES if len(scene) <= SMALL else 1):
        found = _models_of(base, scene, images, number + (seed or 0), seed is not None, more)
        best = max(best, found, key=_worth)
        if _worth(best)[0] >= wanted:
            break
    return best


def _worth(models: list[pycolmap.Reconstruction]) -> tuple[int, int]:
    """Images and points of the largest model."""
    return max(((m.num_reg_images(), m.num_points3D()) for m in models), default=(0, 0))


def _models_of(
    base: Path,
    scene: list[str],
    images: Path,
    seed: int,
    one: bool,
    more: Callable[[int], None],
) -> list[pycolmap.Reconstruction]:
    """COLMAP's incremental mapping of some images of a database, by one thread or by all.

    ``more`` is told how many images have joined; that is also when Ctrl-C is heard.
    """
    pycolmap = pycolmap_module()
    # Made anew of the database: the order in which images are in here changes what is found.
    chosen = pycolmap.DatabaseCacheOptions()
    chosen.image_names, chosen.min_num_matches = set(scene), LEAST
    with pycolmap.Database.open(base) as file:
        part = pycolmap.DatabaseCache.create(file, chosen)
    pycolmap.set_random_seed(seed)
    options = pycolmap.IncrementalPipelineOptions()
    # COLMAP's own limits are for thousands of photographs; small sets lose by them.
    options.min_model_size = 3
    options.max_num_models = 1000
    options.triangulation.ignore_two_view_tracks = False
    # It takes minutes for an image that shares little with a model, and mostly in vain.
    options.structure_less_registration_fallback = False
    options.image_path = images
    options.random_seed = seed
    if one:  # which of several threads is first changes what is found
        options.num_threads = options.mapper.num_threads = 1
    found = pycolmap.ReconstructionManager()
    pipeline = pycolmap.IncrementalPipeline(options, part, found)
    steps = pycolmap.IncrementalPipelineCallback
    pipeline.add_callback(steps.INITIAL_IMAGE_PAIR_REG_CALLBACK.value, lambda: more(2))
    pipeline.add_callback(steps.NEXT_IMAGE_REG_CALLBACK.value, lambda: more(1))
    pipeline.run()
    models = [found.get(number) for number in range(found.size())]
    return _without_parts([model for model in models if model.num_points3D() >= LEAST])


def _without_parts(models: list[pycolmap.Reconstruction]) -> list[pycolmap.Reconstruction]:
    """Models, the largest first, without those whose images are all in a larger one."""
    kept: list[tuple[set[int], pycolmap.Reconstruction]] = []
    for model in sorted(models, key=lambda model: -model.num_reg_images()):
        own = set(model.reg_image_ids())
        if not any(own <= larger for larger, _ in kept):
            kept.append((own, model))
    return [model for _, model in kept]


def why_no_model(base: Path, log: Path) -> str:
    """One line: why no model came of a database, and what to try."""
    certain = certain_pairs(base)
    with closing(sqlite3.connect(base)) as file:
        names = dict(file.execute("SELECT image_id, name FROM images"))
        most = file.execute(
            "SELECT pair_id, COALESCE(verified.rows, 0), matches.rows FROM matches "
            "LEFT JOIN two_view_geometries AS verified USING (pair_id) "
            "ORDER BY 2 DESC, 3 DESC"
        ).fetchone()
    best = "" if most is None else " and ".join(names[image] for image in _ids(most[0]))
    refused = refused_pairs(base)
    if not certain and refused:
        return (
            f"no two of {len(names)} images can be trusted to show the same: {len(refused)} pairs "
            f"were refused, such as {name_pair(refused[0][:2])} ({refused[0].reason}); try "
            f"photographs that also show what is there once, or --belief off (see {log})"
        )
    if not certain:
        if most is None or not most[2]:
            found = f"no two of {len(names)} images have a match"
        else:
            found = (
                f"no two of {len(names)} images agree beyond chance; the best pair, {best}, "
                f"has {most[1]} of {most[2]} matches that agree"
            )
        return (
            f"{found}: the photographs may overlap too little; try more keypoints, "
            f"other pairs, or photographs in between (see {log})"
        )
    few = sorted({*names.values()} - {name for pair in certain for name in pair})
    alone = f"; {len(few)} images match no other: {', '.join(few[:5])}" if few else ""
    return (
        f"{len(certain)} pairs of images agree, best {best} ({most[1]} matches), "
        f"but none could start a model{alone}: the camera may have rotated "
        f"without moving; try more keypoints or views from further apart (see "
        f"{log})"
    )


def _ids(pair: int) -> tuple[int, int]:
    """The two images of COLMAP's number of a pair."""
    one, other = pycolmap_module().pair_id_to_image_pair(pair)
    return int(one), int(other)
