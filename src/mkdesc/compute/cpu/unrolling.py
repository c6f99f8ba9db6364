"""How many things the compiled loops do at a time: they are written out for these numbers.

The layout pads its arrays to multiples of them.
"""

from __future__ import annotations

#: Numbers that fill a vector register, or two.
LANES = 16
#: A tile of the contraction: two planes times four spatial functions, eight sums. In a head it
#: is two descriptors times four rows of a matrix.
TILE_PLANES, TILE_FUNCTIONS = 2, 4
TILE_SUMS = TILE_PLANES * TILE_FUNCTIONS
#: Functions of one coordinate that a line of pixels is multiplied with.
LINE_FUNCTIONS = 5
#: Lines of pixels are padded to multiples of it: at least two vectors, of whatever length.
LINE = 32
#: Patches whose planes are contracted together, while the spatial functions are in the cache.
TOGETHER = 4
#: Descriptors that go through a head together, while some rows of a matrix are in the cache. The
#: matrices of a hidden layer exceed the nearer caches: they are read once for all of these.
HEAD_TOGETHER = 32
