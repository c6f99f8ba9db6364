"""Models by what people write: a name, a file, or a choice from a file of several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mkdesc.descriptor import MKD
from mkdesc.models.files import bundled_file, bundled_models, load_model

#: The model that describes photographs: the extended descriptor, learned from squares as large
#: as those that :class:`mkdesc.Features` cuts, for patches of 24 px, which take less time
#: (docs/opencv.md).
DEFAULT_MODEL = "photo"

#: The model that describes given patches: the most accurate that needs no hidden layer
#: (docs/benchmarks.md).
PATCH_MODEL = "extended"


class ModelChoice(NamedTuple):
    """A bundled model or a file; and, for files of several models, which of them."""

    model: str
    set: str | None = None
    method: str | None = None

    @property
    def exists(self) -> bool:
        """Whether there is such a model or file."""
        return self.model in bundled_models() or Path(self.model).is_file()


def parse_model(text: str | os.PathLike[str]) -> ModelChoice:
    """Read ``NAME``, ``FILE`` or ``FILE:SET:METHOD``; what exists as it is comes first.

    >>> parse_model("paper")
    ModelChoice(model='paper', set=None, method=None)
    >>> parse_model("mkd-polar-64.safetensors:liberty:lw")
    ModelChoice(model='mkd-polar-64.safetensors', set='liberty', method='lw')
    """
    if not isinstance(text, (str, os.PathLike)):
        raise ValueError(f"model: expected a name or a path, got {text!r}")
    whole = ModelChoice(os.fspath(text))
    file, *choice = whole.model.rsplit(":", 2)
    if whole.exists or len(choice) != 2:
        return whole
    return ModelChoice(file, *choice)


def model_file(text: str | os.PathLike[str] | None) -> Path | None:
    """The file that a model is read from; None for None.

    >>> model_file("paper").name
    'paper.safetensors'
    >>> model_file("mine.safetensors:liberty:lw").name
    'mine.safetensors'
    """
    if text is None:
        return None
    model = parse_model(text).model
    return bundled_file(model) if model in bundled_models() else Path(model)


def open_model(text: str | os.PathLike[str]) -> MKD:
    """A descriptor with its head, by ``NAME``, ``FILE`` or ``FILE:SET:METHOD``.

    The last is for files in the layout of kornia/mkd, which hold several models.

    >>> open_model("paper-64").effective_head()
    Head(power 0.75, l2, 238 -> 64, l2)
    """
    return load_model(*parse_model(text))


def model_ratio(model: str | os.PathLike[str] | MKD) -> float:
    """The ratio of Lowe's test that a model's card says; ValueError if it says none.

    Parameters
    ----------
    model
        What :func:`open_model` takes, or a descriptor.

    Examples
    --------
    >>> 0.8 < model_ratio("photo") < 1
    True
    """
    ratio = model.ratio if isinstance(model, MKD) else open_model(model).ratio
    if ratio is None:
        name = "this descriptor" if isinstance(model, MKD) else os.fspath(model)
        raise ValueError(
            f"ratio: {name} has none of its own; give a number, or find one with "
            "`mkdesc learn ratio`"
        )
    return float(ratio)
