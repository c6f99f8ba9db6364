"""Counting bits in compiled loops: one step of most processors, many words at a time."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def count_ones(context, word):
    """How many bits of a word of 64 are set."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build
