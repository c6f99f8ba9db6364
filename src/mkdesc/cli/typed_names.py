"""Errors name parameters of functions; at the command line people typed options and arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: What functions call things, where options have other names.
OPTIONS = {
    "focal_lengths": "focal",
    "keypoints_per_photo": "keypoints",
    "kind": "head",
    "max_keypoints": "keypoints",
    "n_threads": "threads",
    "seconds": "limit",
}


def as_typed(message: str, parameters: Sequence[Any]) -> str:
    """A message with the option or argument that its first word stands for, as it is typed.

    Parameters
    ----------
    message
        Such as ``"max_keypoints: expected an integer >= 1, got 0"``.
    parameters
        Of the command.

    Examples
    --------
    >>> from typer.core import TyperArgument, TyperOption
    >>> known = [
    ...     TyperArgument(param_decls=["photo"], metavar="A"),
    ...     TyperOption(param_decls=["keypoints", "--keypoints", "-n"]),
    ... ]
    >>> as_typed("max_keypoints: expected an integer >= 1, got 0", known)
    '--keypoints: expected an integer >= 1, got 0'
    >>> as_typed("photo: no such file: nope.jpg", known)
    'A: no such file: nope.jpg'
    >>> as_typed("nope.jpg: not an image", known)
    'nope.jpg: not an image'
    """
    found = re.match(r"(\w+): ", message)
    if found is None:
        return message
    name, rest = OPTIONS.get(found[1], found[1]), message[found.end() :]
    if name == "output" and re.search(r"float32|for bits", rest):  # not where to write
        name = "dtype"
    for parameter in parameters:
        if parameter.name == name:
            return f"{_typed(parameter)}: {rest}"
    return message


def _typed(parameter: Any) -> str:
    """How an option or an argument is written."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return max(parameter.opts, key=len)
