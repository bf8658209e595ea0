"""Runs bond percolation by classes in CUDA's simulator, compared with the CPU."""

from helpers import (
    assert_cuda_equals_cpu,
    assert_thresholds_equal,
    cpu_labeler,
    cuda_coupling,
    items_of,
)
from slab_support import compare_rows

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.lattices.lattice import load_lattice
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey

CASES = (
    ("square", (37, 5), ("open", "open"), "bond:y=0.3", (0.6, 0.7)),
    ("triangular", (9, 6), ("periodic", "periodic"), "bond:d=0.15,y=0.4", (0.4, 0.5)),
)


def compare_labelers():
    """Compare words, labels, rows, grids of p and thresholds of both labelers."""
    for n, (name, shape, boundary, text, ps) in enumerate(CASES):
        topology, model = load_lattice(name).topology(shape, boundary), Model.parse(text)
        for labeler in ("tiled", "four_step"):
            assert_cuda_equals_cpu(
                labeler,
                topology,
                items_of(ps, samples=2),
                generator=list(GENERATORS.values())[n],
                model=model,
                tally=n == 0,
            )
            if topology.open_axes and labeler == "tiled":
                # The other one bisects, which is the same for every model.
                device = cuda_coupling(labeler, topology, model, capacity=2)
                host = cpu_labeler("raster", topology, model)
                assert_thresholds_equal(device, host, window=(0.6, 0.75), samples=2, generator=0)


def compare_slabs():
    """Compare interfaces of slabs that begin within words, and the row of all of them."""
    for boundary, text in (("open", "bond:y=0.3"), ("periodic", "bond:x=0.6")):
        shape, layers, model = (33, 6), [2, 3, 1], Model.parse(text)
        whole = Whole(load_lattice("square"), shape, (boundary,) * 2, model)
        draw = SampleKey(0, 5, 7, p_to_threshold(0.6))
        compare_rows(whole, [draw], layers)
