"""Reads what flows off samples of CUDA's simulator, compared with the CPU."""

import numpy as np
from flow_support import ALL_KINDS, CUDA_CASES, assert_same_flow, flow_graph, planar_topologies

from percolab.flows import dual_bridges_cuda, dual_flow_cuda, flow_batch
from percolab.flows.readers import Backbone, Path, PathLengths
from percolab.lattices.lattice import load_lattice


def main(name, size):
    """Compare the cases of a lattice, or of graphs, read as small samples are or as large ones.

    size: "small"; "large"; "paths", of large ones these alone; or "planar", of planar lattices
    what is between two sides alone.
    """
    # Of three samples the duals of two fit at a time.
    dual_bridges_cuda.entries_that_fit = lambda memory, free: 2
    if size == "planar":
        compare_planar(load_lattice(name))
        return
    flow_batch.is_large = lambda points, entries: size != "small"
    kinds = (Path, PathLengths) if size == "paths" else ALL_KINDS
    structure = None if name == "graph" else load_lattice(name)
    for shape, boundary, model, ps in CUDA_CASES[name]:
        topology = structure.topology(shape, boundary) if structure else flow_graph(34, 35, 33, 4)
        # All blocks read what labels of the dual do not.
        known = structure if size == "small" else None
        # Of large samples, which take long, those in which most flows.
        ps = ps[-1:] if size == "large" else ps
        for rows in assert_same_flow(known, topology, model, ps, kinds=kinds).values():
            assert rows.any(), f"{name} {model}: nothing flows"


def compare_planar(lattice):
    """Compare backbones between two sides, which labels of the dual give."""
    own, read = dual_flow_cuda.DualFlow.rows, []

    def rows(reading, entries):
        read.append(entries)
        return own(reading, entries)

    dual_flow_cuda.DualFlow.rows = rows
    degree = lattice.coordination_number
    # At the threshold, above it, and where all bonds are open.
    ps = (2 / degree, 2.3 / degree, 2.8 / degree, 1.0)
    found = []
    for topology in planar_topologies(lattice):
        own_rows = assert_same_flow(
            lattice, topology, "bond", ps, samples=7, kinds=(Backbone,), ends={}
        )["backbone"]
        found.append(own_rows.reshape(-1, 4))
        # At every p the last batch has one sample.
        assert read[-1] == 1
        assert read.count(1) == len(ps) * len(found)
    red, trails, bonds, _ = np.concatenate(found).T
    # Bonds of all kinds, and samples whose sides are not connected.
    assert red.any(), "no red bonds"
    assert (trails > bonds).any(), "no trails outside of the backbone"
    assert (bonds == 0).any(), "all samples are connected"
