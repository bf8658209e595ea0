"""Exact results for critical percolation in two dimensions, to print beside and to validate with.

planar     thresholds, clusters per site; rectangles and parallelograms: Cardy, Watts
torus      wrapping probabilities: Pinson; the excess number of clusters
isotropy   whether a lattice looks alike in all directions from afar, by its symmetry
critical   which of these is the value of a probability at p_c, on a given lattice
"""
