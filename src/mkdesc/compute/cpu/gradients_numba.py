"""Compiled loops of the paper's pixels: from a patch to planes of its gradients, in vectors.

A blurred patch differs by little from pixel to pixel, and in nearly flat patches the direction of
a gradient depends on the last bit. So pixels are subtracted first, which is exact, and the
differences are blurred: with the taps t of the blur, a gradient is the sum of
``(t[k-1] - t[k+1]) (pixel[-k] - pixel[k])``. Single precision is enough for that.

Of every pixel of the upper left quarter, and its three mirror images, come the weight of the
gradient and the weighted cosines and sines of multiples of its angle. Spatial functions are even
or odd in x and in y, so what is kept are sums and differences of the four.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mkdesc._support.compiling import EXACT
from mkdesc._support.vectors_numba import LANES, choose, inverse_root, load, reverse, spread, store

#: Numbers before a row, and behind it: vectors begin before a row and end behind it.
PAD = LANES
#: Part of what is small enough to be compiled where it is used.
PART = {name: value for name, value in EXACT.items() if name != "inline"}
#: Squares below it are taken for 0: some processors have no reciprocal root of smaller numbers.
SMALLEST_NORMAL = np.float32(1.2e-38)


@njit(**EXACT)
def padded_stride(size):
    """How many numbers there are from one row of pixels to the next."""
    return size + 3 * PAD


@njit(**EXACT)
def extend(patch, gain, size, pixels):
    """``gain`` times a patch (W, W), with three more pixels on either side, as its border."""
    stride = padded_stride(size)
    for y in range(size):
        first = y * stride + PAD
        row = patch[y]
        for x in range(size):
            pixels[first + x] = np.float32(row[x]) * gain
        last = first + size - 1
        for k in range(1, 4):
            pixels[first - k], pixels[last + k] = pixels[first], pixels[last]


@njit(**PART)
def antisymmetric(pixels, before, after, steps, weights):
    """Sum of three differences of pixels, weighted: those before minus those after."""
    one = load(pixels, before) - load(pixels, after)
    two = load(pixels, before + steps[0]) - load(pixels, after + steps[1])
    three = load(pixels, before + steps[2]) - load(pixels, after + steps[3])
    return weights[0] * one + weights[1] * two + weights[2] * three


@njit(**EXACT)
def derive(pixels, taps, size, in_x, in_y):
    """Derivatives in x, which remain to be blurred in y, and the other way round.

    At the border of a patch a gradient is the difference of two blurred neighbours, not of three.
    """
    stride, last = padded_stride(size), size - 1
    t0, t1, t2 = np.float32(taps[0]), np.float32(taps[1]), np.float32(taps[2])
    inside = spread(t0 - t2), spread(t1), spread(t2)
    at_border = spread(t0), spread(t1), spread(t2)
    for y in range(size):
        first = y * stride + PAD
        for x in range(first, first + size, LANES):
            store(in_x, x, antisymmetric(pixels, x - 1, x + 1, (-1, 1, -2, 2), inside))
        p, q = first, first + last
        in_x[p] = (
            t0 * (pixels[p] - pixels[p + 1])
            + t1 * (pixels[p + 1] - pixels[p + 2])
            + t2 * (pixels[p + 2] - pixels[p + 3])
        )
        in_x[q] = (
            t0 * (pixels[q - 1] - pixels[q])
            + t1 * (pixels[q - 2] - pixels[q - 1])
            + t2 * (pixels[q - 3] - pixels[q - 2])
        )
        if y == 0:
            up, down, steps, weights = first, first + stride, (1, 1, 2, 2), at_border
        elif y == last:
            up, down, steps, weights = first - stride, first, (-1, -1, -2, -2), at_border
        else:
            above, below = y - 1, last - y - 1  # rows that there are beyond the next ones
            steps = -min(above, 1), min(below, 1), -min(above, 2), min(below, 2)
            up, down, weights = first - stride, first + stride, inside
        steps = steps[0] * stride, steps[1] * stride, steps[2] * stride, steps[3] * stride
        for x in range(-LANES, size + LANES, LANES):
            sums = antisymmetric(pixels, up + x, down + x, steps, weights)
            store(in_y, first + x, sums)


@njit(**PART)
def blurred(values, before2, before1, here, after1, after2, taps):
    """A vector of blurred values; where it and its neighbours begin."""
    near = load(values, before1) + load(values, after1)
    far = load(values, before2) + load(values, after2)
    return taps[0] * load(values, here) + taps[1] * near + taps[2] * far


@njit(**PART)
def direction(in_x, in_y, x, y, size, mirrored, taps, constants):
    """Weight and direction (cos, sin) of the gradients from pixel (x, y) on."""
    stride, last = padded_stride(size), size - 1
    here = y * stride + PAD + x
    above1, above2 = here - min(y, 1) * stride, here - min(y, 2) * stride
    below1, below2 = here + min(last - y, 1) * stride, here + min(last - y, 2) * stride
    u = blurred(in_x, above2, above1, here, below1, below2, taps)
    v = blurred(in_y, here - 2, here - 1, here, here + 1, here + 2, taps)
    if mirrored:
        u, v = reverse(u), reverse(v)
    epsilon_square, epsilon, limit, zero, one = constants
    square = u * u + v * v
    strength = square + epsilon_square
    strength = strength * inverse_root(strength) + epsilon
    weight = strength * inverse_root(strength)
    unit = inverse_root(choose(square, limit, square, one))  # no gradient: the angle is 0
    return weight, choose(square, limit, u * unit, one), choose(square, limit, v * unit, zero)


@njit(**PART)
def fold(a, b, c, d, planes, at, step):
    """The parities of a vector of a quarter and its mirror images in x, in y, and in both."""
    even, odd, even_below, odd_below = a + b, a - b, c + d, c - d
    store(planes, at, even + even_below)
    store(planes, at + step, odd + odd_below)
    store(planes, at + 2 * step, even - even_below)
    store(planes, at + 3 * step, odd - odd_below)


@njit(**EXACT)
def gradient_planes(in_x, in_y, taps, epsilons, shares, size, harmonics, planes, first, step):
    """Weights of gradients, and weighted cos and sin of multiples of their angles, as parities.

    Parameters
    ----------
    in_x, in_y : (S stride,) float32
        As :func:`derive` has them.
    taps : (3,) float64
    epsilons : (3,) float32
        Of the square of the gradient, of the gradient, and the square that counts as none.
    shares : (half + PAD,) float32
        What columns count: in an odd patch the middle one is its own mirror image.
    size, harmonics : int
    planes : (.,) float32
        Written from ``first`` on: a parity every ``step`` numbers. Behind a row of the quarter, as
        many numbers as a vector has may be written, by the next row again.
    """
    last, half = size - 1, (size + 1) // 2
    weights = (
        spread(np.float32(taps[0])),
        spread(np.float32(taps[1])),
        spread(np.float32(taps[2])),
    )
    constants = (
        spread(max(epsilons[0], SMALLEST_NORMAL)),
        spread(max(epsilons[1], SMALLEST_NORMAL)),
        spread(max(epsilons[2], SMALLEST_NORMAL)),
        spread(np.float32(0)),
        spread(np.float32(1)),
    )
    middle = spread(np.float32(0.5))
    for row in range(half):
        for x in range(0, half, LANES):
            share = load(shares, x)
            if row == last - row:
                share = share * middle
            r, low = size - LANES - x, last - row
            wa, ua, va = direction(in_x, in_y, x, row, size, False, weights, constants)
            wb, ub, vb = direction(in_x, in_y, r, row, size, True, weights, constants)
            wc, uc, vc = direction(in_x, in_y, x, low, size, False, weights, constants)
            wd, ud, vd = direction(in_x, in_y, r, low, size, True, weights, constants)
            wa, wb, wc, wd = wa * share, wb * share, wc * share, wd * share
            at = first + row * half + x
            fold(wa, wb, wc, wd, planes, at, step)
            ca, cb, cc, cd = wa * ua, wb * ub, wc * uc, wd * ud
            sa, sb, sc, sd = wa * va, wb * vb, wc * vc, wd * vd
            for _ in range(harmonics):
                fold(ca, cb, cc, cd, planes, at + 4 * step, step)
                fold(sa, sb, sc, sd, planes, at + 8 * step, step)
                at += 8 * step
                ca, sa = ca * ua - sa * va, sa * ua + ca * va
                cb, sb = cb * ub - sb * vb, sb * ub + cb * vb
                cc, sc = cc * uc - sc * vc, sc * uc + cc * vc
                cd, sd = cd * ud - sd * vd, sd * ud + cd * vd
