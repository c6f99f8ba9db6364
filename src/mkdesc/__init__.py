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
    from mkdesc import belief as belief
    from mkdesc import datasets as datasets
    from mkdesc import evaluation as evaluation
    from mkdesc import explorer as explorer
    from mkdesc import features as features
    from mkdesc import geometry as geometry
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
    from mkdesc.descriptor import MKD as MKD
    from mkdesc.features import Features as Features
    from mkdesc.features import ImageMatches as ImageMatches
    from mkdesc.features import align as align
    from mkdesc.features import load_features as load_features
    from mkdesc.features import match_images as match_images
    from mkdesc.geometry import Camera as Camera
    from mkdesc.heads import Statistics as Statistics
    from mkdesc.heads import Whitening as Whitening
    from mkdesc.kernels import CARTESIAN as CARTESIAN
    from mkdesc.kernels import CARTESIAN_RELATIVE as CARTESIAN_RELATIVE
    from mkdesc.kernels import POLAR as POLAR
    from mkdesc.kernels import POLAR_ABSOLUTE as POLAR_ABSOLUTE
    from mkdesc.kernels import Parametrization as Parametrization
    from mkdesc.kernels import VonMises as VonMises
    from mkdesc.kernels import as_parametrization as as_parametrization
    from mkdesc.kernels import match_kernel as match_kernel
    from mkdesc.kernels import product as product
    from mkdesc.kernels import register_feature as register_feature
    from mkdesc.learn import TrainedHead as TrainedHead
    from mkdesc.matching import GrowOptions as GrowOptions
    from mkdesc.matching import grow_matches as grow_matches
    from mkdesc.matching import match_descriptors as match_descriptors
    from mkdesc.matching import verify_matches as verify_matches
    from mkdesc.models import bundled_models as bundled_models
    from mkdesc.models import describe as describe
    from mkdesc.models import load_model as load_model
    from mkdesc.models import save_model as save_model
    from mkdesc.retrieval import Index as Index
    from mkdesc.retrieval import build_index as build_index
    from mkdesc.visual import patch_map as patch_map

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
