"""Models by what people write: a name, a file, or a choice from a file of several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mkdesc.descriptor import MKD
from mkdesc.models.files import bundled_models, load_model


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

    >>> parse_model("default")
    ModelChoice(model='default', set=None, method=None)
    >>> parse_model("mkd-polar-64.safetensors:liberty:lw")
    ModelChoice(model='mkd-polar-64.safetensors', set='liberty', method='lw')
    """
    whole = ModelChoice(os.fspath(text))
    file, *choice = whole.model.rsplit(":", 2)
    if whole.exists or len(choice) != 2:
        return whole
    return ModelChoice(file, *choice)


def model_file(text: str | os.PathLike[str] | None) -> Path | None:
    """The file that a model is read from; None for a bundled one, and for None.

    >>> model_file("default") is None
    True
    >>> model_file("mine.safetensors:liberty:lw").name
    'mine.safetensors'
    """
    if text is None or (choice := parse_model(text)).model in bundled_models():
        return None
    return Path(choice.model)


def open_model(text: str | os.PathLike[str]) -> MKD:
    """A descriptor with its head, by ``NAME``, ``FILE`` or ``FILE:SET:METHOD``.

    The last is for files in the layout of kornia/mkd, which hold several models.

    >>> open_model("compact").effective_head()
    Head(power 0.75, l2, 238 -> 64, l2)
    """
    return load_model(*parse_model(text))
