"""How the compiled loops are compiled, and what they all know."""

from __future__ import annotations

from typing import Any

FAST: dict[str, Any] = {
    "fastmath": True,
    "error_model": "numpy",
    "nogil": True,
    "inline": "never",
}
#: NaN and infinity stay visible.
CAREFUL = FAST | {"fastmath": {"reassoc", "nsz", "contract"}}
#: Operations as they are written.
EXACT = FAST | {"fastmath": False}

#: What squared norms are kept above, to divide by their roots: nothing at all stays zeros.
NOTHING = 1e-70
