"""Openings: the open bonds, or occupied sites, of every sample, as an observable."""

import itertools

import numpy as np
import pytest
from cli_support import refusal
from helpers import lattice, slow, slow_but

import percolab
from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, XORWOW, p_to_threshold, uniform_number
from percolab.coupled import new_coupling
from percolab.lattices.graph import graph_topology
from percolab.measure.rows import SPANNING

MODELS = ("bond", "site", slow("site-bond"), slow("site-bond:site=0.8"), "bond:x=0.3")
SAMPLES = np.array([0, 7, 2**40], np.uint64)
GRID = np.array([p_to_threshold(p) for p in (0.0, 0.2, 0.55, 0.56, 1.0)], np.uint64)


def counted_one_by_one(topology, model, generator, sample, threshold):
    """Return the openings from the uniform number of every bond, or of every site."""
    first, limits = 0, [threshold] * topology.num_classes
    exists = topology.exists
    if model.draws_sites:
        first, exists = topology.num_bond_words, topology.occupied[None]
        limits = [threshold if model.site_varies else int(model.rule.site_limit)]
    elif "x=" in str(model):
        own = model.class_limits(topology.class_names)
        limits = [threshold if limit == 2**64 - 1 else int(limit) for limit in own]
    found = 0
    for k, limit in enumerate(limits):
        for word, bits in enumerate(exists[k]):
            number = np.uint32(first + k * topology.num_words + word)
            for bit in range(32):
                if bits >> bit & 1:
                    own = uniform_number(generator, np.uint64(3), sample, number, np.uint32(bit))
                    found += int(own) < int(limit)
    return found


@pytest.mark.parametrize("model", MODELS)
def test_openings_are_the_numbers_below_p(model):
    for n, boundary in enumerate(itertools.product(("open", "periodic"), repeat=2)):
        kind, generator = Model.parse(model), (XORWOW, GENERATORS["philox"])[n % 2]
        topology = lattice("square").topology((6, 7), boundary)
        coupling = new_coupling("raster", "cpu", topology, kind, openings=True)
        rows = coupling.grid_rows(generator, 3, SAMPLES, GRID)
        expected = [
            [counted_one_by_one(topology, kind, generator, sample, int(limit)) for limit in GRID]
            for sample in SAMPLES
        ]
        assert rows[..., -1].tolist() == expected


@pytest.mark.parametrize("tally", [False, slow(True)])
@pytest.mark.parametrize("model", slow_but(MODELS, "bond"))
def test_every_labeler_and_coupling_counts_the_same_and_changes_no_other_number(model, tally):
    names = ("raster", "reference", "four_step")
    for topology in (
        lattice("square").topology((12, 9), ("periodic",) * 2),
        lattice("kagome").topology((12, 8), ("open", "periodic")),
        graph_topology(50, [(i, (7 * i + 3) % 50) for i in range(50)], source=[0], target=[49]),
    ):
        if "x=" in model and "x" not in topology.class_names:
            continue
        kind = Model.parse(model)
        plain = new_coupling("reference", "cpu", topology, kind, tally=tally)
        rows = plain.grid_rows(XORWOW, 3, SAMPLES, GRID)
        found = []
        for name in names:
            coupling = new_coupling(name, "cpu", topology, kind, tally=tally, openings=True)
            own = coupling.grid_rows(XORWOW, 3, SAMPLES, GRID)
            assert own.shape[-1] == coupling.row_width == rows.shape[-1] + 1
            np.testing.assert_array_equal(own[..., :-1], rows)
            found.append(own[..., -1])
            alone = coupling.rows(XORWOW, 3, SAMPLES, GRID[[2, 2, 2]])
            np.testing.assert_array_equal(alone, own[:, 2])
        assert (found[0] == found[1]).all()
        assert (found[0] == found[2]).all()


def sampled(**options):
    common = {"L": [8], "p": [0.4, 0.5], "samples": 60, "block_size": 20, "device": "cpu"}
    return percolab.sweep("square", boundary="periodic", **common | options)


def test_openings_are_stored_with_those_of_flags_and_change_nothing_else(tmp_path):
    path = tmp_path / "own.h5"
    made = sampled(measure=["sizes", "openings"], out=path)
    (item,) = percolab.open_results(path).tasks.values()
    (plain,) = sampled(measure=["sizes"]).tasks.values()
    assert item.task.id != plain.task.id
    names = [column.name for column in item.observables]
    assert names[-3:] == ["openings", "openings_none", "openings_two"]
    np.testing.assert_array_equal(item.sums()[..., :-3], plain.sums())
    np.testing.assert_array_equal(item.extra("size_counts"), plain.extra("size_counts"))
    topology = item.task.structure.topology((8, 8), ("periodic",) * 2)
    coupling = new_coupling("reference", "cpu", topology, openings=True)
    grid = np.array([p_to_threshold(p) for p in item.task.p], np.uint64)
    rows = coupling.grid_rows(XORWOW, item.task.stream_seed, np.arange(60, dtype=np.uint64), grid)
    by_block = rows.reshape(3, 20, 2, -1)
    assert (item.column("openings") == by_block[..., -1].sum(axis=1)).all()
    flags = by_block[..., SPANNING]
    for name, has in (("two", flags >> 16 & 1), ("none", flags & 0x300 == 0)):
        assert 0 < has.sum() < has.size
        expected = (by_block[..., -1] * has).sum(axis=1)
        assert (item.column(f"openings_{name}") == expected).all()
    assert made.study.measure == ("sizes", "openings")


@pytest.mark.parametrize("method", ["threshold", "tree", "microcanonical"])
def test_methods_without_rows_at_given_p_refuse_openings(method):
    boundary = "open" if method == "threshold" else "periodic"
    message = refusal("sweep", "--lattice", "square", "-L", "8", "--method", method,
                      "--boundary", boundary, "--measure", "openings", "--samples", 10)  # fmt: skip
    assert f"measure openings: method {method}" in message
