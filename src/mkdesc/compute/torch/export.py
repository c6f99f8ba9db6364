"""Descriptors as ONNX files, for runtimes of other languages and machines."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from mkdesc._support.onnx_files import RANGES, check_onnx_dtype, write_onnx
from mkdesc.compute.torch.module import Descriptor

#: What these files have in them: who wrote them, and the name of the output.
OWN_ONNX = rb"(?s)pytorch.*descriptors"


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
    kind = check_onnx_dtype(dtype)
    if descriptor.parametrization.own:
        raise ValueError("ONNX cannot hold registered features, which are numpy functions")
    size = descriptor.patch_size
    write_onnx(
        _Plain(descriptor),
        torch.zeros((2, descriptor.squares, size, size), dtype=kind),
        path,
        names=("patches", ["descriptors"]),
        dynamic={0: "batch"},
        note=f"{dtype} (N, {descriptor.squares}, {size}, {size}), {RANGES[dtype]}",
        own=OWN_ONNX,
        overwrite=overwrite,
    )


class _Plain(nn.Module):
    """A descriptor whose argument has a name."""

    def __init__(self, descriptor: Descriptor) -> None:
        super().__init__()
        self.descriptor = descriptor

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches."""
        return self.descriptor(patches)
