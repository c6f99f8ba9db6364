"""Model files of the first schema: one projection, and conventions in English sentences.

They are read, never written. The sentences are frozen: they must be what the files say, word for
word, whatever the rest of the package calls these things.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.kernels.preparation import Preparation
from mkdesc.models.card import Card
from mkdesc.models.operations import Operation, Tensors

__all__ = ["card_of"]

_FIELDS = {
    "parametrization": str,
    "patch_size": int,
    "method": str,
    "dims": int,
    "params": dict,
    "learned_from": dict,
    "created": str,
    "sha256": str,
    "conventions": dict,
    "schema": int,
}


def card_of(values: dict[str, Any], tensors: Tensors) -> Card:
    """The card of an old file, as if it had been written today; ValueError for anything amiss."""
    if set(values) != set(_FIELDS):
        raise ValueError(f"its card has the fields {', '.join(sorted(values))}")
    for name, kind in _FIELDS.items():
        if not isinstance(values[name], kind) or isinstance(values[name], bool):
            raise ValueError(f"its card says {name} = {values[name]!r}")
    parametrization = as_parametrization(values["parametrization"])
    theirs, ours = values["conventions"], _sentences(parametrization.preparation)
    for name in sorted({*theirs, *ours}):
        if theirs.get(name) != ours.get(name):
            raise ValueError(
                f"its {name} is {theirs.get(name)!r}; this version has {ours.get(name)!r}"
            )
    if sorted(tensors) != ["mean", "projection"]:
        raise ValueError(f"expected the tensors mean and projection, got {', '.join(tensors)}")
    shapes = {
        "mean": (parametrization.dims,),
        "projection": (parametrization.dims, values["dims"]),
    }
    for name, shape in shapes.items():
        if tensors[name].shape != shape:
            raise ValueError(f"{name} has the shape {tensors[name].shape}, expected {shape}")
    if _fingerprint(values, tensors) != values["sha256"]:
        raise ValueError("card and tensors do not belong together (sha256 differs)")
    power, root = values["params"].get("power"), values["method"] == "pca"
    before: list[Operation] = [{"op": "power", "exponent": power}, {"op": "l2"}]
    project: Operation = {"op": "affine", "dims": list(shapes["projection"]), "offset": None}
    project |= {"matrix": "projection", "centre": "mean"}
    after: list[Operation] = [{"op": "power", "exponent": 0.5}, {"op": "l2"}]
    return Card(
        parametrization=values["parametrization"],
        patch_size=values["patch_size"],
        dims=values["dims"],
        head=[*(before if power != 1 else []), project, *(after if root else after[1:])],
        method=values["method"],
        params=values["params"],
        learned_from=values["learned_from"],
        created=values["created"],
        sha256=values["sha256"],
        schema=1,
    )


def _sentences(preparation: Preparation) -> dict[str, str]:
    """What the first schema said of how pixels become features."""
    p = preparation
    sigma = f"{p.sigma} * patch_size / 64" if p.side is None else f"{p.sigma}"
    root = f"sqrt(gx^2 + gy^2 + {p.epsilon_square:g})"
    weight = f"sqrt(magnitude + {p.epsilon:g})" if p.epsilon else "sqrt(magnitude)"
    facts = {
        "smoothing": f"gaussian, {2 * p.reach + 1} taps, sigma {sigma}, border replicated",
        "gradient": f"left minus right, above minus below; {root.replace('e-0', 'e-')}",
        "weight": weight.replace("e-0", "e-") + (" * exp(-rho^2)" if p.window else ""),
        "normalisation": "l2 of the whole" if p.joint else "l2 of each part, l2 of the whole",
        "order": "gradient attributes, then positions as written; constant, cosines, sines",
    }
    if p.side is not None:
        facts["reduction"] = f"to {p.side} px by means"
    if p.standardise:
        facts["contrast"] = f"mean 0, divided by standard deviation + {p.softening:g}"
    return facts


def _fingerprint(values: dict[str, Any], tensors: Tensors) -> str:
    """SHA-256 of the card (but for the fingerprint itself) and of all tensors."""
    text = json.dumps(values | {"sha256": ""}, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} ".encode())
        with np.errstate(over="ignore"):  # other types are refused when the head is made
            digest.update(np.ascontiguousarray(tensors[name], "<f4").tobytes())
    return digest.hexdigest()
