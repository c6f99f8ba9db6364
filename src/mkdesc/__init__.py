"""The multiple-kernel local-patch descriptor, made practical.

>>> import numpy as np
>>> import mkdesc
>>> patches = np.random.default_rng(0).integers(0, 256, (4, 64, 64), np.uint8)
>>> mkdesc.describe(patches).shape
(4, 128)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names
from mkdesc._support.version import __version__ as __version__

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc import batches as batches
    from mkdesc import datasets as datasets
    from mkdesc import evaluation as evaluation
    from mkdesc import explorer as explorer
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
    from mkdesc.features import Features, ImageMatches, load_features, match_images
    from mkdesc.heads import Statistics, Whitening
    from mkdesc.kernels import (
        CARTESIAN,
        CARTESIAN_RELATIVE,
        POLAR,
        POLAR_ABSOLUTE,
        Parametrization,
        VonMises,
        as_parametrization,
        match_kernel,
        product,
        register_feature,
    )
    from mkdesc.learn import TrainedHead
    from mkdesc.matching import match_descriptors, verify_matches
    from mkdesc.models import bundled_models, describe, load_model, save_model
    from mkdesc.retrieval import Index, build_index
    from mkdesc.visual import patch_map

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
    "build_index",
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
