"""Guo 2011: Prim's algorithm, its primitive for the GPU, and the figures."""
