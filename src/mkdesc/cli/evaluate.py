"""``mkdesc evaluate``: patches (two benchmarks, speed) and photographs (homographies, poses)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from mkdesc.cli.cluster import workers_at
from mkdesc.cli.options import Cluster, Device, number_or_auto
from mkdesc.cli.print_tables import print_tables
from mkdesc.cli.progress import progress_bar, resumable
from mkdesc.evaluation.contenders.registry import default_descriptors
from mkdesc.evaluation.hpatches.benchmark import run_hpatches
from mkdesc.evaluation.photographs.base import PhotographOptions
from mkdesc.evaluation.photographs.homography import DEFAULT_METHODS, run_homography
from mkdesc.evaluation.photographs.pose import run_pose
from mkdesc.evaluation.phototourism.benchmark import run_phototourism
from mkdesc.evaluation.report.published import TASKS
from mkdesc.evaluation.report.runs import Results
from mkdesc.evaluation.speed import run_speed

app = typer.Typer(
    help="Measure features on photographs and descriptors on patches.",
    no_args_is_help=True,
)

Descriptors = Annotated[
    list[str] | None,
    typer.Option(
        "--descriptors",
        "-d",
        metavar="NAMES",
        help="Comma-separated names: bundled models, model files, FILE:SET:METHOD, mkd-raw, "
        "mkd-polar-raw, mkd-cartesian-raw, opencv-sift, rootsift, opencv-vgg (and daisy, "
        "boostdesc, teblid, beblid, latch), tfeat:FILE, hardnet:FILE, kornia-sift (and hardnet, "
        "sosnet, mkd), csv:FOLDER; any of them with a whitening to learn: +lw, +gda, +pca, "
        "+pcawt, +pcaws, +zca. May be repeated.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="NAMES",
        help="Comma-separated names: mkdesc; detectors, models and upright joined by + "
        "(dog+photo-net+upright); rootsift, orb, akaze; aliked:FILE, disk:FILE, xfeat:FILE "
        "(weights, through kornia), each also with +lightglue:FILE; opencv-aliked:FILE, "
        "opencv-disk:FILE (ONNX); hloc:FILE.h5; "
        "MODULE:FUNCTION; any of them with +grow: its matches grown by the photographs. "
        f"May be repeated. Default: {','.join(DEFAULT_METHODS)}.",
    ),
]
Budget = Annotated[int, typer.Option(metavar="N", help="Keypoints per photograph, at most.")]
LongerSide = Annotated[
    int,
    typer.Option(
        metavar="PX",
        help="Reduce photographs to this many pixels on the longer side; 0: keep their size.",
    ),
]
LoweRatio = Annotated[
    float | None,
    typer.Option(help="Ratio test; default: none, only mutual nearest neighbours."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="RUN",
        help="Folder for the configuration, cache, results and the page report.html; a second run "
        "with the same settings resumes from the cache and adds new descriptors.",
    ),
]


def split_list(values: list[str] | None) -> list[str] | None:
    """An option that may be repeated and may hold commas, as one list."""
    if values is None:
        return None
    return [one.strip() for value in values for one in value.split(",") if one.strip()]


@contextmanager
def _running(output: Path | None, cluster: str | None) -> Iterator[dict[str, Any]]:
    """What every benchmark takes: where to write, who works, and what shows how far it is."""
    if cluster is not None and output is None:
        raise ValueError("--cluster: needs --output, a folder that all workers see")
    with (
        nullcontext() if output is None else resumable(),  # what is done waits in the folder
        workers_at(cluster) as workers,
        progress_bar("items", "reading") as progress,
    ):
        yield {"output": output, "progress": progress, "workers": workers}


def _report(results: Results, output: Path | None) -> None:
    print_tables(results.tables)
    if output is not None:
        print(f"written: {output}")


@app.command("homography")
def _homography(
    root: Annotated[
        Path,
        typer.Argument(
            help="Folder of sequences: HPatches (1.ppm, H_1_2, ...) or Oxford (img1.ppm, H1to2p)."
        ),
    ],
    methods: Methods = None,
    keypoints: Budget = 2000,
    max_size: LongerSide = 0,
    ratio: LoweRatio = None,
    threshold: Annotated[float, typer.Option(help="Largest error of an inlier, in pixels.")] = 3.0,
    output: Output = None,
    cluster: Cluster = None,
) -> None:
    """Score right matches and homographies on photographs of planes."""
    with _running(output, cluster) as how:
        results = run_homography(
            root,
            split_list(methods) or DEFAULT_METHODS,
            options=PhotographOptions(keypoints, max_size or None, ratio),
            threshold=threshold,
            **how,
        )
    _report(results, output)


@app.command("pose")
def _pose(
    truth: Annotated[
        Path,
        typer.Argument(
            help="A folder with images/ and a COLMAP model in sparse/, with images/ and "
            "Strecha's cameras/, IMC's with images/ and calibration/, or a file of pairs with "
            "intrinsics and poses (MegaDepth-1500, ScanNet)."
        ),
    ],
    methods: Methods = None,
    keypoints: Budget = 2000,
    max_size: LongerSide = 1024,
    ratio: LoweRatio = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="PX|auto",
            help="Largest error of an inlier, in pixels; auto: the best for each method on a "
            "quarter of the pairs, scored on the others.",
        ),
    ] = "1",
    estimator: Annotated[
        str,
        typer.Option(
            metavar="poselib|opencv",
            help="Library that estimates poses: PoseLib, or OpenCV's MAGSAC++.",
        ),
    ] = "auto",
    max_angle: Annotated[
        float,
        typer.Option(help="Leave out pairs whose viewing directions differ by more degrees."),
    ] = 75.0,
    output: Output = None,
    cluster: Cluster = None,
) -> None:
    """Score relative poses from matches: AUC at 1, 2, 5, 10 and 20 degrees."""
    from mkdesc.geometry.options import EstimatorOptions

    search = EstimatorOptions(backend=estimator)
    with _running(output, cluster) as how:
        results = run_pose(
            truth,
            split_list(methods) or DEFAULT_METHODS,
            options=PhotographOptions(keypoints, max_size or None, ratio),
            threshold=number_or_auto("--threshold", threshold),
            estimator=search,
            max_angle=max_angle,
            **how,
        )
    _report(results, output)


@app.command("phototourism")
def _phototourism(
    root: Annotated[Path, typer.Argument(help="Folder of subsets in the Phototourism layout.")],
    subsets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Comma-separated names; default: all."),
    ] = None,
    descriptors: Descriptors = None,
    protocol: Annotated[
        str, typer.Option(help="fpr95, or revisited: mean AP with Lowe's ratio.")
    ] = "fpr95",
    public_code: Annotated[
        bool,
        typer.Option(
            "--public-code", help="For revisited: do exactly what its published code does."
        ),
    ] = False,
    output: Output = None,
    cluster: Cluster = None,
) -> None:
    """Score FPR95 for all pairs of training and test subsets.

    Without --descriptors, print the paper's Table 1.
    """
    with _running(output, cluster) as how:
        results = run_phototourism(
            root,
            split_list(descriptors),
            subsets=split_list(subsets),
            protocol=protocol,
            public_code=public_code,
            **how,
        )
    _report(results, output)


@app.command("hpatches")
def _hpatches(
    root: Annotated[Path, typer.Argument(help="Folder of sequences in the HPatches layout.")],
    split: Annotated[str, typer.Option(help="a, b, c, full, illum, view, or your own.")] = "full",
    splits: Annotated[
        Path | None, typer.Option(help="splits.json; default: the one in ROOT.")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help=f"Some of {','.join(TASKS)}; default: all."),
    ] = None,
    tasks_dir: Annotated[
        Path | None, typer.Option(help="Folder of the official task files; default: random lists.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random lists.")] = 42,
    descriptors: Descriptors = None,
    table: Annotated[
        int | None, typer.Option(help="2 or 4: print that table of the paper next to our numbers.")
    ] = None,
    train_on: Annotated[
        str | None,
        typer.Option(
            help="Learn on this Phototourism subset instead of the split's training "
            "sequences; for --table 4 also a model learned there, such as "
            "FILE:liberty:lw."
        ),
    ] = None,
    output: Output = None,
    cluster: Cluster = None,
) -> None:
    """Score verification, matching and retrieval of patches."""
    with _running(output, cluster) as how:
        results = run_hpatches(
            root,
            split_list(descriptors),
            split=split,
            splits=splits,
            tasks=split_list(tasks) or TASKS,
            tasks_dir=tasks_dir,
            seed=seed,
            table=table,
            train_on=train_on,
            **how,
        )
    _report(results, output)


@app.command("speed")
def _speed(
    descriptors: Descriptors = None,
    size: Annotated[int, typer.Option(help="Side of the patches.")] = 64,
    count: Annotated[
        int, typer.Option(help="Patches per measurement, at most; slow descriptors get fewer.")
    ] = 8192,
    rounds: Annotated[int, typer.Option(help="Measurements of each descriptor.")] = 7,
    device: Device = "cpu",
) -> None:
    """Measure patches per second and bytes per descriptor."""
    with progress_bar("items", "reading") as progress:
        chosen = split_list(descriptors) or default_descriptors()
        results = run_speed(
            chosen, size, count, rounds, progress, None if device == "cpu" else device
        )
    _report(results, None)
