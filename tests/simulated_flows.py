"""Reads what flows off samples of CUDA's simulator, compared with the CPU; a test starts it."""

from flow_support import ALL_KINDS, CUDA_CASES, assert_same_flow, flow_graph

from percolab.flows import dual_bridges_cuda, flow_batch
from percolab.flows.readers import Path, PathLengths
from percolab.lattices.lattice import load_lattice


def main(name, size):
    """Compare the cases of a lattice, or of graphs, read as small samples are or as large ones.

    size: "small"; "large"; or "paths", of large ones these alone.
    """
    flow_batch.is_large = lambda points, entries: size != "small"
    kinds = (Path, PathLengths) if size == "paths" else ALL_KINDS
    # Of three samples the duals of two fit at a time.
    dual_bridges_cuda.entries_that_fit = lambda memory, free: 2
    structure = None if name == "graph" else load_lattice(name)
    for shape, boundary, model, ps in CUDA_CASES[name]:
        topology = structure.topology(shape, boundary) if structure else flow_graph(34, 35, 33, 4)
        for word, rows in assert_same_flow(structure, topology, model, ps, kinds=kinds).items():
            assert rows.any(), f"{name} {model}: nothing flows"
            print(name, model, word)
