"""What every room may use: files, threads, compiling, parameters, text, versions.

May use: no other room.
"""
