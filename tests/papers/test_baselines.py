"""The schemes of papers in CUDA's simulator: the reference's labels, and what they refuse."""

import pytest
from helpers import BASELINES, lattice, needs_cuda
from kernel_report_support import load_report

from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND
from percolab.labelers import LABELERS, fitting_labeler, labeler_class, serving_labeler
from percolab.lattices.bethe import bethe_lattice
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.papers.weigel2011.tiles import tiles_of
from percolab.validation.parity import list_labelers

TILES = BASELINES[1:]


#: It has bonds over 20 sites of a row, longer than the edge of a tile.
LONG = """
name = "long"
dimension = 2
coordination_number = 6

[cell]
shape = [1, 1]

[[bonds]]
offset = [1, 0]

[[bonds]]
offset = [20, 0]

[[bonds]]
offset = [0, 1]

[drawing]
vectors = [[1.0, 0.0], [0.0, 1.0]]
"""


def assert_served_by(name, structure, topology, chosen):
    assert serving_labeler(name, "cuda", topology) == chosen
    found, note = fitting_labeler(name, "cuda", structure)
    assert found == chosen
    if chosen == name:
        assert note == ""
    else:
        assert note.startswith(f"{name} ")
        assert note.endswith("; four_step is used instead")


@needs_cuda
@pytest.mark.parametrize("name", TILES)
def test_tiles_serve_every_lattice_of_two_dimensions_and_no_other(name):
    for item in map(lattice, ("square", "kagome", "maple-leaf", "snub-square")):
        assert_served_by(name, item, item.topology(item.shape(6)), name)
    cubic, tree = load_lattice("cubic"), bethe_lattice("bethe:3")
    assert_served_by(name, cubic, cubic.topology((4, 4, 4)), "four_step")
    assert_served_by(name, tree, tree.topology(tree.shape(2)), "four_step")
    assert serving_labeler(name, "cuda", lattice("square").topology((6, 6)).explicit()) == (
        "four_step"
    )
    long = lattice_from_text(LONG, where="long")
    assert_served_by(name, long, long.topology((50, 50)), "four_step")
    assert name in list_labelers("cuda", lattice("square"))
    assert name not in list_labelers("cuda", cubic)


@needs_cuda
def test_the_four_steps_of_2015_serve_bonds_along_the_axes_alone():
    served = ("square", "cubic", "honeycomb")
    for name in (*served, "triangular", "kagome", "bcc", "hypercubic-4d"):
        item = load_lattice(name)
        chosen = "komura_2015" if name in served else "four_step"
        assert_served_by("komura_2015", item, item.topology(item.shape(4)), chosen)
    graph = graph_topology(3, [(0, 1)], source=[0], target=[2])
    assert serving_labeler("komura_2015", "cuda", graph) == "four_step"


def test_a_labeler_that_is_not_there_on_a_device_is_not_replaced():
    assert fitting_labeler("tiles:bfs+sewing", "cpu", load_lattice("cubic")) == (
        "tiles:bfs+sewing",
        "",
    )


@needs_cuda
@pytest.mark.parametrize("name", BASELINES)
def test_registered_names_are_those_of_the_classes(name):
    assert labeler_class(name, "cuda").name == name
    assert LABELERS[name].summary
    assert labeler_class(name, "cuda").is_capturable == ("relaxation" not in name)


def test_a_tile_is_no_smaller_than_a_bond_is_long():
    topology = load_lattice("maple-leaf").topology((12, 12))
    assert tiles_of(topology, 2).edge == 2
    with pytest.raises(ValueError, match="over 2 grid points"):
        tiles_of(topology, 1)


@needs_cuda
def test_a_tile_in_shared_memory_has_an_end():
    report, topology = load_report(), load_lattice("square").topology((100, 100))
    with report.on_host([], "open"):
        batch = new_batch("cuda", topology, BOND, capacity=1)
        labeler_class("tiles:self+sewing", "cuda")(batch, edge=64)
        with pytest.raises(ValueError, match="shared memory"):
            labeler_class("tiles:self+sewing", "cuda")(batch, edge=80)


@needs_cuda
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lattice_name"), [("komura_2015", "cubic"), ("tiles:self+sewing", "square-nnn")]
)
def test_kernels_for_more_classes_of_bonds_fit_in_registers(name, lattice_name):
    report, item = load_report(), load_lattice(lattice_name)
    topology = item.topology(item.shape(20), ("periodic",) * item.dimension)
    kernels = {
        "initial_label_kernel",
        "reduce_label_kernel",
        "self_labeling_kernel",
        "sewing_kernel",
    }
    launches = report.launches_of(name, "torus", topology, BOND)
    found = {launch.name: report.usage_of(launch) for launch in launches if launch.name in kernels}
    assert len(found) == 2
    for usage in found.values():
        assert usage.spills == usage.stack == 0, usage
        assert 0 < usage.registers <= 64, usage
