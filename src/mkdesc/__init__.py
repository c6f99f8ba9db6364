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

if TYPE_CHECKING:
    from mkdesc.descriptor import MKD, describe
    from mkdesc.images.features import Features
    from mkdesc.kernels import VonMises
    from mkdesc.match_kernel import match_kernel
    from mkdesc.matching import match_descriptors, verify_matches
    from mkdesc.models import bundled_models, load_model, save_model
    from mkdesc.parametrization import (
        CARTESIAN,
        CARTESIAN_RELATIVE,
        POLAR,
        POLAR_ABSOLUTE,
        Parametrization,
        as_parametrization,
        product,
    )
    from mkdesc.statistics import Statistics
    from mkdesc.visual.patchmaps import patch_map
    from mkdesc.whitening import Whitening

__version__ = "0.1.0"

#: Public names and the modules they live in; each is imported when it is first used.
_HOMES = {
    "MKD": "descriptor",
    "describe": "descriptor",
    "Features": "images.features",
    "VonMises": "kernels",
    "match_kernel": "match_kernel",
    "patch_map": "visual.patchmaps",
    "match_descriptors": "matching",
    "verify_matches": "matching",
    "Statistics": "statistics",
    "Whitening": "whitening",
    "load_model": "models",
    "save_model": "models",
    "bundled_models": "models",
    "CARTESIAN": "parametrization",
    "CARTESIAN_RELATIVE": "parametrization",
    "POLAR": "parametrization",
    "POLAR_ABSOLUTE": "parametrization",
    "Parametrization": "parametrization",
    "as_parametrization": "parametrization",
    "product": "parametrization",
}

#: Modules that are reached by their names, as in ``mkdesc.learn.learn_photos``.
_MODULES = ("learn", "models", "datasets", "evaluation", "images", "visual")

__all__ = [
    "CARTESIAN",
    "CARTESIAN_RELATIVE",
    "MKD",
    "POLAR",
    "POLAR_ABSOLUTE",
    "Features",
    "Parametrization",
    "Statistics",
    "VonMises",
    "Whitening",
    "as_parametrization",
    "bundled_models",
    "describe",
    "load_model",
    "match_descriptors",
    "match_kernel",
    "patch_map",
    "product",
    "save_model",
    "verify_matches",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"mkdesc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'mkdesc' has no attribute {name!r}")
    value = getattr(import_module(f"mkdesc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
