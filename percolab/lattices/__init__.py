"""What is sampled: lattices, Bethe lattices and graphs, and the topology that kernels see."""
