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
    "start": "from",
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
    >>> from types import SimpleNamespace as Parameter
    >>> known = [
    ...     Parameter(name="photo", param_type_name="argument", opts=["photo"], metavar="A"),
    ...     Parameter(name="most", param_type_name="option", opts=["--keypoints", "-n"]),
    ... ]
    >>> as_typed("max_keypoints: expected an integer >= 1, got 0", known)
    '--keypoints: expected an integer >= 1, got 0'
    >>> as_typed("photo: no such file: nope.jpg", known)
    'A: no such file: nope.jpg'
    >>> as_typed("max_keypoints: expected an integer >= 1 or None, got 0", known)
    '--keypoints: expected an integer >= 1, got 0'
    >>> as_typed("nope.jpg: not an image", known)
    'nope.jpg: not an image'
    """
    found = re.match(r"(\w+): ", message)
    if found is None:
        return message
    name, rest = OPTIONS.get(found[1], found[1]), message[found.end() :]
    if name == "output" and re.search(r"float32|for bits", rest):  # not where to write
        name = "dtype"
    rest = re.sub(r" or (None|an OpenCV detector)(?=, got)", "", rest)  # which nobody can type
    options = (f"--{name.replace('_', '-')}", f"-{name}")
    for parameter in parameters:
        for option in options:
            if option in parameter.opts:
                return f"{option}: {rest}"
        if name == parameter.name and parameter.param_type_name == "argument":
            return f"{parameter.metavar or name.upper()}: {rest}"
    return message
