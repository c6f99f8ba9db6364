"""The fast path on the CPU: the layout of the sums, and compiled loops over blocks of patches."""
