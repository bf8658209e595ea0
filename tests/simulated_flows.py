"""Reads what flows off samples of CUDA's simulator, compared with the CPU; a test starts it."""

import numpy as np
from helpers import cuda_coupling

from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.flows.readers import Backbone, Bridges, Conductance, Path
from percolab.lattices.lattice import load_lattice

SAMPLES = np.arange(5, dtype=np.uint64)
THRESHOLDS = np.array([p_to_threshold(p) for p in (0.5, 0.7)], np.uint64)


def compare_readers(text):
    """Compare all numbers of five samples, of which a batch on the device has three."""
    lattice = load_lattice("square")
    topology, model = lattice.topology((6, 6), ("periodic", "open")), Model.parse(text)
    device = cuda_coupling("tiled", topology, model, capacity=3)
    host = new_coupling("raster", "cpu", topology, model)
    assert device.labeler.batch.capacity == 3
    for kind in (Bridges, Backbone, Path, Conductance):
        found = [
            kind(lattice, (6, 6)).rows(coupling, XORWOW, 7, SAMPLES, THRESHOLDS)
            for coupling in (device, host)
        ]
        assert found[0].any()
        assert np.array_equal(*found)
        print(text, kind.word)


def main():
    """Compare samples of bonds and of sites."""
    for each in ("bond", "site"):
        compare_readers(each)
