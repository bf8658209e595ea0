"""The exact spanning thresholds of samples agree with their rows, wherever they are looked for."""

import sys
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from helpers import CPU_LABELERS, LATTICES, assert_thresholds_equal, cpu_labeler, lattice, slow_but

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, NEVER, TOP, XORWOW, p_to_threshold, uniform_number
from percolab.coupled import new_coupling
from percolab.coupled.thresholds import bisect, find_thresholds
from percolab.lattices.graph import graph_topology

SHAPES = {2: ((1, 1), (7, 5), (34, 6)), 3: ((2, 2, 2), (7, 4, 5)), 4: ((2, 2, 2, 2),)}
#: Windows of p that hold T, that lie below or above it, and that are next to nothing.
WINDOWS = ((0.0, 1.0), (0.3, 0.7), (0.0, 0.01), (0.97, 1.0), (0.5, 0.5 + 1e-15))


def topologies(name):
    """Yield (case, topology) for the boundaries with an open axis, computed and explicit."""
    item = lattice(name)
    for shape in SHAPES[item.dimension]:
        for boundary in product(("open", "periodic"), repeat=item.dimension):
            fits = zip(shape, item.cell, boundary)
            if "open" in boundary and all(k == "open" or n % c == 0 for n, c, k in fits):
                topology = item.topology(shape, boundary)
                yield (shape, boundary, "computed"), topology
                yield (shape, boundary, "explicit"), topology.explicit()


def samples_of(count):
    return np.arange(count, dtype=np.uint64)


@pytest.mark.parametrize("name", slow_but(LATTICES, "kagome"))
def test_opening_bonds_in_order_gives_what_bisection_of_rows_gives(name):
    for number, (case, topology) in enumerate(topologies(name)):
        reference = cpu_labeler("raster", topology)
        ends = (np.zeros(4, np.uint64), np.full(4, TOP, np.uint64))
        expected = bisect(reference, number % 2, 5, samples_of(4), *ends)
        for window in WINDOWS:
            limits = p_to_threshold(window[0]), p_to_threshold(window[1])
            found = find_thresholds(reference, number % 2, 5, samples_of(4), limits)
            np.testing.assert_array_equal(found, expected, err_msg=f"{case}, {window}")


@pytest.mark.parametrize("labeler", CPU_LABELERS)
def test_every_labeler_finds_the_same(labeler):
    for generator, name in zip(GENERATORS.values(), ("honeycomb", "kagome")):
        topology = lattice(name).topology((10, 8), ("open", "periodic"))
        assert_thresholds_equal(
            cpu_labeler(labeler, topology),
            cpu_labeler("raster", topology),
            window=(0.4, 0.6),
            samples=2,
            generator=generator,
        )


@pytest.mark.parametrize("widest", [TOP, TOP // 50])
def test_the_coupling_works_in_the_given_context_alone(widest):
    """Outside of it another thread may drive the device."""
    coupling, is_driven = cpu_labeler("raster", lattice("square").topology((9, 7))), []

    class Watched:
        labeler, widest_window = coupling.labeler, widest

        def __getattr__(self, name):
            assert is_driven
            return getattr(coupling, name)

    @contextmanager
    def driven():
        assert not is_driven, "it is not entered twice"
        is_driven.append(True)
        yield
        is_driven.clear()

    for window in ((TOP // 3, TOP // 2), (0, TOP)):
        given = XORWOW, 5, samples_of(20), window
        found = find_thresholds(Watched(), *given, driven)
        np.testing.assert_array_equal(found, find_thresholds(coupling, *given))


def test_a_graph_in_two_pieces_never_spans():
    topology = graph_topology(6, [(0, 1), (1, 2), (3, 4), (4, 5)], source=[0], target=[5])
    for labeler in CPU_LABELERS:
        found = find_thresholds(cpu_labeler(labeler, topology), XORWOW, 1, samples_of(3), (0, 5))
        assert (found == np.uint64(NEVER)).all()


def test_a_chain_spans_when_its_last_bond_opens():
    topology = graph_topology(5, [(n, n + 1) for n in range(4)], source=[0], target=[4])
    found = find_thresholds(cpu_labeler("raster", topology), XORWOW, 4, samples_of(20), (0, TOP))
    for sample, (threshold,) in enumerate(found.tolist()):
        key = XORWOW, np.uint64(4), np.uint64(sample), 0
        assert threshold == max(int(uniform_number(*key, bit)) for bit in range(1, 5)) + 1


SAMPLES = np.arange(40, dtype=np.uint64)


@pytest.mark.parametrize(("model", "boundary"), [*product(("bond", "site"), ("open", "periodic"))])
@pytest.mark.parametrize("name", ["square", "triangular"])
def test_many_samples_in_one_call_have_the_rows_of_each_alone(name, model, boundary):
    topology = lattice(name).topology((16, 16), (boundary,) * 2)
    kind, p = Model.parse(model), lattice(name).threshold(model).value
    grid = np.array([p_to_threshold(p)], np.uint64)
    coupling = new_coupling("raster", "cpu", topology, kind)
    rows = coupling.grid_rows(XORWOW, 3, SAMPLES, grid)
    for sample, row in zip(SAMPLES, rows, strict=True):
        alone = coupling.grid_rows(XORWOW, 3, np.array([sample]), grid)
        np.testing.assert_array_equal(alone[0], row)
    reference = cpu_labeler("reference", topology, kind)
    np.testing.assert_array_equal(rows, reference.grid_rows(XORWOW, 3, SAMPLES, grid))


def test_kernels_that_count_no_references_leave_arrays_to_their_owner():
    topology = lattice("square").topology((16, 16), ("periodic",) * 2)
    coupling = new_coupling("raster", "cpu", topology, Model.parse("site"))
    labeler = coupling.labeler
    thresholds = np.array([p_to_threshold(0.5)], np.uint64)
    owned = [labeler.batch.opened, *labeler.runs, labeler.windings.periods]

    def work():
        labeler.batch.fill(XORWOW, 1, SAMPLES[:1], thresholds)
        labeler.join(1).rows()
        coupling.grid_rows(XORWOW, 1, SAMPLES, thresholds)

    work()
    before = [sys.getrefcount(array) for array in owned]
    for _ in range(3):
        work()
    assert [sys.getrefcount(array) for array in owned] == before
