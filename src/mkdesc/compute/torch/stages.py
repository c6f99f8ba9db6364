"""Heads as modules, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mkdesc.heads.head import L2, Affine, Head, Power, Relu, Stage

#: Norms below this are none.
TINY_NORM = 1e-30


def unit_rows(x: Tensor) -> Tensor:
    """Rows divided by their norms, in at least single precision; rows of zeros stay.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000..., 0.8000...], [0.0, 0.0]]
    """
    return normalize(x if x.dtype == torch.float64 else x.float(), dim=-1, eps=TINY_NORM)


class PowerStage(nn.Module):
    """Every number raised to a power, its sign kept; gradients are finite at zero."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self.exponent = exponent

    def forward(self, x: Tensor) -> Tensor:
        """Raise (N, D), in at least single precision."""
        x = x if x.dtype == torch.float64 else x.float()
        return x.sign() * x.abs().clamp_min(1e-20) ** self.exponent

    def extra_repr(self) -> str:
        """The exponent."""
        return f"{self.exponent:g}"


class ReluStage(nn.Module):
    """Negative numbers become zero, those from ``start`` on."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = start

    def forward(self, x: Tensor) -> Tensor:
        """Rectify (N, D)."""
        return torch.cat([x[:, : self.start], x[:, self.start :].relu()], dim=1)

    def extra_repr(self) -> str:
        """The start."""
        return f"{self.start}"


class L2Stage(nn.Module):
    """Rows divided by their norms."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (N, D)."""
        return unit_rows(x)


class AffineStage(nn.Linear):
    """A linear map of what is left of a centre; only the product is in the type of the weights.

    Descriptors are near their centre, so it must stay exact in half precision too: it is kept as
    the sum of two rows, the first of which any type can hold.
    """

    centres: Tensor

    def __init__(self, dims_in: int, dims_out: int) -> None:
        super().__init__(dims_in, dims_out)
        self.register_buffer("centres", torch.zeros(2, dims_in))
        #: Whether anything is subtracted: known here, as asking a device takes long.
        self.centred = False

    @property
    def centre(self) -> Tensor:
        """What is subtracted, (D,), in at least single precision."""
        kind = torch.promote_types(self.centres.dtype, torch.float32)
        return self.centres.to(kind).sum(dim=0)

    def set_centre(self, centre: Tensor) -> None:
        """Replace what is subtracted."""
        coarse = centre.bfloat16().to(centre.dtype)
        self.centres.copy_(torch.stack([coarse, centre - coarse]))
        self.centred = bool(centre.any())

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        super()._load_from_state_dict(*arguments, **options)
        self.centred = self.centres.is_meta or bool(self.centres.any())

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, D) to (N, d)."""
        return super().forward((x - self.centre).to(self.weight.dtype))


def _stage_module(stage: Stage) -> nn.Module:
    if isinstance(stage, Power):
        return PowerStage(stage.exponent)
    if isinstance(stage, Relu):
        return ReluStage(stage.start)
    if isinstance(stage, L2):
        return L2Stage()
    linear = AffineStage(*stage.matrix.shape)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(np.array(stage.matrix.T)))
        linear.bias.copy_(torch.from_numpy(np.array(stage.offset)))
        linear.set_centre(torch.from_numpy(np.array(stage.centre)))
    return linear


def head_module(head: Head) -> nn.Sequential:
    """The stages of a head as modules; affine ones are ``nn.Linear``, frozen at first.

    >>> head_module(Head((Power(0.75), Affine(np.ones((3, 2))), L2())))
    Sequential(
      (0): PowerStage(0.75)
      (1): AffineStage(in_features=3, out_features=2, bias=True)
      (2): L2Stage()
    )
    """
    return nn.Sequential(*map(_stage_module, head.stages)).requires_grad_(False)


def to_head(stages: nn.Sequential) -> Head:
    """The head that modules hold, for model files and other backends.

    >>> head = Head((Power(0.75), Affine(np.ones((3, 2))), Relu(1), L2()))
    >>> to_head(head_module(head)).stages[2]
    Relu(start=1)
    """
    found: list[Stage] = []
    for stage in stages:
        if isinstance(stage, PowerStage):
            found.append(Power(stage.exponent))
        elif isinstance(stage, ReluStage):
            found.append(Relu(stage.start))
        elif isinstance(stage, L2Stage):
            found.append(L2())
        elif isinstance(stage, AffineStage):
            kept = (stage.weight.T, stage.centre, stage.bias)
            found.append(Affine(*(tensor.detach().float().cpu().numpy() for tensor in kept)))
        else:
            raise ValueError(f"head: expected the stages of a head, got {stage!r}")
    return Head(tuple(found))
