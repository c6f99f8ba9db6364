"""What follows the raw descriptor: stages such as power, projection, root and norm,
statistics, and how linear heads are learned from them.

May use: _support, measures.
"""
