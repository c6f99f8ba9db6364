"""The multiple-kernel local-patch descriptor, made practical.

>>> import numpy as np
>>> import mkdesc
>>> patches = np.random.default_rng(0).integers(0, 256, (4, 64, 64), np.uint8)
>>> mkdesc.describe(patches).shape
(4, 128)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mkdesc._support.version import __version__ as __version__

if TYPE_CHECKING:
    # What __getattr__ imports when it is first used, for type checkers and editors.
    from mkdesc import datasets as datasets
    from mkdesc import evaluation as evaluation
    from mkdesc import features as features
    from mkdesc import heads as heads
    from mkdesc import images as images
    from mkdesc import kernels as kernels
    from mkdesc import learn as learn
    from mkdesc import matching as matching
    from mkdesc import measures as measures
    from mkdesc import models as models
    from mkdesc import retrieval as retrieval
    from mkdesc import sfm as sfm
    from mkdesc import torch as torch
    from mkdesc import visual as visual
    from mkdesc.descriptor import MKD
    from mkdesc.features.features import Features
    from mkdesc.features.folder import load_features
    from mkdesc.features.matches import ImageMatches
    from mkdesc.features.pair import match_images
    from mkdesc.heads.statistics import Statistics
    from mkdesc.heads.whitening import Whitening
    from mkdesc.kernels.match_kernel import match_kernel
    from mkdesc.kernels.parametrization import (
        CARTESIAN,
        CARTESIAN_RELATIVE,
        POLAR,
        POLAR_ABSOLUTE,
        Parametrization,
        as_parametrization,
        product,
    )
    from mkdesc.kernels.registering import register_feature
    from mkdesc.kernels.vonmises import VonMises
    from mkdesc.learn.trained import TrainedHead
    from mkdesc.matching.nearest import match_descriptors
    from mkdesc.matching.verification import verify_matches
    from mkdesc.models import bundled_models, load_model, save_model
    from mkdesc.models.describing import describe
    from mkdesc.retrieval.index import Index
    from mkdesc.visual.patchmaps import patch_map

#: Public names and the modules they live in; each is imported when it is first used.
_HOMES = {
    "MKD": "descriptor",
    "describe": "models.describing",
    "Features": "features.features",
    "ImageMatches": "features.matches",
    "load_features": "features.folder",
    "match_images": "features.pair",
    "Index": "retrieval.index",
    "VonMises": "kernels.vonmises",
    "match_kernel": "kernels.match_kernel",
    "patch_map": "visual.patchmaps",
    "match_descriptors": "matching.nearest",
    "verify_matches": "matching.verification",
    "Statistics": "heads.statistics",
    "Whitening": "heads.whitening",
    "TrainedHead": "learn.trained",
    "load_model": "models",
    "save_model": "models",
    "bundled_models": "models",
    "CARTESIAN": "kernels.parametrization",
    "CARTESIAN_RELATIVE": "kernels.parametrization",
    "POLAR": "kernels.parametrization",
    "POLAR_ABSOLUTE": "kernels.parametrization",
    "Parametrization": "kernels.parametrization",
    "as_parametrization": "kernels.parametrization",
    "product": "kernels.parametrization",
    "register_feature": "kernels.registering",
}

#: Modules that are reached by their names, as in ``mkdesc.learn.learn_photos``.
_MODULES = (
    "datasets",
    "evaluation",
    "features",
    "heads",
    "images",
    "kernels",
    "learn",
    "matching",
    "measures",
    "models",
    "retrieval",
    "sfm",
    "torch",
    "visual",
)

__all__ = [
    "CARTESIAN",
    "CARTESIAN_RELATIVE",
    "MKD",
    "POLAR",
    "POLAR_ABSOLUTE",
    "Features",
    "ImageMatches",
    "Index",
    "Parametrization",
    "Statistics",
    "TrainedHead",
    "VonMises",
    "Whitening",
    "as_parametrization",
    "bundled_models",
    "describe",
    "load_features",
    "load_model",
    "match_descriptors",
    "match_images",
    "match_kernel",
    "patch_map",
    "product",
    "register_feature",
    "save_model",
    "verify_matches",
]


if not TYPE_CHECKING:  # to a type checker any name would be there

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"mkdesc.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'mkdesc' has no attribute {name!r}")
        value = getattr(import_module(f"mkdesc.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
