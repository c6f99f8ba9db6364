"""From patches to descriptors: the definition in numpy, and backends that do the same fast.

May use: _support, kernels, heads.
"""
