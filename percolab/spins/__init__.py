"""Ising and Potts models by cluster updates: satisfied bonds, a forest, new spins.

One *sweep* is one update of a configuration.  Each *satisfied* bond, between equal spins, is open
with probability p; any labeler finds the clusters of open bonds; and clusters get new spins by the
rule of the update.  A *chain* is a pure function of (seed, p, number of the chain): every random
number is keyed by the sweep and by a bond word or a site, so that all labelers and devices give the
same spins, bit for bit.

Sources: R. H. Swendsen and J.-S. Wang, Phys. Rev. Lett. 58, 86 (1987); U. Wolff, Phys. Rev. Lett.
62, 361 (1989); R. G. Edwards and A. D. Sokal, Phys. Rev. D 38, 2009 (1988).
"""
