"""``mkdesc match``: two photographs to matches, and files and pictures of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mkdesc.cli.options import (
    Detector,
    Dtype,
    Keypoints,
    MaxPixels,
    Model,
    Overwrite,
    Ratio,
    Side,
    Upright,
    as_box,
    chosen_ratio,
)
from mkdesc.cli.progress import console
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.images.reading import MAX_PIXELS, read_gray
from mkdesc.models import DEFAULT_MODEL

if TYPE_CHECKING:
    from mkdesc.features.features import Features
    from mkdesc.features.matches import ImageMatches
    from mkdesc.geometry.cameras import Camera


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="A photograph.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="A second photograph of the same scene.")],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write. Its ending sets the format: .png, .jpg and .svg are "
            "pictures; .npz, .csv and .json hold pairs, distances and geometry. May "
            "be repeated.",
        ),
    ] = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="For very different viewpoints: also match synthetic views of both "
            "photographs, until a geometry is certain. Slower only where it is "
            "needed. Needs OpenCV: the extra images.",
        ),
    ] = False,
    limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time limit of --wide."),
    ] = 30.0,
    keypoints: Keypoints = 2000,
    detector: Detector = DEFAULT_DETECTOR,
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    dtype: Dtype = "float32",
    ratio: Ratio = "0.95",
    geometry: Annotated[
        str,
        typer.Option(
            help="What matches must agree on: homography (flat scenes, rotating "
            "cameras), fundamental, essential (known cameras), shared-focal (one unknown "
            "focal length of both), or auto (chosen by the matches)."
        ),
    ] = "auto",
    threshold: Annotated[
        float,
        typer.Option(
            help="Largest error of an inlier, in pixels. 2 suits the question whether both show "
            "the same scene; 1 gives more accurate poses."
        ),
    ] = 2.0,
    grow: Annotated[
        bool,
        typer.Option(
            "--grow/--no-grow",
            help="Fit matches to the gray values and grow them from there, or leave nearest "
            "neighbours as they are.",
        ),
    ] = True,
    grid: Annotated[
        int | None,
        typer.Option(
            metavar="PIXELS",
            help="Also grow matches to every place of a grid on A that has texture; 8 is dense. "
            "Default: to keypoints only.",
        ),
    ] = None,
    belief: Annotated[
        str,
        typer.Option(
            metavar="strict|mapping|off",
            help="How much evidence is asked for: all that two photographs alone need; what a "
            "reconstruction needs; none.",
        ),
    ] = "strict",
    camera: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Camera of both: COLMAP's cameras.txt, or .json with model, width, height and "
            "params. A file with two cameras has A's first; may be given twice, once for each.",
        ),
    ] = None,
    focal: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="A B",
            help="Focal lengths of both in pixels, instead of --camera; default: from EXIF "
            "data, if present.",
        ),
    ] = None,
    draw_rejected: Annotated[
        bool,
        typer.Option("--draw-rejected", help="Pictures also show rejected matches, in red."),
    ] = False,
    box: Annotated[
        str | None,
        typer.Option(metavar="X0,Y0,X1,Y1", help="Pictures show this part of A only, enlarged."),
    ] = None,
    max_pixels: MaxPixels = MAX_PIXELS,
    overwrite: Overwrite = False,
) -> None:
    """Match two photographs and verify the matches.

    Photographs are rotated as their EXIF data say, as cv2.imread does; positions refer to the
    rotated image. Exit code 1: no evidence that both show the same scene. Exit code 3: they
    are ambiguous, which is repeated structure or two things of one make. In both cases the
    files are still written, with the tentative matches.
    """
    from mkdesc.features.features import Features
    from mkdesc.features.image_pair import check_files, check_grid, check_options, match_images
    from mkdesc.features.matches import check_box, check_output
    from mkdesc.matching.judging import AMBIGUOUS
    from mkdesc.models import model_file

    reads = (a, b, model_file(model), *(camera or []))
    outputs = [check_output(path, reads, overwrite) for path in output or []]
    test = chosen_ratio(ratio, model)
    part = None if box is None else as_box(box)
    check_options(test, geometry, threshold, limit, belief)
    check_grid(grid, grow)
    cameras = _cameras(camera or [])
    check_files(a, b)
    if part is not None:
        check_box(part, read_gray(a, max_pixels).shape)
    features = Features(detector, keypoints, model, side, upright, dtype)
    with console.status("loading compiled code") as status:
        _load(features)
        found = match_images(
            a,
            b,
            features,
            ratio=test,
            geometry=geometry,
            threshold=threshold,
            grow=grow,
            grid=grid,
            belief=belief,
            wide=wide,
            limit=limit,
            cameras=cameras,
            focal_lengths=focal,
            max_pixels=max_pixels,
            progress=lambda what, done, total: status.update(
                f"{what}: {done} of {total}" if total else what
            ),
        )
    before = sum(found.timings[step] for step in ("read", "describe"))
    later = sum(found.timings.values()) - before
    print(f"{len(found.keypoints_a):,} and {len(found.keypoints_b):,} keypoints, {before:.2f} s")
    seen = ((a, found.keypoints_a), (b, found.keypoints_b))
    bare = [str(path) for path, points in seen if not len(points)]
    if bare:
        print(f"no keypoints in {' and '.join(bare)}")
    elif found.verified:
        print(f"{found.summary()}, {later:.2f} s")
    else:
        print(f"{found.summary()}{_hint(found, wide)}")
    for path in outputs:
        found.save(path, overwrite=overwrite, rejected=draw_rejected, box=part)
        print(f"written: {path}")
    if not found.verified:
        raise typer.Exit(3 if found.verdict == AMBIGUOUS else 1)


def _cameras(files: list[Path]) -> tuple[Camera, Camera] | None:
    """The cameras of A and B out of one or two files."""
    from mkdesc.geometry.camera_files import read_cameras

    found = [camera for file in files for camera in read_cameras(file)]
    if len(found) > 2:
        raise ValueError(f"--camera: expected one or two cameras, got {len(found)}")
    return (found[0], found[-1]) if found else None


def _hint(found: ImageMatches, wide: bool) -> str:
    """What else to try, where nothing is verified."""
    if not wide:
        return "; try --wide, which also matches synthetic views"
    return "; --limit SECONDS allows more" if "time limit" in found.reason else ""


def _load(features: Features) -> None:
    """Load what describing and matching need: the time is not the photographs'."""
    import numpy as np

    from mkdesc.matching.nearest import match_descriptors

    features.describe(np.zeros((8, 8), np.uint8), [[4, 4, 1, 0]])
    bits = features.output == "bits"
    few = np.eye(2, dtype=np.uint8 if bits else np.float32)
    match_descriptors(few, few, bits=bits)
