"""Descriptors in PyTorch: a module of plain operations, and fused kernels for CUDA."""
