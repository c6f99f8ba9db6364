"""Model files: a descriptor with its head, as data (safetensors, never pickle).

May use: _support, kernels, heads, descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.models.card import Card
    from mkdesc.models.describing import describe
    from mkdesc.models.files import bundled_models, load_model, read_card, save_model
    from mkdesc.models.opening import (
        DEFAULT_MODEL,
        PATCH_MODEL,
        ModelChoice,
        model_file,
        model_ratio,
        open_model,
        parse_model,
    )

__all__ = [
    "DEFAULT_MODEL",
    "PATCH_MODEL",
    "Card",
    "ModelChoice",
    "bundled_models",
    "describe",
    "load_model",
    "model_file",
    "model_ratio",
    "open_model",
    "parse_model",
    "read_card",
    "save_model",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
