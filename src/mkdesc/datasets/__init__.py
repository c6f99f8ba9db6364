"""Readers and writers of the formats that patches come in.

May use: _support, kernels, images.
"""
