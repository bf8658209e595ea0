"""percolab.flow: lattices, masks, graphs and given bonds; what it refuses, in one line."""

import networkx as nx
import numpy as np
import pytest

import percolab
from percolab.errors import InputError

SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_a_sample_is_that_of_a_sweep():
    asked = {"seed": 5, "boundary": ("periodic", "open")}
    (item,) = percolab.sweep(
        "square", L=[12], p=[0.52], samples=8, block_size=2, device="cpu",
        measure="bridges,backbone,path", **asked,
    ).tasks.values()  # fmt: skip
    flows = [percolab.flow("square", 12, 0.52, sample=n, **asked) for n in range(8)]
    assert item.extra("bridges").sum() == sum(each.num_bridges for each in flows)
    assert item.extra("backbone")[:, 0, 2].sum() == sum(each.num_backbone for each in flows)
    assert item.column("spanning_y").sum() == sum(each.connected for each in flows)


def test_flow_of_a_mask_leads_along_the_last_axis_and_through_its_sites():
    mask = np.zeros((5, 7), bool)
    mask[:, 3] = mask[2, 1:6] = True
    found = percolab.flow(mask)
    assert found.summary() | {"conductance": 0} == {
        "open_bonds": 8, "bridges": 8, "connected": True, "red_bonds": 4, "trail_bonds": 4,
        "backbone_bonds": 4, "backbone_sites": 5, "path_length": 4, "elastic_bonds": 4,
        "elastic_sites": 5, "conductance": 0, "largest_current": 1.0,
    }  # fmt: skip
    assert found.conductance == 0.25
    assert not percolab.flow(mask, axis="x").connected
    from_a_site = percolab.flow(mask, source=15, target="y+")
    assert sorted(np.unique(from_a_site.bonds[from_a_site.backbone])) == [15, 16, 17, 24, 31]


def test_given_bonds_are_taken_packed_or_as_an_array():
    topology = percolab.load_lattice("square").topology((4, 4), ("open", "open"))
    flags = np.zeros((2, 4, 4), bool)
    vertical = [abs(delta) for delta in topology.deltas.tolist()].index(4)
    exists = np.unpackbits(topology.exists.view(np.uint8), axis=1, bitorder="little")[:, :16]
    flags[vertical] = exists[vertical].reshape(4, 4)
    found = percolab.flow("square", 4, opened=flags, boundary="open")
    assert (found.num_bridges, found.num_backbone, found.conductance) == (12, 12, 4 / 3)
    words = topology.exists.copy()
    words[1 - vertical] = 0
    assert percolab.flow("square", 4, opened=words, boundary="open").conductance == 4 / 3
    with pytest.raises(InputError, match=r"opened is float64 \(2, 4\), but open bonds of square"):
        percolab.flow("square", 4, opened=np.zeros((2, 4)))
    with pytest.raises(InputError, match="opens a bond that does not exist"):
        percolab.flow("square", 4, opened=np.ones((2, 4, 4), bool), boundary="open")


def test_bonds_of_a_graph_are_in_its_own_order_and_sites_have_its_numbers():
    star = [(0, n) for n in range(1, 200)]
    found = percolab.flow(graph=[*star, (5, 300), (300, 7)], source=1, target=300)
    assert np.array_equal(
        np.sort(found.bonds, axis=1), np.sort([*star, (5, 300), (300, 7)], axis=1)
    )
    assert found.num_red == 1
    assert found.red[0]
    assert found.backbone.nonzero()[0].tolist() == [0, 4, 6, 199, 200]
    named = nx.relabel_nodes(nx.Graph(SQUARE), dict(enumerate("abcd")))
    assert percolab.flow(named, source="a", target="c").conductance == 1


def test_conductances_of_bonds_are_weights():
    values = [1.0, 2.0, 3.0, 4.0]
    found = percolab.flow(graph=SQUARE, source=0, target=2, conductances=values)
    assert found.conductance == pytest.approx(1 / (1 + 1 / 2) + 1 / (1 / 3 + 1 / 4), rel=1e-15)
    topology = percolab.load_lattice("square").topology((3, 3), ("open", "open"))
    whole = percolab.flow("square", 3, 1.0, conductances=np.full((2, 3, 3), 2.5))
    assert whole.conductance == pytest.approx(2.5 * 3 / 2, rel=1e-14)
    assert topology.num_bonds == whole.bonds.shape[0]


