"""Reads what flows off samples of CUDA's simulator, compared with the CPU; a test starts it."""

import numpy as np
from flow_support import CUDA_CASES, flow_topology
from helpers import cuda_coupling

from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.flows.readers import Backbone, Bridges, Conductance, Path

SAMPLES = np.arange(5, dtype=np.uint64)


def compare_readers(name, shape, boundary, text, ps):
    """Compare all numbers of five samples, of which a batch on the device has three."""
    structure, topology = flow_topology(name, shape, boundary)
    thresholds = np.array([p_to_threshold(p) for p in ps], np.uint64)
    model = Model.parse(text)
    device = cuda_coupling("tiled", topology, model, capacity=3)
    host = new_coupling("raster", "cpu", topology, model)
    assert device.labeler.batch.capacity == 3
    kinds = (Bridges, Backbone, Path) if topology.open_axes else (Bridges,)
    # The conductance is read on the host.
    for kind in (*kinds, Conductance) if name == "square" and len(kinds) > 1 else kinds:
        device_rows, host_rows = (
            kind(structure, shape).rows(coupling, XORWOW, 7, SAMPLES, thresholds)
            for coupling in (device, host)
        )
        assert host_rows.any(), (name, text, kind.word)
        np.testing.assert_array_equal(device_rows, host_rows, err_msg=f"{name} {kind.word}")
        print(name, text, kind.word)


def main(name):
    """Compare the cases of a lattice, or of graphs."""
    for case in CUDA_CASES[name]:
        compare_readers(name, *case)
