"""Model files: a descriptor with its whitening, as data (safetensors, never pickle)."""

from __future__ import annotations

from mkdesc.models.card import Card
from mkdesc.models.files import bundled_models, load_model, read_card, save_model

__all__ = ["Card", "bundled_models", "load_model", "read_card", "save_model"]
