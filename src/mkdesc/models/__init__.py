"""Model files: a descriptor with its head, as data (safetensors, never pickle).

May use: _support, kernels, heads, descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.models.card import Card as Card
    from mkdesc.models.describing import describe as describe
    from mkdesc.models.files import bundled_models as bundled_models
    from mkdesc.models.files import load_model as load_model
    from mkdesc.models.files import read_card as read_card
    from mkdesc.models.files import save_model as save_model
    from mkdesc.models.opening import DEFAULT_MODEL as DEFAULT_MODEL
    from mkdesc.models.opening import PATCH_MODEL as PATCH_MODEL
    from mkdesc.models.opening import ModelChoice as ModelChoice
    from mkdesc.models.opening import model_file as model_file
    from mkdesc.models.opening import model_ratio as model_ratio
    from mkdesc.models.opening import open_model as open_model
    from mkdesc.models.opening import parse_model as parse_model

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