@pytest.mark.parametrize(
    ("arguments", "options", "line"),
    [
        ((), {"graph": SQUARE, "source": 0, "target": 0}, "site 0 is both in the source and"),
        ((), {"graph": SQUARE, "source": 0}, "source is given without target"),
        (("square", 8), {"source": 3, "target": 3}, "site 3 is in both terminals"),
        (("square", 8), {"source": 3, "target": "y-"}, "site 3 is in both terminals"),
        (("square", 8), {"source": 64}, "source: there is no site 64"),
        (("square", 8, 0.0), {"source": 3, "model": "site"}, "source: site 3 is vacant"),
        (("square", 8), {"source": "up"}, "source 'up': is no open side"),
        (("square", 8), {"source": 1.5}, "source = 1.5, but it must be a side"),
        (("square", 8), {"axis": "z"}, "axis 'z': no open axis has this name"),
        (("square", 1), {}, "site 0 is in both terminals"),
        (("square", 8), {"boundary": "periodic", "source": 3}, "target: without an open axis"),
        (("square",), {}, "a sample needs L"),
        (("square", 8), {"model": "ising"}, "model ising"),
        (("square", 8), {"conductances": [1.0]}, "conductances have the shape (1,), but must"),
        (("square", 8, 1.0), {"conductances": np.zeros((2, 8, 8))}, "is 0, but it must be posi"),
        (("square", 8, 1.0), {"conductances": -np.ones((2, 8, 8))}, "is -1, but it must be pos"),
        (("square", 8, 1.0), {"conductances": "x"}, "conductances must be numbers"),
        (("square", 8, 1.0), {"conductances": np.full((2, 8, 8), np.nan)}, "is nan, but it must"),
        (("square", 8), {"multi": True}, "only a graph has it"),
        ((np.ones((3, 3)),), {"L": 3}, "an image is a configuration already"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(arguments, options, line):
    with pytest.raises(InputError) as caught:
        percolab.flow(*arguments, **options)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sides_have_the_names_that_invasions_give_them():
    found = percolab.flow("square", 16, 0.7, source="left", target="x+")
    assert found.summary() == percolab.flow("square", 16, 0.7, axis="x").summary()
    shells = percolab.flow("bethe:3", 6, 0.9)
    assert shells.num_red >= 0
    assert shells.connected
    assert shells.num_bridges == len(shells.bonds)


def test_without_terminals_there_are_bridges_alone():
    found = percolab.flow("square", 16, 0.5, boundary="periodic")
    assert found.summary().keys() == {"open_bonds", "bridges"}
    assert "bridges" in repr(found)
    with pytest.raises(InputError, match="a flow needs two terminals"):
        _ = found.num_red
    pair = percolab.flow("square", 16, 0.8, boundary="periodic", source=[0, 1], target=[100])
    assert pair.connected
    assert pair.length > 0


def test_current_through_sites_is_what_enters_or_leaves():
    ladder = percolab.flow(
        graph=[(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (1, 5)], source=0, target=4
    )
    assert ladder.through.tolist() == [1, 0.5, 1, 0.5, 1, 0]
    sample = percolab.flow("square", 12, 0.6, seed=4)
    layers = sample.through.reshape(12, 12).sum(axis=1)
    assert layers[[0, -1]] == pytest.approx([1, 1])
    assert (layers > 1 - 1e-12).all()


def test_too_much_memory_is_refused_with_what_is_needed(free_memory):
    percolab.flow("square", 16, 0.5)
    free_memory(1_000_000)
    mask = np.ones((64, 64), bool)
    with pytest.raises(InputError, match=r"flow through 8064 open bonds needs up to 0.0 GB of"):
        percolab.flow(mask)


def test_terminals_in_the_middle_and_all_sides():
    open_bonds = {"p": 1.0, "source": "centre"}
    found = percolab.flow("square", (5, 7), target="sides", **open_bonds)
    assert found.circuit.source.tolist() == [2 + 5 * 3]
    around = [x + 5 * y for y in range(7) for x in range(5) if x in (0, 4) or y in (0, 6)]
    assert found.circuit.target.tolist() == around
    assert found.length == 2
    strip = {"boundary": ["periodic", "open"], "target": "sides"}
    found = percolab.flow("square", (5, 7), **strip, **open_bonds)
    assert found.circuit.target.tolist() == [*range(5), *range(30, 35)]
    assert percolab.flow("square", (5, 7), target="0, 34", **open_bonds).length == 5
    # The point in the middle of these cells is vacant: the next one is taken.
    found = percolab.flow("kagome", (6, 6), target="sides", **open_bonds)
    topology = percolab.load_lattice("kagome").topology((6, 6), ("open", "open"))
    occupied = np.unpackbits(topology.occupied.view(np.uint8), bitorder="little")
    assert not occupied[21]
    assert found.circuit.source.tolist() == [22]
