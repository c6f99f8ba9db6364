"""What a model file says of itself, and the checks that it is what it says."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import checked_sides
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.kernels.patches import SMALLEST

#: Number of the format.
SCHEMA = 2

#: Largest patch side that a file is believed.
LARGEST = 4096

#: How this version computes, beyond what the preparation says in numbers. A model learned with
#: anything else would silently describe something else.
CONVENTIONS: dict[str, Any] = {
    "gradient_sign": -1,  # the pixel before (left, above) minus the pixel after
    "smoothing": "gaussian",
    "border": "replicate",
    "attributes": "gradient-first",  # then positions, as the parametrization has them
    "frequencies": "constant-cosines-sines",
}

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "str | None": (str, type(None)),
    "float | None": (float, int, type(None)),
    "float | list[float] | None": (float, int, list, type(None)),
    "dict[str, Any]": (dict,),
    "list[dict[str, Any]]": (list,),
}


def preparation_numbers(parametrization: str) -> dict[str, Any]:
    """How patches are prepared for these kernels, in numbers.

    >>> preparation_numbers("polar")["sigma"]
    1.4
    """
    numbers = as_parametrization(parametrization).preparation.to_dict()
    del numbers["name"]
    return numbers


@dataclass(frozen=True)
class Card:
    """The metadata of a model.

    Attributes
    ----------
    parametrization, patch_size
        Of the raw descriptor.
    dims
        Length of the descriptors.
    head
        What the raw descriptor goes through: operations with the names of their tensors, see
        :mod:`mkdesc.models.operations`.
    method, params
        Of the whitening that the head was learned by; None and nothing for other heads.
    side
        Side of keypoints' patches, in units of their sigma, that the model is best used at; a
        list of them if it looks at several squares of a keypoint; None if it was not made for
        keypoints.
    ratio
        Of Lowe's test, that suits these descriptors; None: not known. Files without it do not
        mention it.
    learned_from
        Source, counts and settings of the learning, as plain values.
    created
        Date, ISO 8601.
    sha256
        Fingerprint of all the above and of the tensors.
    preparation, conventions
        How pixels become features, as numbers and fixed words; default: as this version does it.
    schema
        Number of the format that the file has.
    """

    parametrization: str
    patch_size: int
    dims: int
    head: list[dict[str, Any]]
    method: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    side: float | list[float] | None = None
    ratio: float | None = None
    learned_from: dict[str, Any] = field(default_factory=dict)
    created: str = ""
    sha256: str = ""
    preparation: dict[str, Any] = field(default_factory=dict)
    conventions: dict[str, Any] = field(default_factory=lambda: dict(CONVENTIONS))
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, _TYPES[str(one.type)]) or isinstance(value, bool):
                raise ValueError(f"its card says {one.name} = {value!r}")
        if not SMALLEST <= self.patch_size <= LARGEST:
            raise ValueError(
                f"its card says patch_size = {self.patch_size}, expected {SMALLEST} to {LARGEST}"
            )
        if self.side is not None:
            try:
                checked_sides(self.side)
            except ValueError:
                expected = "a number > 0, a list of them or null"
                raise ValueError(
                    f"its card says side = {self.side}, expected {expected}"
                ) from None
        if self.ratio is not None and not 0 < self.ratio <= 1:
            raise ValueError(
                f"its card says ratio = {self.ratio}, expected a number > 0 and <= 1, or null"
            )
        if not self.preparation:
            numbers = preparation_numbers(self.parametrization)
            object.__setattr__(self, "preparation", numbers)

    def to_json(self) -> str:
        """The card as JSON text."""
        values = asdict(self)
        if self.ratio is None:  # so that files of before there was one stay what they are
            del values["ratio"]
        return json.dumps(values, sort_keys=True, allow_nan=False)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Card:
        """A card of what its JSON text has, checked to be understood by this version."""
        if values.get("schema") != SCHEMA:
            raise ValueError(
                f"its schema is {values.get('schema')!r}; this version reads {SCHEMA}"
            )
        if {*values, "ratio"} != {one.name for one in fields(cls)}:
            raise ValueError(f"its card has the fields {', '.join(sorted(values))}")
        card = cls(**values)
        expected = {
            "preparation": preparation_numbers(card.parametrization),
            "conventions": CONVENTIONS,
        }
        for name, ours in expected.items():
            theirs = values[name]
            for key in sorted({*theirs, *ours}):
                if theirs.get(key) != ours.get(key):
                    raise ValueError(
                        f"its {name}: {key} is {theirs.get(key)!r}; this version has "
                        f"{ours.get(key)!r}"
                    )
        return card

    def fingerprint(self, tensors: dict[str, NDArray[Any]]) -> str:
        """SHA-256 of the card (but for the fingerprint itself) and of all tensors as they are."""
        digest = hashlib.sha256(replace(self, sha256="").to_json().encode())
        for name in sorted(tensors):
            tensor = tensors[name]
            little = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
            digest.update(f"{name} {tensor.dtype.name} {tensor.shape} ".encode())
            digest.update(little.tobytes())
        return digest.hexdigest()

    def sides_in_words(self, unknown: str) -> str:
        """Sides for reading, such as ``14 and 40 sigma``; ``unknown`` if there is none."""
        if self.side is None:
            return unknown
        return " and ".join(f"{side:g}" for side in checked_sides(self.side)) + " sigma"

    def lines(self) -> list[str]:
        """The card for reading, one fact a line."""
        facts = {
            "parametrization": self.parametrization,
            "patch size": f"{self.patch_size} px",
            "head": ", ".join(map(_words, self.head)),
            "dimensions": self.dims,
            "whitening": self.method or "none: a head of its own",
            **self.params,
            "side": self.sides_in_words("not for keypoints"),
            "ratio": "not known" if self.ratio is None else f"{self.ratio:g}",
            **{f"learned: {key}": value for key, value in self.learned_from.items()},
            "created": self.created,
            "schema": self.schema,
            "sha256": self.sha256,
        }
        width = max(map(len, facts))
        return [f"{name:<{width}}  {value}" for name, value in facts.items()]


def _words(operation: dict[str, Any]) -> str:
    """An operation for reading, as a head's stages are printed.

    >>> _words({"exponent": 0.75, "op": "power"})
    'power 0.75'
    """
    if operation["op"] == "affine":
        return " -> ".join(map(str, operation["dims"]))
    rest = (f" {value}" for name, value in operation.items() if name != "op")
    return operation["op"] + "".join(rest)


def read_json(text: str) -> dict[str, Any]:
    """A JSON object without repeated names and without NaN; ValueError for anything else."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"its card has {twice!r} twice")
        return values

    def no_number(text: str) -> None:
        raise ValueError(f"its card has {text}")

    try:
        values = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except json.JSONDecodeError:
        raise ValueError("its card is not JSON") from None
    if not isinstance(values, dict):
        raise ValueError(f"its card is not a JSON object but {type(values).__name__}")
    return values
