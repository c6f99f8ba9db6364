"""Principal points, which COLMAP keeps in the middle of the image.

Real ones are some pixels off, and that turns the cameras. Adjusting them freely makes it worse
wherever the views do not determine them. So each is moved as far as the data outweigh a prior:
the estimate of the adjustment has a standard error (by jackknife over quarters of the points),
and cameras are centred to half a per cent of the longer side of the image, more or less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.colmap import pycolmap_module

#: Standard deviation of principal points from the middle, as a share of the longer side.
PRIOR = 0.005
#: Images that a camera must have taken, at least.
IMAGES = 6
#: Parts of the points that are left out in turn.
PARTS = 4
#: Points that principal points are estimated of: those with the longest tracks.
POINTS = 3000

Centres = dict[int, NDArray[np.float64]]


def refine_centres(model: Any, seed: int | None = None) -> None:
    """Move the principal points of a ``pycolmap.Reconstruction``, and all else with them.

    With a seed by one thread: sums of several differ by rounding.
    """
    one = seed is not None
    images = Counter(image.camera_id for image in model.images.values() if image.has_pose)
    shared = [camera for camera, count in images.items() if count >= IMAGES]
    if not shared:
        return
    lengths = {point: model.points3D[point].track.length() for point in model.points3D}
    best = sorted(lengths, key=lambda point: (-lengths[point], point))[:POINTS]
    samples = [
        _adjusted(_with_points(model, (p for p in best if p % PARTS != part)), shared, one)
        for part in range(PARTS)
    ]
    found = _adjusted(_with_points(model, best), shared, one)
    for camera in shared:
        tried = np.array([sample[camera] for sample in samples])
        error = (PARTS - 1) / PARTS * ((tried - tried.mean(axis=0)) ** 2).sum(axis=0)
        target = model.cameras[camera]
        prior = (PRIOR * max(target.width, target.height)) ** 2
        middle = np.array([target.principal_point_x, target.principal_point_y])
        centre = middle + prior / (prior + error) * (found[camera] - middle)
        target.principal_point_x, target.principal_point_y = centre
    _adjust(model, centres=False, one=one)
    model.update_point_3d_errors()


def _with_points(model: Any, kept: Iterable[int]) -> Any:
    """A copy of a model that has some of its points."""
    copy = pycolmap_module().Reconstruction(model)
    for point in {*copy.points3D}.difference(kept):
        copy.delete_point3D(point)
    return copy


def _adjusted(model: Any, cameras: list[int], one: bool) -> Centres:
    """Principal points (2,) of cameras after adjusting all parameters of a model."""
    _adjust(model, centres=True, one=one)
    found = {camera: model.cameras[camera] for camera in cameras}
    return {
        camera: np.array([c.principal_point_x, c.principal_point_y]) for camera, c in found.items()
    }


def _adjust(model: Any, centres: bool, one: bool) -> None:
    """Bundle adjustment without a word, which pycolmap.bundle_adjustment does not offer."""
    pycolmap = pycolmap_module()
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_principal_point = centres
    options.print_summary = False
    if one:
        options.ceres.solver_options.num_threads = 1
    config = pycolmap.BundleAdjustmentConfig()
    for image in model.reg_image_ids():
        config.add_image(image)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    pycolmap.create_default_bundle_adjuster(options, config, model).solve()
