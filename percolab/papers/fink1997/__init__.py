"""One lattice in boxes, one for each process, whose boundaries are merged by Quad.

S. J. Fink, S. B. Baden, C. Huston and K. Jansen, "Parallel cluster identification for
multidimensional lattices", IEEE Trans. Parallel Distrib. Syst. 8, 1089 (1997).

boxes.py      a lattice cut along several axes, and the boundary that a box hands on
box_kernels.py  its kernels
quad.py       boundaries merged over ranks, by a tree or by Quad, with bubbles and runs
partition.py  the partition "boxes" of :mod:`percolab.parts.partitions`: ``--blocks``, ``--merge``
figures.py    measures what Figs 4 to 7 and Tables 1 and 2 show, on simulated ranks
drawing.py    draws them
"""
