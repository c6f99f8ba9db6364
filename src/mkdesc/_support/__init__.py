"""What everybody needs and nobody asks of: files, threads, compiling, parameters, text,
versions.

May use: no other room.
"""
