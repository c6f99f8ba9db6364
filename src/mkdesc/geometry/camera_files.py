"""Cameras in files: COLMAP's ``cameras.txt``, or JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mkdesc._support.files import read_json, read_text
from mkdesc._support.text import shorten
from mkdesc.geometry.cameras import Camera

#: Cameras of a file, at most.
MOST = 100_000

#: What a camera in JSON is made of.
_KEYS = ("model", "width", "height", "params")


def read_cameras(path: str | os.PathLike[str]) -> list[Camera]:
    r"""The cameras of a file, in their order.

    Parameters
    ----------
    path
        COLMAP's ``cameras.txt`` (``ID MODEL WIDTH HEIGHT PARAMS...`` a line, # begins comments),
        or ``.json``: an object with ``model``, ``width``, ``height`` and ``params`` as there, or
        a list of such.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "cameras.txt"
    >>> _ = file.write_text("# a comment\n1 SIMPLE_RADIAL 640 480 500 320 240 -0.1\n")
    >>> read_cameras(file)[0].params
    (500.0, 320.0, 240.0, -0.1)
    """
    file = Path(path)
    found = list(_of_json(file) if file.suffix.lower() == ".json" else _of_text(file))
    if not found:
        raise ValueError(f"{file}: no camera in it")
    return found


def _of_text(file: Path) -> list[Camera]:
    cameras: list[Camera] = []
    for number, line in enumerate(read_text(file).lstrip("\ufeff").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{file}, line {number}"
        if len(cameras) == MOST:
            raise ValueError(f"{where}: expected {MOST:,} cameras at most")
        if len(words) < 5:
            raise ValueError(
                f"{where}: expected ID MODEL WIDTH HEIGHT PARAMS..., got {shorten(line, 80)!r}"
            )
        try:
            width, height = int(words[2]), int(words[3])
            params = tuple(float(word) for word in words[4:])
        except ValueError:
            raise ValueError(f"{where}: expected numbers, got {shorten(line, 80)!r}") from None
        cameras.append(_camera(where, words[1], width, height, params))
    return cameras


def _of_json(file: Path) -> list[Camera]:
    found = read_json(file)
    cameras: list[Camera] = []
    for i, one in enumerate(found if isinstance(found, list) else [found]):
        if not isinstance(one, dict) or not set(_KEYS) <= one.keys():
            raise ValueError(f"{file}: camera {i}: expected an object with {', '.join(_KEYS)}")
        params = one["params"]
        if not isinstance(params, list):
            raise ValueError(f"{file}: camera {i}: expected a list as params, got {params!r:.80}")
        cameras.append(
            _camera(
                f"{file}: camera {i}", one["model"], one["width"], one["height"], tuple(params)
            )
        )
    return cameras


def _camera(where: str, model: Any, width: Any, height: Any, params: tuple[Any, ...]) -> Camera:
    try:
        return Camera(model, width, height, params)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {str(error).removeprefix('camera: ')}") from None
