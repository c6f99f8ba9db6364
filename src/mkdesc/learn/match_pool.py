"""Raw descriptors of keypoints that were found in pairs of views, on the device that trains.

Each place of the pool holds a pair of views: of one photograph, or of two of the same scene. Pairs
are made anew while they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mkdesc.compute.torch.module import Descriptor
from mkdesc.compute.torch.stages import head_module
from mkdesc.heads.head import Head
from mkdesc.images.detectors.learned_weights import Weights
from mkdesc.learn.keypoint_pairs import (
    Found,
    Moved,
    cut,
    find_points,
    move,
    near,
    partners,
    table_of,
)
from mkdesc.learn.keypoint_views import Photos, ViewRecipe, draw_zooms, view_maps
from mkdesc.learn.scene_maps import SceneMap, find_scene_maps, move_by_scene

#: Pairs of views that are made at a time.
AT_ONCE = 16


@dataclass(frozen=True)
class MatchRecipe:
    """How pairs of views are made, and how a head is trained on them.

    Attributes
    ----------
    pairs
        How many the pool holds.
    points
        Keypoints of a view, at most.
    size
        Side of a view in pixels.
    views
        How much two views of a photograph differ.
    real
        Share of the pairs that are of two photographs of one scene, where there are such.
    real_views
        How much views of two photographs differ beyond what the photographs do.
    batch, fresh
        Pairs of views per step, and how many are made anew for each step.
    temperature
        What cosines are divided by in the first part of :func:`.match_losses.match_loss`.
    mutual_temperature, mutual
        The same in the second part, and its weight.
    rate
        Learning rate, at its largest.
    """

    pairs: int = 1600
    points: int = 512
    size: int = 512
    views: ViewRecipe = field(default_factory=lambda: ViewRecipe(180.0))
    real: float = 0.2
    real_views: ViewRecipe = field(
        default_factory=lambda: ViewRecipe(180.0, scale=0.3, tilt=0.3, perspective=0.1)
    )
    batch: int = 16
    fresh: int = 2
    temperature: float = 0.05
    mutual_temperature: float = 0.03
    mutual: float = 0.5
    rate: float = 1e-3


class MatchBatch(NamedTuple):
    """Some pairs of views.

    Attributes
    ----------
    raw
        (B, 2, N, D) raw descriptors, of all squares side by side.
    used
        (B, 2, N) whether there is a keypoint.
    known
        (B, N) whether it is known where in the second view keypoints of the first are.
    near
        (B, N, N) which of the second view may show what one of the first shows.
    pair, one, two
        (M,) matching keypoints: number of the pair, and of the keypoint in either view.
    apart
        (B, B) whether what two pairs show is certainly different.
    """

    raw: Tensor
    used: Tensor
    known: Tensor
    near: Tensor
    pair: Tensor
    one: Tensor
    two: Tensor
    apart: Tensor


class MatchPool:
    """Pairs of views, as raw descriptors of their keypoints.

    Parameters
    ----------
    photos, scenes
        The photographs, and the number of the scene that each shows.
    weights
        The network of the detector.
    descriptor
        What describes a square, raw.
    sides
        Sides of the squares around a keypoint, in units of its sigma.
    recipe
        How pairs are made.
    seed
        Of all that is drawn.
    """

    def __init__(
        self,
        photos: Photos,
        scenes: NDArray[np.int64],
        weights: Weights,
        descriptor: Descriptor,
        sides: Sequence[float],
        recipe: MatchRecipe,
        seed: int,
    ) -> None:
        self.photos, self.weights, self.recipe = photos, weights, recipe
        self._descriptor, self._sides = descriptor, tuple(sides)
        self.maps: list[SceneMap] = []
        device = photos.device
        self._scenes = torch.from_numpy(scenes).to(device)
        self._rng = np.random.default_rng([seed, 17])
        self._generator = torch.Generator(device).manual_seed(seed + 5)
        n, count, dims = recipe.pairs, recipe.points, descriptor.out_dims * len(self._sides)

        def empty(*shape: int, kind: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=kind, device=device)

        self._raw = empty(n, 2, count, dims, kind=torch.float16)
        self._used = empty(n, 2, count, kind=torch.bool)
        self._partner = empty(n, count, kind=torch.int64)
        self._moved = Moved(empty(n, count, 2), empty(n, count), empty(n, count, kind=torch.bool))
        self._others = empty(n, count, 2)
        self._scene = empty(n, kind=torch.int64)
        self._next = 0

    @property
    def matches(self) -> float:
        """How many keypoints of a view match, on average."""
        return float((self._partner >= 0).sum(1).float().mean())

    def fill(self, tell: Callable[[int], object]) -> None:
        """Make all pairs; tells how many there are by now."""
        for made in range(0, self.recipe.pairs, AT_ONCE):
            self.renew(AT_ONCE)
            tell(min(made + AT_ONCE, self.recipe.pairs))

    @torch.no_grad()
    def renew(self, count: int) -> None:
        """Replace the oldest pairs by as many new ones."""
        pairs, device = self.recipe.pairs, self.photos.device
        at = torch.arange(self._next, self._next + min(count, pairs), device=device) % pairs
        self._next = (self._next + count) % pairs
        real = int(self._rng.binomial(len(at), self.recipe.real)) if self.maps else 0
        if real:
            self._put(at[:real], *self._real(real))
        if real < len(at):
            self._put(at[real:], *self._warped(len(at) - real))

    def _warped(self, count: int) -> tuple[Tensor, Found, Moved, NDArray[np.int64]]:
        """Pairs of views of one photograph."""
        how = self.recipe
        pairs = self.photos.pairs(count, how.size, how.views, self._rng, self._generator)
        found = find_points(self.weights, pairs.images, pairs.inside, how.points)
        return pairs.images, found, move(found, pairs.to_other[:count]), pairs.photos

    def _real(self, count: int) -> tuple[Tensor, Found, Moved, NDArray[np.int64]]:
        """Pairs of views of two photographs of one scene, of places that both show."""
        how, rng = self.recipe, self._rng
        chosen = [self.maps[i] for i in rng.integers(len(self.maps), size=count)]
        middles = [int(rng.integers(len(scene.places))) for scene in chosen]
        numbers = np.array([scene.photos for scene in chosen])
        zooms = draw_zooms([self.photos.size(i) for i in numbers[:, 0]], how.size, how.views, rng)
        centres, larger = [], []
        for scene, middle in zip(chosen, middles, strict=True):
            centres.append(torch.stack([scene.places[middle], scene.others[middle]]))
            larger.append(torch.linalg.det(scene.local[middle]).sqrt())
        around = torch.stack(centres).double().cpu().numpy()
        both = (zooms, zooms * torch.stack(larger).double().cpu().numpy())
        maps = [
            view_maps(around[:, k], both[k], how.size, how.real_views, rng, bool(k))
            for k in range(2)
        ]
        images, inside = self.photos.views(
            numbers.T.reshape(-1), np.concatenate(maps), how.size, self._generator
        )
        found = find_points(self.weights, images, inside, how.points)
        device = images.device
        there = torch.tensor(maps[0], dtype=torch.float32, device=device)
        back = torch.tensor(np.linalg.inv(maps[1]), dtype=torch.float32, device=device)
        moved = [
            move_by_scene(scene, found.places[k], found.scales[k], (there[k], back[k]))
            for k, scene in enumerate(chosen)
        ]
        return images, found, Moved(*map(torch.stack, zip(*moved, strict=True))), numbers[:, 0]

    def _put(
        self, at: Tensor, images: Tensor, found: Found, moved: Moved, photos: NDArray[np.int64]
    ) -> None:
        """Describe keypoints and put them into places of the pool."""
        n = len(at)
        raw = self.describe(images, found).half()
        self._raw[at] = raw.view(2, n, *raw.shape[1:]).transpose(0, 1)
        self._used[at] = found.used.view(2, n, -1).transpose(0, 1)
        self._partner[at] = partners(found, moved)
        for place, value in zip(self._moved, moved, strict=True):
            place[at] = value
        self._others[at] = found.places[n:]
        self._scene[at] = self._scenes[torch.from_numpy(photos).to(at.device)]

    def find_maps(self, head: Head) -> None:
        """Find photographs that show the same, by a head; what is renewed is of them, too."""
        stages = head_module(head).to(self.photos.device)
        if self.recipe.real:
            self.maps = find_scene_maps(
                self.photos,
                self.weights,
                lambda image, found: stages(self.describe(image, found)[0]),
            )

    @torch.no_grad()
    def describe(self, images: Tensor, found: Found) -> Tensor:
        """Raw descriptors (V, N, D) of the keypoints of images (V, H, W)."""
        patches = cut(images, found, self._descriptor.patch_size, self._sides)
        raw = torch.cat([self._descriptor(patches[:, k]) for k in range(patches.shape[1])], dim=1)
        return table_of(raw, found.used)

    def batch(self, count: int) -> MatchBatch:
        """Some pairs, drawn at random."""
        drawn = self._rng.choice(self.recipe.pairs, count, replace=False)
        return self._take(torch.from_numpy(drawn).to(self._raw.device))

    def parts(self) -> Iterator[MatchBatch]:
        """All pairs, some at a time."""
        for part in torch.arange(self.recipe.pairs, device=self._raw.device).split(AT_ONCE):
            yield self._take(part)

    def _take(self, at: Tensor) -> MatchBatch:
        moved = Moved(*(part[at] for part in self._moved))
        partner, scene = self._partner[at], self._scene[at]
        pair, one = (partner >= 0).nonzero().unbind(1)
        return MatchBatch(
            self._raw[at].float(),
            self._used[at],
            moved.known,
            near(moved, self._others[at]),
            pair,
            one,
            partner[pair, one],
            scene[:, None] != scene[None],
        )
