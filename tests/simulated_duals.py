"""Counts clusters of tori and of their duals in CUDA's simulator."""

import numpy as np
from helpers import cuda_coupling, record_program

from percolab.bonds.model import BOND
from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.validation.duals import Dual, count_labeled_violations, count_violations

small_duals = record_program("flow/small_duals.py")


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
    samples = np.arange(4, dtype=np.uint64)
    assert count_labeled_violations(Device("cuda"), load_lattice("kagome"), 3, samples, 0.5) == 0
    compare_small()


def compare_small():
    """Check the identity on tori whose rows and duals stay on the device, and that it can fail."""
    small_duals._DUALS = 3
    for name, shape in (("square", (5, 4)), ("triangular", (3, 4)), ("kagome", (4, 6))):
        lattice = load_lattice(name)
        found = small_duals.SmallDuals(lattice, lattice.topology(shape, ("periodic", "periodic")))
        for p in (0.3, 0.5, 0.7):
            assert found.count_violations(3, 5, 8, p) == 0
        # Bonds of the dual that cross others.
        size = found._sources.size // 32
        sources = found._sources.copy_to_host().reshape(32, size)
        found._sources.copy_to_device(np.roll(sources, 1, axis=0).ravel())
        assert found.count_violations(3, 5, 8, 0.5) > 0
