"""How well and how fast descriptors tell patches apart: ours and others', by the protocols of
the two benchmarks.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets.
"""
