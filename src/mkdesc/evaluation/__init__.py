"""How well descriptors tell patches apart: metrics, and the protocols of the two benchmarks."""
