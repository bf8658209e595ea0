"""Exact and published results for percolation and Potts models, for comparison and validation."""
