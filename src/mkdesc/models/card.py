"""What a model file says of itself: everything a descriptor depends on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.kernels.parametrization import as_parametrization

__all__ = ["SCHEMA", "Card", "fingerprint"]

#: Number of the format; files of another number are refused.
SCHEMA = 1


def conventions(parametrization: str) -> dict[str, str]:
    """How pixels become features in this version of the package.

    A model learned with anything else would silently describe something else, so every word of
    this must agree with what its card says.

    >>> conventions("polar")["smoothing"]
    'gaussian, 5 taps, sigma 1.4 * patch_size / 64, border replicated'
    """
    return {
        **as_parametrization(parametrization).preparation.facts(),
        "order": "gradient attributes, then positions as written; constant, cosines, sines",
    }


@dataclass(frozen=True)
class Card:
    """The metadata of a model.

    Attributes
    ----------
    parametrization, patch_size
        Of the raw descriptor.
    method, dims, params
        Of the whitening.
    learned_from
        Source, counts and settings of the learning, as plain values.
    created
        Date, ISO 8601.
    sha256
        Fingerprint of all the above and of the tensors.
    """

    parametrization: str
    patch_size: int
    method: str
    dims: int
    params: dict[str, Any] = field(default_factory=dict)
    learned_from: dict[str, Any] = field(default_factory=dict)
    created: str = ""
    sha256: str = ""
    conventions: dict[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if not self.conventions:
            object.__setattr__(self, "conventions", conventions(self.parametrization))

    @property
    def side(self) -> float | None:
        """The side in sigma that the model is best used at; None: unknown."""
        return None

    def to_json(self) -> str:
        """The card as JSON text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Card:
        """Read a card, checking that this version understands all of it."""
        try:
            values = json.loads(text)
        except ValueError:
            raise ValueError("its card is not JSON") from None
        if not isinstance(values, dict) or values.get("schema") != SCHEMA:
            found = values.get("schema") if isinstance(values, dict) else None
            raise ValueError(f"its schema is {found!r}; this version reads {SCHEMA}")
        expected = {f.name: f.type for f in fields(cls)}
        if set(values) != set(expected):
            raise ValueError(f"its card has the fields {', '.join(sorted(values))}")
        kinds = {"str": str, "int": int, "dict[str, Any]": dict, "dict[str, str]": dict}
        for name, kind in expected.items():
            value = values[name]
            if not isinstance(value, kinds[str(kind)]) or isinstance(value, bool):
                raise ValueError(f"its card says {name} = {value!r}")
        theirs, ours = values["conventions"], conventions(values["parametrization"])
        for name in sorted({*theirs, *ours}):
            if theirs.get(name) != ours.get(name):
                raise ValueError(
                    f"its {name} is {theirs.get(name)!r}; this version has {ours.get(name)!r}"
                )
        return cls(**values)

    def lines(self) -> list[str]:
        """The card for reading, one fact a line."""
        facts = {
            "parametrization": self.parametrization,
            "patch size": f"{self.patch_size} px",
            "whitening": f"{self.method}, {self.dims} dimensions",
            **self.params,
            **{f"learned: {key}": value for key, value in self.learned_from.items()},
            "created": self.created,
            "sha256": self.sha256,
        }
        width = max(map(len, facts))
        return [f"{name:<{width}}  {value}" for name, value in facts.items()]


def fingerprint(tensors: dict[str, NDArray[np.float32]], card: Card) -> str:
    """SHA-256 of the card (but for the fingerprint itself) and of all tensors."""
    digest = hashlib.sha256(replace(card, sha256="").to_json().encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} ".encode())
        digest.update(np.ascontiguousarray(tensors[name], "<f4").tobytes())
    return digest.hexdigest()
