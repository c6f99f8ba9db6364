"""Features that somebody computed, in an HDF5 file of hloc's layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mkdesc.evaluation.photographs.base import Photograph, PhotographFeatures
from mkdesc.features.stores.hloc import h5py_module
from mkdesc.measures.descriptors import as_descriptors


def stored_features(file: Path) -> Callable[[Photograph, int], PhotographFeatures]:
    """Look photographs up by name; positions are brought to the size that is judged.

    Parameters
    ----------
    file
        Groups named like the photographs, each with ``keypoints`` (N, 2), ``descriptors`` (D, N)
        and, to choose the strongest, ``scores`` (N,).
    """
    h5py = h5py_module()

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        try:
            with h5py.File(file, "r") as stored:
                group = stored[photograph.name]
                arrays = {name: group[name][()] for name in group}
            xy = np.asarray(arrays["keypoints"], np.float64)[:, :2]
            descriptors = np.asarray(arrays["descriptors"], np.float32).T
            scores = np.asarray(arrays.get("scores", np.zeros(len(xy))), np.float64)
        except (OSError, KeyError, RuntimeError, ValueError, IndexError, TypeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{file}: no features of {photograph.name} ({reason})") from None
        name = f"{file}: {photograph.name}"
        rows = as_descriptors(descriptors, len(xy), name)
        if scores.shape != (len(xy),) or not np.isfinite(xy).all():
            raise ValueError(f"{name}: expected finite keypoints and a score for each")
        order = np.argsort(-scores, kind="stable")[:most]
        # Pixel centres are at integers: half a pixel of either size is what they share.
        return PhotographFeatures(((xy + 0.5) * photograph.scale - 0.5)[order], rows[order])

    return extract
