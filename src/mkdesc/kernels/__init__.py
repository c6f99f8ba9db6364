"""The paper's section 3: kernels, what they look at in a patch, and parametrizations, which
are products and sums of them; the exact match kernel.

May use: _support.
"""
