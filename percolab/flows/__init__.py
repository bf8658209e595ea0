"""What flows through open bonds: bridges, red bonds, backbones, shortest paths, conductance.

A sample is a list of open bonds.  Two *terminals*, each a set of sites that is short-circuited, are
joined to one node each (:mod:`percolab.flows.net`), and what flows is between these two nodes:

cycle_words  bridges, red bonds and what trails between the terminals use
blocks       what paths between the terminals use: the backbone, which carries current
paths        the shortest path, and all bonds on shortest paths
elimination  the conductance, and the current in every bond
readers      what sweeps measure of these
flow_batch   the same on a CUDA device, by the kernels of the files ``*_cuda.py``
large_flow   the same of few large samples there, by ``open_bonds_cuda`` and ``tile_*_cuda``
"""
