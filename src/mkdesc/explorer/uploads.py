"""What people send to the explorer: an image or a model file, checked before it is believed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mkdesc.explorer.data import MAX_SIDE, encode_gray, encode_model
from mkdesc.images.reading import read_gray
from mkdesc.images.resampling import reduced
from mkdesc.models import load_model
from mkdesc.models.files import read_tensors

#: Pixels of an image that is decoded, at most.
MAX_PIXELS = 50_000_000

#: How files of the types that are taken begin.
_IMAGES = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|RIFF....WEBP|BM", re.DOTALL)
#: Whitenings of the files in the layout of kornia/mkd, which hold several.
_KORNIA_METHODS = ("lw", "pca", "pcawt", "pcaws")

T = TypeVar("T")


class UnsupportedType(ValueError):
    """What came is no file of a type that is taken."""


def read_image(data: bytes) -> dict[str, Any]:
    """A gray image for the page, no larger than 1024 px, of the bytes of a file."""
    if not _IMAGES.match(data):
        raise UnsupportedType("expected a PNG, JPEG, WebP or BMP image")
    image = _through_file(data, "image", lambda path: read_gray(path, MAX_PIXELS))
    return encode_gray(reduced(image, MAX_SIDE))


def read_models(data: bytes) -> list[dict[str, Any]]:
    """The whitenings of a model file, for the page."""
    return _through_file(data, "model", _load_all)


def _load_all(path: Path) -> list[dict[str, Any]]:
    tensors, metadata = read_tensors(path)
    if "mkdesc" in metadata:
        return [encode_model("model", load_model(path), "file")]
    sets = sorted({name.split(".")[0] for name in tensors if name.count(".") == 2})
    if not sets:
        load_model(path)  # says what is wrong
    return [
        encode_model(f"{name} {method}", load_model(path, name, method), "file")
        for name in sets
        for method in _KORNIA_METHODS
    ]


def _through_file(data: bytes, name: str, read: Callable[[Path], T]) -> T:
    """Read bytes by a function of a path, in a temporary folder that is gone afterwards.

    Errors name the upload instead of the path, which would mean nothing to whoever sent it.
    """
    with tempfile.TemporaryDirectory(prefix="mkdesc-explore-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return read(path)
        except (ValueError, OSError) as error:
            raise ValueError(str(error).replace(str(path), f"this {name}")) from None
