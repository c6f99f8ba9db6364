"""A row of a convolution in vectors: the sums of eight channels stay in registers.

The vectors that numba makes of loops go to memory after each of them, which takes half as long
again. So this says in LLVM's terms which vectors it wants: a pixel that was read serves eight
products, a weight as many as two vectors have pixels.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from mkdesc._support.machine_code import is_wide

#: Channels that are summed at a time.
CHANNELS = 8
#: Numbers in a vector, and vectors at a time of each of eight channels: registers are that many.
LANES, VECTORS = (16, 2) if is_wide() else (8, 1)
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
plain_5 = block_sums(5, CHANNELS, VECTORS, False)
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


#: Pixels of a row that :func:`four_rows` does at a time: all that it makes stays in the cache.
PART = 256


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def combine_rows(source, starts, x, n, out, step):
    """Eight rows in Toom and Cook's terms: values at 0, 1, -1, 2, -2, 1/2, -1/2, infinity."""
    r0, r1, r2 = source[starts[0] + x :], source[starts[1] + x :], source[starts[2] + x :]
    r3, r4, r5 = source[starts[3] + x :], source[starts[4] + x :], source[starts[5] + x :]
    r6, r7 = source[starts[6] + x :], source[starts[7] + x :]
    v0, v1, v2, v3 = out[0 * step :], out[1 * step :], out[2 * step :], out[3 * step :]
    v4, v5, v6, v7 = out[4 * step :], out[5 * step :], out[6 * step :], out[7 * step :]
    large, middle = np.float32(5.25), np.float32(4.25)
    fifth, half, double = np.float32(1.25), np.float32(0.5), np.float32(2)
    wide, quarter, four, five = np.float32(2.5), np.float32(0.25), np.float32(4), np.float32(5)
    for i in range(n):
        a, b, c, d, e, f, g, h = r0[i], r1[i], r2[i], r3[i], r4[i], r5[i], r6[i], r7[i]
        even, odd = c + g - middle * e, b + f - middle * d
        even_2, odd_2 = g + quarter * c - fifth * e, half * b - wide * d + double * f
        even_4, odd_4 = g + four * c - five * e, double * b - wide * d + half * f
        v0[i] = a - g + large * (e - c)
        v1[i], v2[i] = even + odd, even - odd
        v3[i], v4[i] = even_2 + odd_2, even_2 - odd_2
        v5[i], v6[i] = even_4 + odd_4, even_4 - odd_4
        v7[i] = h - b + large * (d - f)


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def part_rows(sums, step, bias, n, a, b, c, d):
    """Four rows of such sums, what is negative set to zero."""
    m0, m1, m2, m3 = sums[0 * step :], sums[1 * step :], sums[2 * step :], sums[3 * step :]
    m4, m5, m6, m7 = sums[4 * step :], sums[5 * step :], sums[6 * step :], sums[7 * step :]
    zero, two, four, eight = np.float32(0), np.float32(2), np.float32(4), np.float32(8)
    half, quarter, eighth = np.float32(0.5), np.float32(0.25), np.float32(0.125)
    for i in range(n):
        even_1, odd_1 = m1[i] + m2[i], m1[i] - m2[i]
        even_2, odd_2 = m3[i] + m4[i], m3[i] - m4[i]
        even_3, odd_3 = m5[i] + m6[i], m5[i] - m6[i]
        a[i] = max(bias + m0[i] + even_1 + even_2 + even_3, zero)
        b[i] = max(bias + odd_1 + two * odd_2 + half * odd_3, zero)
        c[i] = max(bias + even_1 + four * even_2 + quarter * even_3, zero)
        d[i] = max(bias + odd_1 + eight * odd_2 + eighth * odd_3 + m7[i], zero)


@njit(nogil=True, error_model="numpy", inline="never")
def four_rows(source, starts, weights, biases, width, out, out_starts, step):
    """Four rows, one below the other, of eight channels; kernels of 5 x 5 px.

    By Toom and Cook (in two dimensions known as Winograd's): eight rows that come in, combined in
    eight ways, are multiplied by weights combined in the same ways, and four rows follow of these
    products. They are two fifths of those that :func:`eight_channels` needs.

    Parameters
    ----------
    source : (.,) float32
        Rows of all channels that come in.
    starts : (C, 8) int64
        Where rows begin in ``source``.
    weights : (8, C 5 8) float32
        Combined (:data:`mkdesc.images.detectors.learned_numba.COMBINED`): by ways, channels that
        come in, columns, channels that go out.
    biases : (8,) float32
    width : int
        Pixels that are wanted; up to :data:`PIXELS` more are read.
    out : (.,) float32
        Written: channels, ``step`` after each other, of rows that begin at ``out_starts`` (4,).
    """
    channels = len(starts)
    stride = PART + PIXELS
    combined = np.zeros(8 * channels * stride, np.float32)
    sums = np.empty(8 * CHANNELS * stride, np.float32)
    rows = np.arange(channels) * stride
    zeros = np.zeros(CHANNELS, np.float32)
    for x in range(0, width, PART):
        n = min(PART, width - x)
        for c in range(channels):
            into = combined[c * stride :]
            combine_rows(source, starts[c], x, n + 4, into, channels * stride)
        for k in range(8):
            some, into = combined[k * channels * stride :], sums[k * CHANNELS * stride :]
            for i in range(0, n, LANES * VECTORS):
                plain_5(some, rows, weights[k], zeros, i, into, stride)
        for o in range(CHANNELS):
            begin = o * step + x
            part_rows(
                sums[o * stride :],
                CHANNELS * stride,
                biases[o],
                n,
                out[out_starts[0] + begin :],
                out[out_starts[1] + begin :],
                out[out_starts[2] + begin :],
                out[out_starts[3] + begin :],
            )
