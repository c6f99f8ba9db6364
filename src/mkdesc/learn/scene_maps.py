"""Where two photographs show the same: matches that agree with their neighbours, and what follows.

Between photographs of one scene there is no homography, but around every right match there are
others, and each of them says, by the scales and angles of its two keypoints, where the others
should be. Those that agree give a local affine map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mkdesc.images.detectors.learned_weights import Weights
from mkdesc.learn.keypoint_pairs import Found, Moved, distances, find_points
from mkdesc.learn.keypoint_views import Photos

#: Keypoints of a photograph.
KEYPOINTS = 2000
#: Pixels within which matches are neighbours.
NEIGHBOURS = 100.0
#: Neighbours that a match must agree with. (Photographs of different scenes have none such.)
LEAST = 3
#: How far, in parts of their distance and in pixels, a neighbour may be from where it should be.
PART, PIXELS = 0.35, 3.0
#: Neighbours that a local map is made of, and pixels it may be wrong by.
FITTED, EXACT = 6, 2.0
#: Maps that say where a place is, which must agree, and how far away in pixels they may be.
ASKED, REACH = 3, 48.0
#: Best matches that are looked at first.
GLANCE = 300
#: Photographs with fewer matches that agree show nothing in common.
FEWEST = 15


class SceneMap(NamedTuple):
    """What two photographs have in common.

    Attributes
    ----------
    photos
        Their numbers.
    places, others
        (n, 2) places in the first, and the same places in the second.
    local
        (n, 2, 2) how the surroundings of each map.
    """

    photos: tuple[int, int]
    places: Tensor
    others: Tensor
    local: Tensor


@torch.no_grad()
def find_scene_maps(
    photos: Photos, weights: Weights, describe: Callable[[Tensor, Found], Tensor]
) -> list[SceneMap]:
    """All pairs of photographs that have something in common.

    Parameters
    ----------
    photos
        The photographs.
    weights
        The network of the detector.
    describe
        Unit vectors (N, d) of the keypoints of an image (1, H, W).
    """
    found, vectors = [], []
    for number in range(len(photos)):
        image = photos.image(number)[None]
        keypoints = find_points(
            weights, image, torch.ones_like(image, dtype=torch.bool), KEYPOINTS
        )
        found.append(keypoints)
        vectors.append(describe(image, keypoints))
    maps = []
    for i in range(len(photos)):
        for j in _promising(found, vectors, i):
            alike = vectors[i] @ vectors[j].T
            forth, back = alike.argmax(1), alike.argmax(0)
            one = (back[forth] == torch.arange(len(forth), device=forth.device)).nonzero()[:, 0]
            made = _agreeing(found[i], found[j], one, forth[one])
            if len(made[0]) >= FEWEST:
                maps.append(SceneMap((i, j), *made))
    return maps


def _promising(found: list[Found], vectors: list[Tensor], i: int) -> list[int]:
    """Later photographs whose best matches with this one agree with each other, at a glance."""
    glances = []
    for j in range(i + 1, len(found)):
        alike = vectors[i] @ vectors[j].T
        best, forth = alike.max(1)
        mutual = alike.argmax(0)[forth] == torch.arange(len(forth), device=forth.device)
        one = best.masked_fill(~mutual, -1).topk(min(GLANCE, len(best))).indices
        glances.append(_agreement(found[i], found[j], one, forth[one]).sum())
    counts = torch.stack(glances).tolist() if glances else []
    return [i + 1 + k for k, count in enumerate(counts) if count >= FEWEST / 3]


def _agreement(a: Found, b: Found, one: Tensor, two: Tensor) -> Tensor:
    """Which matches of keypoints agree with enough of their neighbours."""
    p, q = a.places[0, one], b.places[0, two]
    turn = (b.angles[0, two] - a.angles[0, one]).deg2rad()
    scale = b.scales[0, two] / a.scales[0, one]
    cos, sin = scale * turn.cos(), scale * turn.sin()
    alike = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    apart = p[None] - p[:, None]
    distance = apart.norm(dim=-1)
    expected = q[:, None] + torch.einsum("aij,abj->abi", alike, apart)
    agree = (expected - q[None]).norm(dim=-1) < PART * scale[:, None] * distance + PIXELS
    agree &= agree.T & (distance < NEIGHBOURS) & (distance > 0)
    return agree.sum(1) >= LEAST


def _agreeing(a: Found, b: Found, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Places, others and local maps of matches of keypoints that agree with their neighbours."""
    kept = _agreement(a, b, one, two)
    p, q = a.places[0, one[kept]], b.places[0, two[kept]]
    if len(p) < FEWEST:
        return p, q, p.new_empty((len(p), 2, 2))
    # The map of the nearest, by least squares; it need not fit exactly at the match itself.
    nearest = distances(p, p).topk(min(FITTED + 1, len(p)), largest=False).indices
    u, v = p[nearest] - p[:, None], q[nearest] - q[:, None]
    ones = torch.ones_like(u[..., :1])
    design = torch.cat([u, ones], -1)
    gram = design.mT @ design + torch.diag(torch.tensor([1.0, 1.0, 1e-3], device=p.device))
    fitted = torch.linalg.solve(gram, design.mT @ v)
    wrong = (design @ fitted - v).norm(dim=-1)
    local = fitted[:, :2].mT
    good = (wrong[:, 0] < EXACT) & (wrong.median(dim=1).values < EXACT)
    good &= torch.linalg.det(local) > 0.05
    return p[good], (q + fitted[:, 2])[good], local[good]


@torch.no_grad()
def move_by_scene(
    scene: SceneMap, places: Tensor, scales: Tensor, maps: tuple[Tensor, Tensor]
) -> Moved:
    """Where keypoints of a view of the first photograph are in a view of the second.

    Parameters
    ----------
    scene
        What the photographs have in common.
    places, scales
        (N, 2) and (N,) of the keypoints.
    maps
        (3, 3) from the first view to its photograph, and from the second photograph to its view.
    """
    there, grown = _through(maps[0], places)
    away, nearest = distances(there, scene.places).topk(ASKED, largest=False)
    local = scene.local[nearest]
    apart = there[:, None] - scene.places[nearest]
    guesses = scene.others[nearest] + (local @ apart[..., None])[..., 0]
    mean = guesses.mean(1)
    known = (away[:, -1] < REACH) & ((guesses - mean[:, None]).norm(dim=-1).amax(1) < EXACT)
    back, shrunk = _through(maps[1], mean)
    grown = grown * shrunk * torch.linalg.det(local[:, 0]).clamp_min(1e-3).sqrt()
    return Moved(back, scales * grown, known)


def _through(homography: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Points (N, 2) through a homography, and how many pixels one becomes there."""
    moved = points @ homography[:, :2].T + homography[:, 2]
    w = moved[:, 2].clamp_min(1e-6)
    return moved[:, :2] / w[:, None], (torch.linalg.det(homography).abs() / w**3).sqrt()
