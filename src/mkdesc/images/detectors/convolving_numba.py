"""A row of a convolution in vectors: the sums of eight channels stay in registers.

The vectors that numba makes of loops go to memory after each of them, which takes half as long
again. So this says in LLVM's terms which vectors it wants: a pixel that was read serves eight
products, a weight as many as two vectors have pixels.
"""

from __future__ import annotations

import llvmlite.binding
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

#: Channels that are summed at a time.
CHANNELS = 8
#: Numbers in a vector, and vectors at a time of each of eight channels: registers are that many.
LANES, VECTORS = (16, 2) if llvmlite.binding.get_host_cpu_features().get("avx512f") else (8, 1)
#: Vectors at a time of two rows.
ROW_VECTORS = 4
#: Pixels at a time, at most: rows have as many more than they need.
PIXELS = LANES * max(VECTORS, ROW_VECTORS)


def block_sums(side, channels, vectors, rectified):
    """What sums some channels of some vectors of pixels, for kernels of this side."""

    @intrinsic
    def sums(context, source, starts, weights, biases, x, out, step):
        def build(context, builder, signature, arguments):
            arrays = [
                context.make_array(signature.args[i])(context, builder, arguments[i])
                for i in (0, 1, 2, 3, 5)
            ]
            source, starts, weights, biases, out = (array.data for array in arrays)
            x, step, whole = arguments[4], arguments[6], ir.IntType(64)
            vector = ir.VectorType(ir.FloatType(), LANES)

            def spread(pointer):
                undefined = ir.Constant(vector, ir.Undefined)
                first = builder.insert_element(undefined, builder.load(pointer), ir.IntType(32)(0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                return builder.shuffle_vector(first, undefined, zeros)

            def at(pointer, place):
                return builder.bitcast(builder.gep(pointer, [place]), vector.as_pointer())

            totals = [
                [cgutils.alloca_once(builder, vector) for _ in range(vectors)]
                for _ in range(channels)
            ]
            for o in range(channels):
                bias = spread(builder.gep(biases, [whole(o)]))
                for total in totals[o]:
                    builder.store(bias, total)
            with cgutils.for_range(builder, arrays[1].nitems) as loop:
                start = builder.add(builder.load(builder.gep(starts, [loop.index])), x)
                row = builder.gep(source, [start])
                first = builder.mul(loop.index, whole(side * channels))
                taps = builder.gep(weights, [first])
                for t in range(side):
                    pixels = [
                        builder.load(at(row, whole(t + LANES * v)), align=4)
                        for v in range(vectors)
                    ]
                    for o in range(channels):
                        weight = spread(builder.gep(taps, [whole(t * channels + o)]))
                        for total, some in zip(totals[o], pixels, strict=True):
                            product = builder.fmul(weight, some, flags=("contract",))
                            added = builder.fadd(builder.load(total), product, flags=("contract",))
                            builder.store(added, total)
            nothing = ir.Constant(vector, [0.0] * LANES)
            for o in range(channels):
                begin = builder.add(x, builder.mul(step, whole(o)))
                for v, total in enumerate(totals[o]):
                    value = builder.load(total)
                    if rectified:
                        above = builder.fcmp_ordered(">", value, nothing)
                        value = builder.select(above, value, nothing)
                    place = at(out, builder.add(begin, whole(LANES * v)))
                    builder.store(value, place, align=4)
            return context.get_dummy_value()

        return types.none(source, starts, weights, biases, x, out, step), build

    return sums


eight_1, eight_3, eight_5 = (block_sums(side, CHANNELS, VECTORS, True) for side in (1, 3, 5))
two_1, two_3, two_5 = (block_sums(side, 2, ROW_VECTORS, False) for side in (1, 3, 5))


@njit(nogil=True, error_model="numpy", inline="never")
def eight_channels(side, source, starts, weights, biases, width, out, step):
    """Eight channels of a row, what is negative set to zero.

    Parameters
    ----------
    side : int
        Of the kernels: 1, 3 or 5.
    source : (.,) float32
        Rows of all channels that come in.
    starts : (C side,) int64
        Where rows begin in ``source``: by channels, and from top to bottom.
    weights : (C side side 8,) float32
        By channels that come in, rows, columns, channels that go out.
    biases : (8,) float32
    width : int
        Pixels that are wanted; up to :data:`PIXELS` more are written, and read.
    out : (.,) float32
        Written: each channel ``step`` after the one before.
    """
    for x in range(0, width, LANES * VECTORS):
        if side == 5:
            eight_5(source, starts, weights, biases, x, out, step)
        elif side == 3:
            eight_3(source, starts, weights, biases, x, out, step)
        else:
            eight_1(source, starts, weights, biases, x, out, step)


@njit(nogil=True, error_model="numpy", inline="never")
def two_rows(side, source, starts, weights, biases, width, out, step):
    """Two rows, one below the other, of a single channel that may be negative.

    As :func:`eight_channels`, with rows for channels: ``starts`` are of ``side`` + 1 rows for each
    channel that comes in, and weights of the two rows differ by where their zeros are. A pixel
    that was read serves both.
    """
    for x in range(0, width, LANES * ROW_VECTORS):
        if side == 5:
            two_5(source, starts, weights, biases, x, out, step)
        elif side == 3:
            two_3(source, starts, weights, biases, x, out, step)
        else:
            two_1(source, starts, weights, biases, x, out, step)
