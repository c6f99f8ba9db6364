"""PyTorch: ``MKDescriptor`` and ``Features``, modules, and matching, on any device.

May use: _support, kernels, heads, compute, descriptor, models, images, matching, features.
"""

from __future__ import annotations

import os

from mkdesc._support.check import check_not_both

try:
    import torch as _torch
except ImportError as error:
    raise ImportError("mkdesc.torch needs PyTorch: pip install 'mkdesc[torch]'") from error

from torch import Tensor

from mkdesc.compute.torch.export import export_onnx
from mkdesc.compute.torch.module import Descriptor, check_range
from mkdesc.compute.torch.stages import to_head
from mkdesc.descriptor import MKD, Side
from mkdesc.features.features_torch import Features, PaddedFeatures
from mkdesc.heads.head import Head
from mkdesc.images.cutting_torch import cut_patches
from mkdesc.images.detectors.learned_onnx import export_keypoints_onnx
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.matching.nearest_torch import PaddedMatches
from mkdesc.matching.nearest_torch import match_padded as match_descriptors
from mkdesc.models import load_model

__all__ = [
    "Features",
    "MKDescriptor",
    "PaddedFeatures",
    "PaddedMatches",
    "cut_patches",
    "export_keypoints_onnx",
    "export_onnx",
    "match_descriptors",
]

del _torch


class MKDescriptor(Descriptor):
    """The multiple-kernel descriptor as a module: patches in, unit vectors out, on any device.

    Parameters
    ----------
    model
        A bundled model or a model file, or an :class:`~mkdesc.MKD`.
    parametrization
        Instead of a model: kernels, as for :class:`~mkdesc.MKD`.
    patch_size
        Side W of the patches, with ``parametrization``; default 64. The extended descriptor takes
        every multiple of 32 px.
    head
        With ``parametrization``: what raw descriptors go through; default: nothing.
    side
        With ``parametrization``: as for :class:`~mkdesc.MKD`. With several sides, k, patches are
        (N, k, W, W).
    learn_kappas
        Whether the concentrations of the kernels are parameters (``kappas.log_kappas``).
    fused
        Whether compiled code may be used where no gradients are wanted: Triton kernels on CUDA,
        on a CPU the loops of :class:`~mkdesc.MKD`.

    Attributes
    ----------
    head : torch.nn.Sequential
        The stages after the raw descriptor; affine ones are ``nn.Linear``. Frozen at first:
        ``descriptor.head.requires_grad_()`` makes them learn.

    Examples
    --------
    >>> import torch
    >>> descriptor = MKDescriptor("extended")
    >>> descriptor(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    >>> MKDescriptor(parametrization="polar", patch_size=32)(torch.rand(5, 32, 32)).shape
    torch.Size([5, 175])
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | MKD | None = None,
        *,
        parametrization: str | Parametrization | None = None,
        patch_size: int | None = None,
        head: Head | None = None,
        side: Side = None,
        learn_kappas: bool = False,
        fused: bool = True,
    ) -> None:
        check_not_both(model=model, parametrization=parametrization)
        if parametrization is None:
            if head is not None or patch_size is not None or side is not None:
                raise ValueError("patch_size, head, side: need a parametrization")
            mkd = model if isinstance(model, MKD) else load_model(model or "extended")
        else:
            mkd = MKD(parametrization, patch_size or 64, head=head, side=side)
        super().__init__(
            as_parametrization(mkd.parametrization),
            int(mkd.patch_size),
            mkd.effective_head(),
            squares=mkd.squares,
            learn_kappas=learn_kappas,
            fused=fused,
        )
        self.side = mkd.side

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches (N, W, W) or (N, 1, W, W); uint8, uint16, or floats from 0 to 1.

        On the CPU, floats beyond -0.3 to 1.3, more than interpolation adds, are refused.
        On other devices this is not checked: it would take longer than to describe them.
        """
        check_range(patches)
        return super().forward(patches)

    def to_mkd(self) -> MKD:
        """The same for numpy arrays on the CPU, to be saved with :func:`mkdesc.save_model`.

        >>> MKDescriptor("paper-64").to_mkd().head
        Head(power 0.75, l2, 238 -> 64, l2)
        """
        if self.kappas is not None:
            raise ValueError("learn_kappas: kernels have no name while they are being learned")
        head = to_head(self.head) if len(self.head) else None
        return MKD(self.parametrization, self.patch_size, head=head, side=self.side)
