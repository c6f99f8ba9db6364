"""The kernel that keeps one keypoint a place."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def keep_places(x, y, radius, there, before, after, n, BLOCK: tl.constexpr):
    """One round: what is kept (B, n) unless something stronger that was kept before is near.

    Keypoints are in the order of their strength.
    """
    first = tl.program_id(0) * BLOCK
    start = tl.program_id(1) * n
    i = first + tl.arange(0, BLOCK)
    real = i < n
    xi = tl.load(x + start + i, mask=real, other=0.0)[:, None]
    yi = tl.load(y + start + i, mask=real, other=0.0)[:, None]
    ri = tl.load(radius + start + i, mask=real, other=0.0)[:, None]
    near = tl.zeros((BLOCK,), tl.int32)
    for block in range(0, first + BLOCK, BLOCK):
        j = block + tl.arange(0, BLOCK)
        ok = j < n
        xj = tl.load(x + start + j, mask=ok, other=0.0)[None, :]
        yj = tl.load(y + start + j, mask=ok, other=0.0)[None, :]
        rj = tl.load(radius + start + j, mask=ok, other=0.0)[None, :]
        kept = tl.load(before + start + j, mask=ok, other=0)[None, :]
        reach = tl.minimum(ri, rj)
        dx, dy = xi - xj, yi - yj
        close = (dx * dx + dy * dy <= reach * reach) & (j[None, :] < i[:, None]) & (kept > 0)
        near = tl.maximum(near, tl.max(close.to(tl.int32), axis=1))
    own = tl.load(there + start + i, mask=real, other=0)
    tl.store(after + start + i, tl.where(near == 0, own, 0).to(tl.int8), mask=real)
