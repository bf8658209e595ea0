"""Guo 2011: Prim's algorithm, its primitive for the GPU, what it is compared with, the figures."""
