"""Modules of PyTorch as ONNX files."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdesc._support.files import atomic_path
from mkdesc._support.optional import needed
from mkdesc._support.targets import check_target

#: Version of ONNX's operators: what onnxruntime 1.16 and later run.
OPSET = 18
#: What values inputs may have, by type.
RANGES = {"uint8": "from 0 to 255", "float32": "from 0 to 1"}


def check_onnx_dtype(dtype: str) -> Any:
    """The type of tensors of this name that ONNX files of ours take."""
    import torch

    types = {"uint8": torch.uint8, "float32": torch.float32}
    if dtype not in types:
        raise ValueError(f"dtype: expected one of {', '.join(types)}, got {dtype!r}")
    return types[dtype]


def write_onnx(
    module: Any,
    example: Any,
    path: str | os.PathLike[str],
    *,
    names: tuple[str, list[str]],
    dynamic: dict[int, str],
    note: str,
    own: bytes,
    overwrite: bool,
) -> None:
    """Write a module of one input as an ONNX file, which is whole or not there.

    Parameters
    ----------
    module
        Its ``forward`` has one argument.
    example
        The tensor that it is followed with.
    path
        Where to.
    names
        Of the input, as the module has it, and of the outputs.
    dynamic
        Axes of the input that may be of any size, and their names.
    note
        What the input is; the file says so in its metadata, by the name ``mkdesc.<input>``.
    own, overwrite
        As for ``check_target`` of ``mkdesc._support.targets``.
    """
    check_target(path, own=own, overwrite=overwrite)
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX needs {' and '.join(missing)}: pip install 'mkdesc[onnx]'")
    with needed("ONNX needs PyTorch", "onnx"):
        import torch

    axes = {axis: torch.export.Dim(name, min=1) for axis, name in dynamic.items()}
    with atomic_path(path) as partial, _quiet():
        torch.onnx.export(
            module.cpu().eval(),
            (example,),
            partial,
            input_names=[names[0]],
            output_names=names[1],
            dynamic_shapes={names[0]: axes},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        _note_input(Path(partial), f"mkdesc.{names[0]}", note)


def _note_input(path: Path, name: str, text: str) -> None:
    """Write what a file takes into its metadata, and beside the input itself."""
    import onnx

    model = onnx.load(path)
    onnx.helper.set_model_props(model, {name: text})
    model.graph.input[0].doc_string = text
    onnx.save(model, path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what torch says of itself and of packages that are not needed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
