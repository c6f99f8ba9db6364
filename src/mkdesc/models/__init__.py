"""Model files: a descriptor with its head, as data (safetensors, never pickle).

May use: _support, kernels, heads, descriptor.
"""

from __future__ import annotations

from mkdesc.models.card import Card
from mkdesc.models.files import bundled_models, load_model, read_card, save_model

__all__ = ["Card", "bundled_models", "load_model", "read_card", "save_model"]
