"""A head as training sees it: a projection, perhaps with a hidden layer beside it.

With descriptors x that went through power and l2,

    z = basis^T (x - mean)
    y = l2( direct^T z + up^T relu( down^T (z / scale) + threshold ) + offset )

where ``basis`` takes them to fewer numbers, or is not there, and dividing by the scale of each
number makes steps of one size suit all of them. A :class:`~mkdesc.heads.Head` says the same
in fewer products; either can be made of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mkdesc.heads.head import L2, Affine, Head, Power, Relu

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layers:
    """What is learned of a head, and what is not.

    Attributes
    ----------
    before
        Stages that descriptors go through first: powers and norms.
    mean
        (D,) what is subtracted.
    basis
        (D, r): what is looked at; None: everything, r is D.
    scale
        (r,) what the input of the hidden layer is divided by.
    direct
        (r, d) the projection.
    down, threshold
        (r, h) and (h,): into the hidden layer; h is 0 without one.
    up
        (h, d): out of it.
    offset
        (d,).
    """

    before: tuple[Power | L2, ...]
    mean: Single
    basis: Single | None
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
        dims = self.direct.shape[1]
        into = [] if self.basis is None else [Affine(self.basis, self.mean)]
        mean = self.mean if self.basis is None else np.zeros(len(self.direct), np.float32)
        if not self.hidden:
            return Head((*self.before, *into, Affine(self.direct, mean, self.offset), L2()))
        first = np.concatenate([self.direct, self.down / self.scale[:, None]], axis=1)
        offset = np.concatenate([np.zeros(dims, np.float32), self.threshold])
        second = np.concatenate([np.eye(dims, dtype=np.float32), self.up])
        return Head(
            (
                *self.before,
                *into,
                Affine(first, mean, offset),
                Relu(dims),
                Affine(second, offset=self.offset),
                L2(),
            )
        )


def layers_of(head: Head, covariance: NDArray[np.floating]) -> Layers:
    """The layers of a head, for descriptors (after its first powers and norms) of a covariance.

    They are scaled so that what the projection gives has a mean square of 1; the norm that comes
    last makes that up.

    Parameters
    ----------
    head
        Powers and norms, one projection, l2; or more, as :meth:`Layers.head` has it.
    covariance
        (D, D).

    Examples
    --------
    >>> head = Head((Power(0.75), L2(), Affine(3 * np.eye(4)), L2()))
    >>> layers = layers_of(head, np.eye(4))
    >>> layers.hidden, layers.head()
    (0, Head(power 0.75, l2, 4 -> 4, l2))
    """
    count = next(i for i, stage in enumerate(head.stages) if isinstance(stage, Affine))
    before = tuple(stage for stage in head.stages[:count] if isinstance(stage, Power | L2))
    rest = list(head.stages[len(before) :])
    basis: Single | None = None
    constant: NDArray[np.floating]
    match rest:
        case [Affine() as into, Affine() as first, *rest]:
            basis, mean = into.matrix, into.centre
            constant = first.offset + (into.offset - first.centre) @ first.matrix
            covariance = basis.T.astype(np.float64) @ covariance @ basis
        case [Affine() as first, *rest]:
            mean, constant = first.centre, first.offset
        case _:
            raise ValueError(f"head: expected powers and norms before a projection, got {head}")
    dims, variance = head.dims_out, np.diag(covariance)
    scale = np.sqrt(np.maximum(variance, 1e-12 * variance.max()))
    direct, offset = first.matrix[:, :dims], constant[:dims]
    down, threshold = first.matrix[:, dims:] * scale[:, None], constant[dims:]
    match rest:
        case [L2()]:
            up = np.zeros((0, dims), np.float32)
        case [Relu(start), Affine() as second, L2()] if start == dims:
            direct = direct @ second.matrix[:dims]
            offset, up = offset @ second.matrix[:dims] + second.constant, second.matrix[dims:]
        case _:
            raise ValueError(
                f"head: expected a projection, or one with a hidden layer beside it, got {head}"
            )
    norm = np.sqrt(np.einsum("ij,ik,kj->", direct, covariance, direct, optimize=True))
    if not norm > 0:
        raise ValueError("head: maps all descriptors to the same one")
    if basis is None:
        direct = direct / norm
    else:
        basis, scale = (basis / norm).astype(np.float32), scale / norm
    values = (scale, direct, down, threshold, up / norm, offset / norm)
    return Layers(before, mean, basis, *(np.array(value, np.float32) for value in values))


def reduced(head: Head, dims: int) -> Head:
    """A linear head as a basis, of which the projection begins as the first ``dims`` numbers.

    >>> reduced(Head((Affine(np.ones((5, 4))), L2())), 2)
    Head(5 -> 4, 4 -> 2, l2)
    """
    *before, last = head.stages
    return Head((*before, Affine(np.eye(head.dims_out, dims, dtype=np.float32)), last))


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
