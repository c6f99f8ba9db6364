"""A head as training sees it: a projection, perhaps with a hidden layer beside it.

With descriptors x that went through power and l2,

    y = l2( direct^T (x - mean) + up^T relu( down^T ((x - mean) / scale) + threshold ) + offset )

where dividing by the scale of each number makes steps of one size suit all of them. A
:class:`~mkdesc.heads.head.Head` says the same in fewer products; either can be made of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mkdesc.heads.head import L2, Affine, Head, Power, Relu

__all__ = ["Layers", "add_hidden", "layers_of"]

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layers:
    """What is learned of a head, and what is not.

    Attributes
    ----------
    before
        Stages that descriptors go through first: powers and norms.
    mean, scale
        (D,) what is subtracted, and what the input of the hidden layer is divided by.
    direct
        (D, d) the projection.
    down, threshold
        (D, h) and (h,): into the hidden layer; h is 0 without one.
    up
        (h, d): out of it.
    offset
        (d,).
    """

    before: tuple[Power | L2, ...]
    mean: Single
    scale: Single
    direct: Single
    down: Single
    threshold: Single
    up: Single
    offset: Single

    @property
    def hidden(self) -> int:
        """How many hidden units there are."""
        return len(self.threshold)

    def head(self) -> Head:
        """The head: its rectifier spares the projection, which the last matrix passes on."""
        if not self.hidden:
            return Head((*self.before, Affine(self.direct, self.mean, self.offset), L2()))
        dims = self.direct.shape[1]
        first = np.concatenate([self.direct, self.down / self.scale[:, None]], axis=1)
        offset = np.concatenate([np.zeros(dims, np.float32), self.threshold])
        second = np.concatenate([np.eye(dims, dtype=np.float32), self.up])
        return Head(
            (
                *self.before,
                Affine(first, self.mean, offset),
                Relu(dims),
                Affine(second, offset=self.offset),
                L2(),
            )
        )


def layers_of(head: Head, covariance: NDArray[np.floating]) -> Layers:
    """The layers of a head, for descriptors (after its first powers and norms) of a covariance.

    The projection is scaled so that its results have a mean square of 1; the norm that comes last
    makes that up.

    Parameters
    ----------
    head
        Powers and norms, one projection, l2; or with a hidden layer as :meth:`Layers.head` has it.
    covariance
        (D, D): its diagonal gives the scale.

    Examples
    --------
    >>> head = Head((Power(0.75), L2(), Affine(3 * np.eye(4)), L2()))
    >>> layers = layers_of(head, np.eye(4))
    >>> layers.hidden, layers.head()
    (0, Head(power 0.75, l2, 4 -> 4, l2))
    """
    count = next(i for i, stage in enumerate(head.stages) if isinstance(stage, Affine))
    before = tuple(stage for stage in head.stages[:count] if isinstance(stage, Power | L2))
    variance = np.diag(covariance)
    scale = np.sqrt(np.maximum(variance, 1e-12 * variance.max()))
    dims = head.dims_out
    down: NDArray[np.floating]
    threshold: NDArray[np.floating]
    up: NDArray[np.floating]
    match head.stages[len(before) :]:
        case [Affine() as first, L2()]:
            direct, offset = first.matrix, first.offset
            down, up, threshold = np.zeros((head.dims_in, 0)), np.zeros((0, dims)), np.zeros(0)
        case [Affine() as first, Relu(start), Affine() as second, L2()] if start == dims:
            direct = first.matrix[:, :dims] @ second.matrix[:dims]
            offset = first.offset[:dims] @ second.matrix[:dims] + second.constant
            down, up = first.matrix[:, dims:] * scale[:, None], second.matrix[dims:]
            threshold = first.offset[dims:]
        case _:
            raise ValueError(
                f"head: expected a projection, or one with a hidden layer beside it, got {head}"
            )
    norm = np.sqrt(np.einsum("ij,ik,kj->", direct, covariance, direct, optimize=True))
    if not norm > 0:
        raise ValueError("head: expected a projection that tells some descriptors apart")
    values = (first.centre, scale, direct / norm, down, threshold, up / norm, offset / norm)
    single = (np.array(value, np.float32) for value in values)
    return Layers(before, *single)


def add_hidden(layers: Layers, hidden: int, rng: np.random.Generator) -> Layers:
    """Layers with hidden units more, which at first add nothing.

    >>> layers = layers_of(Head((Affine(np.eye(4)), L2())), np.eye(4))
    >>> add_hidden(layers, 8, np.random.default_rng(0)).head()
    Head(4 -> 12, relu 4, 12 -> 4, l2)
    """
    dims_in, dims = layers.direct.shape
    spread = np.float32(np.sqrt(1 / dims_in))
    down = spread * rng.standard_normal((dims_in, hidden), np.float32)
    return replace(
        layers,
        down=np.concatenate([layers.down, down], axis=1),
        threshold=np.concatenate([layers.threshold, np.zeros(hidden, np.float32)]),
        up=np.concatenate([layers.up, np.zeros((hidden, dims), np.float32)]),
    )
