"""What is known of percolation and Potts models, to print beside estimates and validate with.

known_exponents  critical exponents, and exponents of corrections to scaling
planar           two dimensions: thresholds, clusters per site; rectangles and parallelograms
                 (Cardy, Watts)
ising            the Ising model on the square lattice: tori (Kaufman), infinite (Onsager, Yang)
ising_curves     the same as means against temperature, in the conventions of both models
potts            critical points and exponents of Ising and Potts models
torus            two dimensions: wrapping probabilities (Pinson); the excess number of clusters
isotropy         whether a lattice looks alike in all directions from afar, by its symmetry
critical         which of these is the value of a probability at p_c, on a given lattice
"""
