"""Pixel quantities in PyTorch, with gradients that are finite everywhere.

Cosines and sines of the gradient angle are quotients of the gradient and its length, never of an
arctangent. Where there is no gradient, they are those of the angle 0, constants to autograd; so
are those of gradients too short to tell a direction one would want to follow.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mkdesc.kernels.pixelfeatures import SHAPE_EPSILON
from mkdesc.kernels.preparation import Preparation

#: Gradients are scaled up by this before they are squared, where contrast is not removed: the
#: squares of the smallest would vanish in float32.
HEADROOM = 2.0**60
#: Shorter gradients (of patches from 0 to 1) have directions that autograd takes as constants.
SHORT = 1e-6


def headroom(preparation: Preparation) -> float:
    """What patches are multiplied by before gradients are taken.

    >>> from mkdesc.kernels.preparation import PAPER, STANDARD
    >>> headroom(STANDARD), headroom(PAPER) > 1e18
    (1.0, True)
    """
    return 1.0 if preparation.standardise else HEADROOM


def standardised(smooth: Tensor, softening: Tensor) -> Tensor:
    """Smoothed patches (N, S, S) without their means, over standard deviation + softening."""
    centred = smooth - smooth.mean(dim=(1, 2), keepdim=True)
    variance = centred.square().mean(dim=(1, 2), keepdim=True)
    flat = variance <= 0
    deviation = torch.where(flat, variance, torch.where(flat, 1.0, variance).sqrt())
    return centred / (deviation + softening)


def gradient_quantities(
    gx: Tensor, gy: Tensor, preparation: Preparation, unit: Tensor, count: int
) -> list[Tensor]:
    """The weight times 1, cos, sin, cos 2, sin 2, ... of the gradient angle, ``count`` of them.

    ``unit`` (N, 1, 1) is what a patch was divided by, before it was multiplied by the headroom;
    the small numbers must follow.
    """
    room = headroom(preparation)
    u, v = gx, gy
    square = u * u + v * v
    # Of the largest numbers nothing is left of it; but weights of zero have no direction.
    epsilon_square = (preparation.epsilon_square**0.5 / unit).square().clamp_min(1e-36)
    length = torch.add(epsilon_square, square, alpha=1 / room**2)
    weight = (length.sqrt() + preparation.epsilon / unit).sqrt()
    found = [weight]
    if count > 1:
        if square.requires_grad:
            short = square <= (SHORT * room) ** 2
            u, v, square = (torch.where(short, z.detach(), z) for z in (u, v, square))
        # One where there is no gradient, whose squares are as good as zero: the cosine of 0.
        none = (square <= (preparation.flat * room / unit).square()).to(square.dtype)
        inverse = (square + none).rsqrt()
        cos, sin = (u + none) * inverse, v * inverse
        c, s = weight * cos, weight * sin
        found += [c, s]
        while len(found) < count:
            c, s = c * cos - s * sin, s * cos + c * sin
            found += [c, s]
    return found[:count]


def intensity_quantities(values: Tensor) -> list[Tensor]:
    """The squeezed intensity z, and ``|z|``."""
    size = values.abs()
    squeezed = 1 / (1 + size)
    return [values * squeezed, size * squeezed]


def shape_quantities(blob: Tensor, ridge: Tensor, saddle: Tensor) -> list[Tensor]:
    """The nine features of :func:`mkdesc.kernels.pixelfeatures.shape_features`."""
    strength = (blob.square() + ridge.square() + saddle.square() + SHAPE_EPSILON).sqrt()
    root, unit = strength.sqrt(), 1 / strength
    l, d, e = blob * unit, ridge * unit, saddle * unit  # noqa: E741
    rl, rd, re = root * l, root * d, root * e
    return [root, rl, rd, re, rl * l - root / 3, rl * d, rl * e, rd * d - re * e, rd * e]
