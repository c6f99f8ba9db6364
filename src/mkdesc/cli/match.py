"""``mkdesc match``: two photographs to matches, and a picture of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.files import atomic_path
from mkdesc.cli.options import Detector, Keypoints, MaxPixels, Model, Ratio, Side, Upright
from mkdesc.cli.progress import warm_up
from mkdesc.features.features import DEFAULT_MODEL
from mkdesc.images.reading import MAX_PIXELS

__all__ = ["command"]

_PICTURES = (".png", ".jpg", ".jpeg")


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="A photograph.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one of the same scene.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MATCHES.png", help="Picture to write."),
    ] = None,
    keypoints: Keypoints = 2000,
    detector: Detector = "sift",
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    ratio: Ratio = 0.95,
    geometry: Annotated[
        str, typer.Option(help="What matches must agree on: fundamental, or homography (flat).")
    ] = "fundamental",
    threshold: Annotated[float, typer.Option(help="Pixels an inlier may be off.")] = 2.0,
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Match two photographs: mutual nearest neighbours that agree on one geometry."""
    from mkdesc.features.features import Features
    from mkdesc.images.drawing import draw_matches
    from mkdesc.images.frames import points_from_keypoints
    from mkdesc.images.reading import read_gray
    from mkdesc.images.writing import encode_image
    from mkdesc.matching.nearest import check_limits, match_descriptors
    from mkdesc.matching.verification import verify_matches

    if output is not None and output.suffix.lower() not in _PICTURES:
        expected = ", ".join(_PICTURES)
        raise ValueError(f"--output: expected a name ending in {expected}, got {output.name}")
    check_limits(ratio)
    verify_matches([], [], geometry, threshold)  # refuses what is wrong before the work
    features = Features(detector, keypoints, model, side, upright)
    warm_up(features.mkd)
    images, points, descriptors = [], [], []
    start = time.perf_counter()
    for path in (a, b):
        images.append(read_gray(path, max_pixels))
        found, described = features.detectAndCompute(images[-1])
        if not found:
            raise ValueError(f"{path}: no keypoints in this image")
        points.append(points_from_keypoints(found)[:, :2])
        descriptors.append(described)
    described_at = time.perf_counter()
    pairs = match_descriptors(*descriptors, ratio=ratio).pairs
    here, there = points[0][pairs[:, 0]], points[1][pairs[:, 1]]
    inliers = verify_matches(here, there, geometry, threshold).inliers
    end = time.perf_counter()
    print(f"{len(points[0]):,} and {len(points[1]):,} keypoints, {described_at - start:.2f} s")
    agree = int(inliers.sum())
    if not agree:
        raise ValueError(f"{a} and {b}: {len(pairs)} matches, none verified ({geometry})")
    summary = f"{len(pairs):,} mutual matches, {agree:,} of them verified ({geometry})"
    print(f"{summary}, {end - described_at:.2f} s")
    if output is not None:
        caption = f"mkdesc: {summary}"
        picture = draw_matches(images[0], images[1], here[inliers], there[inliers], caption)
        with atomic_path(output) as partial:
            partial.write_bytes(encode_image(output.suffix.lower(), picture))
        print(f"written: {output}")
