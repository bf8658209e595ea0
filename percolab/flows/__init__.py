"""Flow through open bonds: bridges, red bonds, backbones, shortest paths, conductance.

A sample is a list of open bonds.  The sites of each of two *terminals* are short-circuited, that
is, joined to one node (:mod:`percolab.flows.net`), and the flow is between these two nodes:

cycle_words  bridges, red bonds, and the bonds on trails between the terminals
blocks       the bonds on paths between the terminals: the backbone, which carries current
paths        the shortest path, and all bonds on shortest paths
elimination  the conductance, and the current in every bond
readers      the measurements of these in sweeps
flow_batch   the same on a CUDA device, with the kernels of the files ``*_cuda.py``
large_flow   the same for few large samples there, with ``open_bonds_cuda`` and ``tile_*_cuda``
"""
