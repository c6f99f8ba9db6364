"""Heads as data: a list of operations, and tensors by name.

==========  ============================================  ======================================
``op``      further fields                                what it does
==========  ============================================  ======================================
``power``   ``exponent``                                  every number to a power, its sign kept
``affine``  ``dims`` (in and out), ``matrix``,            ``(x - centre) @ matrix + offset``; the
            ``centre``, ``offset`` (names of tensors)     last two may be null: zeros
``relu``    ``start``                                     negative numbers from there on to zero
``l2``                                                    divide by the norm
==========  ============================================  ======================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.heads.head import L2, Affine, Head, Power, Relu, Stage

Tensors = dict[str, NDArray[Any]]
Operation = dict[str, Any]

_FIELDS = {
    "power": {"op", "exponent"},
    "affine": {"op", "dims", "matrix", "centre", "offset"},
    "relu": {"op", "start"},
    "l2": {"op"},
}
#: Types of tensors that are taken; half precision is widened.
_TYPES = ("float32", "float16")
#: Operations of a head, at most.
_MOST = 64


def operations_of(head: Head) -> tuple[list[Operation], Tensors]:
    """The operations of a head, and their tensors.

    >>> operations_of(Head((Affine(np.eye(3)), L2())))[0][1]
    {'op': 'l2'}
    """
    operations: list[Operation] = []
    tensors: Tensors = {}
    for i, stage in enumerate(head.stages):
        if isinstance(stage, Power):
            operations.append({"op": "power", "exponent": stage.exponent})
        elif isinstance(stage, Relu):
            operations.append({"op": "relu", "start": int(stage.start)})
        elif isinstance(stage, L2):
            operations.append({"op": "l2"})
        else:
            operation: Operation = {"op": "affine", "dims": list(stage.matrix.shape)}
            for name in ("matrix", "centre", "offset"):
                tensor = getattr(stage, name)
                needed = name == "matrix" or tensor.any()
                operation[name] = f"head.{i}.{name}" if needed else None
                if needed:
                    tensors[f"head.{i}.{name}"] = tensor
            operations.append(operation)
    return operations, tensors


def head_of(operations: list[Operation], tensors: Tensors) -> Head:
    """The head that operations describe; ValueError of one line for anything amiss.

    Every tensor must be used once, and have the shape that its operation says.
    """
    if len(operations) > _MOST:
        raise ValueError(f"head: expected at most {_MOST} operations, got {len(operations)}")
    left = dict(tensors)
    stages = []
    for i, operation in enumerate(operations):
        try:
            stages.append(_stage(operation, left))
        except ValueError as error:
            raise ValueError(f"head[{i}]: {error}") from None
    if left:
        raise ValueError(f"the tensors {', '.join(sorted(left))} are not used by the head")
    return Head(tuple(stages))


def _stage(operation: object, left: Tensors) -> Stage:
    """One operation; its tensors are taken out of ``left``."""
    kind = operation.get("op") if isinstance(operation, dict) else None
    if not isinstance(operation, dict) or not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"expected one of {', '.join(_FIELDS)}, got {kind!r}")
    if set(operation) != _FIELDS[kind]:
        raise ValueError(f"{kind} has the fields {', '.join(sorted(operation))}")
    if kind == "power":
        return Power(operation["exponent"])
    if kind == "relu":
        return Relu(operation["start"])
    if kind == "l2":
        return L2()
    dims = operation["dims"]
    if not isinstance(dims, list) or len(dims) != 2 or {*map(type, dims)} != {int}:
        raise ValueError(f"dims: expected two integers, got {dims!r}")
    matrix = _tensor("matrix", operation, tuple(dims), left)
    rest = {
        name: _tensor(name, operation, (dims[k],), left)
        for k, name in enumerate(("centre", "offset"))
        if operation[name] is not None
    }
    return Affine(matrix, **rest)


def _tensor(
    field: str, operation: Operation, shape: tuple[int, ...], left: Tensors
) -> NDArray[np.float32]:
    """The tensor that a field names, of the shape expected, widened to float32."""
    name = operation[field]
    if not isinstance(name, str) or name not in left:
        raise ValueError(f"{field}: the tensor {name!r} is missing, or used twice")
    tensor = left.pop(name)
    if tensor.shape != shape:
        raise ValueError(f"{name} has the shape {tensor.shape}, expected {shape}")
    if tensor.dtype.name not in _TYPES:
        raise ValueError(f"{name}: expected {' or '.join(_TYPES)}, got {tensor.dtype}")
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name} has NaN or infinity")
    return tensor.astype(np.float32)
