"""Fresh views where the training is: photographs are changed by threads, all else is on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mkdesc._support.threads import checked_threads
from mkdesc.compute.torch.module import Descriptor
from mkdesc.descriptor import MKD
from mkdesc.images.cutting_torch import cut_patches
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.learn.photos import ChangedPhoto, FreshPhotos
from mkdesc.learn.views import FreshViews

#: Descriptors that are moved at a time.
ROWS = 1 << 15


class Changed(NamedTuple):
    """The number of the first view that is replaced, and views of a photograph."""

    first: int
    views: list[ChangedPhoto]


class DeviceViews(FreshViews):
    """Views on a device, in half precision, that are made anew while they are used.

    Parameters
    ----------
    raw
        Raw descriptors (N, D) of all views to begin with, wherever they are.
    point_of, rows
        As in :class:`~mkdesc.learn.views.FixedViews`.
    fresh
        Where views come from.
    mkd
        What describes them.
    device
        Of PyTorch.
    """

    #: Steps are so fast there that more would make them wait.
    rate = 0.02

    def __init__(
        self,
        raw: NDArray[np.float32],
        point_of: NDArray[Any],
        rows: NDArray[np.integer],
        fresh: FreshPhotos,
        mkd: MKD,
        device: torch.device,
    ) -> None:
        pool = torch.empty(raw.shape, dtype=torch.float16, device=device)
        for start in range(0, len(raw), ROWS):
            pool[start : start + ROWS] = torch.from_numpy(raw[start : start + ROWS].copy())

        def make(number: int) -> Changed:
            first, views = fresh.views(number)
            return Changed(first, list(views))

        super().__init__(pool, point_of, rows, make, checked_threads(mkd.n_threads))
        self._size = fresh.recipe.patch_size
        kernels = as_parametrization(mkd.parametrization)
        self._describe = Descriptor(kernels, self._size).to(device).eval()

    def _put(self, new: Any) -> int:
        """Cut and describe new views and put them in their place; how many there were."""
        n_views = len(new.views)
        count = n_views * len(new.views[0].frames)
        with torch.no_grad():
            for which, view in enumerate(new.views):
                image = torch.from_numpy(view.image).to(self.raw.device)
                patches = cut_patches(image, view.frames, self._size, interpolation="cubic")
                rows = slice(new.first + which, new.first + count, n_views)
                self.raw[rows] = self._describe(patches).half()
        return count
