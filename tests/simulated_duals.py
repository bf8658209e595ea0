"""Counts clusters of tori and of their duals in CUDA's simulator; a test starts it."""

import numpy as np
from helpers import cuda_coupling

from percolab.bonds.model import BOND
from percolab.lattices.lattice import load_lattice
from percolab.validation.duals import Dual, count_violations


def main():
    """Check the identity for one labeler, on two lattices."""
    for name in ("triangular", "kagome"):
        lattice = load_lattice(name)
        topology = lattice.topology((6, 6), ("periodic", "periodic"))
        labeler = cuda_coupling("tiled", topology, BOND, capacity=3).labeler
        samples = np.arange(5, dtype=np.uint64)
        for p in (0.3, 0.45):
            assert (
                count_violations(labeler, Dual.of_topology(lattice, topology), 3, samples, p) == 0
            )
        print(name)
