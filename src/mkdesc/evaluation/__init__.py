"""How well and how fast features and descriptors do: ours and others', on photographs and by the
protocols of the two benchmarks of patches.

May use: _support, kernels, measures, heads, compute, descriptor, models, images, datasets,
matching, features.
"""
