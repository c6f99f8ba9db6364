"""Seeing what the kernels do: patch maps, the paper's figures, and why two patches are alike.

May use: _support, kernels, heads, compute, descriptor, models, images.
"""
