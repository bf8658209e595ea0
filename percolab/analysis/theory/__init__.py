"""What is known of critical percolation, to print beside estimates and to validate with.

known_exponents  critical exponents, and exponents of corrections to scaling
planar           two dimensions: thresholds, clusters per site; rectangles and parallelograms
                 (Cardy, Watts)
torus            two dimensions: wrapping probabilities (Pinson); the excess number of clusters
isotropy         whether a lattice looks alike in all directions from afar, by its symmetry
critical         which of these is the value of a probability at p_c, on a given lattice
"""
