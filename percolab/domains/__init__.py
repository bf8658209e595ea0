"""Domains: one lattice in parts, whose rows equal those of the whole lattice bit for bit.

A *part* is a slab of whole layers along the last axis (:mod:`percolab.domains.parts`).  It makes
its own bonds from the keys, joins them, and hands on its *front*: what must be known of its
clusters where it touches the next part (:mod:`percolab.domains.front`).  Fronts are joined until
one is left, which has the row of the sample.

Sources: S. J. Fink, S. B. Baden, C. Huston and K. Jansen, "Parallel cluster identification for
multidimensional lattices", IEEE Trans. Parallel Distrib. Syst. 8, 1089 (1997); D. Tiggemann,
"Simulation of percolation on massively-parallel computers", Int. J. Mod. Phys. C 12, 871 (2001).
"""

# It has the kernels of this room cached by the content of the sums, too.
import percolab.measure  # noqa: F401
