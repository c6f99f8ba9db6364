"""The module as an ONNX file."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from mkdesc._support.files import atomic_path
from mkdesc._support.targets import check_target
from mkdesc.compute.torch.module import Descriptor

#: Version of ONNX's operators: what onnxruntime 1.16 and later run.
OPSET = 18
#: What these files have in them: who wrote them, and the name of the output.
OWN_ONNX = rb"(?s)pytorch.*descriptors"

#: What values patches may have, by type.
_RANGES = {"uint8": "from 0 to 255", "float32": "from 0 to 1"}
_TYPES = {"uint8": torch.uint8, "float32": torch.float32}


def export_onnx(
    descriptor: Descriptor,
    path: str | os.PathLike[str],
    dtype: str = "float32",
    *,
    overwrite: bool = False,
) -> None:
    """Write a descriptor as an ONNX file, for any number of patches at a time.

    Parameters
    ----------
    descriptor
        What to write.
    path
        Where to.
    dtype
        Of the patches that the file takes: ``"float32"``, from 0 to 1, or ``"uint8"``. The file
        says so in its metadata (``mkdesc.patches``), but does not check it. Its one input has
        the name ``patches``, (N, 1, W, W), or (N, k, W, W) for a model that looks at k squares;
        its output the name ``descriptors``.
    overwrite
        Whether to replace a file that is no such descriptor.
    """
    check_target(path, own=OWN_ONNX, overwrite=overwrite)
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX needs {' and '.join(missing)}: pip install 'mkdesc[onnx]'")
    if dtype not in _TYPES:
        raise ValueError(f"dtype: expected one of {', '.join(_TYPES)}, got {dtype!r}")
    if descriptor.parametrization.own:
        raise ValueError("ONNX cannot hold registered features, which are numpy functions")
    size = descriptor.patch_size
    patches = torch.zeros((2, descriptor.squares, size, size), dtype=_TYPES[dtype])
    model = _Plain(descriptor).cpu().eval()
    with atomic_path(path) as partial, _quiet():
        torch.onnx.export(
            model,
            (patches,),
            partial,
            input_names=["patches"],
            output_names=["descriptors"],
            dynamic_shapes={"patches": {0: torch.export.Dim("batch", min=1)}},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        _note_input(
            partial, f"{dtype} (N, {descriptor.squares}, {size}, {size}), {_RANGES[dtype]}"
        )


def _note_input(path: Path, text: str) -> None:
    """Write what a file takes into its metadata, and beside the input itself."""
    import onnx

    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"mkdesc.patches": text})
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


class _Plain(nn.Module):
    """A descriptor whose argument has a name."""

    def __init__(self, descriptor: Descriptor) -> None:
        super().__init__()
        self.descriptor = descriptor

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches."""
        return self.descriptor(patches)
