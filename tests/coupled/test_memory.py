"""What a labeler says it takes of memory is what it takes, forest, lists and all."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import JUDGED_LABELERS, slow, slow_but, traced_peak
from kernel_report_support import Peak, load_report

from percolab import InputError, load_lattice
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import compute_memory, new_coupling
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs, entries_that_fit
from percolab.kinds.memory import check_memory, estimate_memory
from percolab.labelers import LABELERS
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import make_geometry
from percolab.tasks.study import Task

SHAPES = {"square": (256, 254), "cubic": (48, 40, 44), "hypercubic-4d": (16, 20, 12, 15)}
CUDA_LABELERS = tuple(name for name, entry in LABELERS.items() if "cuda" in entry.classes)
#: A grid that one labeling of tiles can serve.
GRID = np.array([p_to_threshold(p) for p in (0.5, 0.502, 0.504)], np.uint64)


def use_memory(coupling, name, needs):
    """Have a coupling do all that it needs memory for."""
    samples, key = np.zeros(1, np.uint64), (XORWOW, 1)
    coupling.rows(*key, samples, GRID[:1])
    if needs.steps > 1:
        coupling.grid_rows(*key, samples, GRID)
    if needs.radii_axes:
        lattice = load_lattice(name)
        geometry = make_geometry(lattice, SHAPES[name])
        coupling.radii_rows(*key, samples, GRID[:1], geometry)
    if needs.thresholds:
        coupling.scan_windows(*key, samples, GRID[:1], GRID[-1:])


def cases():
    """Yield (lattice, boundary, model, what is needed)."""
    yield "square", "open", BOND, Needs()
    yield "square", "periodic", BOND, Needs(steps=3)
    yield "square", "open", Model.parse("site"), Needs(steps=3, thresholds=True)
    yield "cubic", "periodic", BOND, Needs(tally=True, steps=3)
    yield "cubic", "periodic", BOND, Needs(radii_axes=3)
    yield "cubic", "open", BOND, Needs(steps=3, thresholds=True)
    yield "hypercubic-4d", "periodic", BOND, Needs(steps=3)


every_case = pytest.mark.parametrize(
    ("name", "boundary", "model", "needs"),
    list(cases()),
    ids=lambda item: "" if isinstance(item, Needs) else str(item),
)


def extent_and_topology(name, boundary):
    lattice, shape = load_lattice(name), SHAPES[name]
    kinds = (boundary,) * len(shape)
    topology = lattice.topology(shape, kinds)
    before = Extent.of_structure(lattice, shape, kinds)
    assert replace(before, periodic_bonds=0) == replace(
        Extent.of_topology(topology), periodic_bonds=0
    )
    assert topology.periodic_bonds.size <= before.periodic_bonds <= 2 * topology.periodic_bonds.size
    return before, topology


@every_case
@pytest.mark.parametrize(
    "labeler", [slow(name) if LABELERS[name].paper else name for name in JUDGED_LABELERS]
)
def test_a_cpu_labeler_takes_what_it_says(labeler, name, boundary, model, needs):
    extent, topology = extent_and_topology(name, boundary)
    reported = compute_memory(labeler, "cpu", extent, model, needs)

    def use():
        use_memory(new_coupling(labeler, "cpu", topology, model, tally=needs.tally), name, needs)

    use()  # compiles
    # Coordinates belong to the study, end layers and the like are small.
    peak = traced_peak(use) - 8 * needs.radii_axes * topology.num_points
    assert 0.5 * reported.host <= peak <= 1.05 * reported.host + 100_000
    assert reported.device == 0


@every_case
@pytest.mark.parametrize("labeler", slow_but(CUDA_LABELERS, "tiled", "four_step"))
def test_a_cuda_labeler_takes_what_it_says(labeler, name, boundary, model, needs):
    report = load_report()
    extent, topology = extent_and_topology(name, boundary)
    for items in (1, 3):
        reported = compute_memory(labeler, "cuda", extent, model, needs, items)
        peak = Peak()
        with report.on_host([], "case", peak.add):
            coupling = new_coupling(
                labeler, "cuda", topology, model, capacity=items, tally=needs.tally
            )
            use_memory(coupling, name, needs)
        taken = peak.most - 8 * needs.radii_axes * topology.num_points
        assert 0.4 * reported.device <= taken <= reported.device + 100_000, (items, taken, reported)


def test_a_periodic_lattice_whose_forest_does_not_fit_is_refused(free_memory):
    # The forest of a torus takes 8 bytes a site and more, which the check once left out.
    opened, torus = (
        Task(load_lattice("cubic"), 200, (kind,) * 3, (0.25,), seed=1)
        for kind in ("open", "periodic")
    )
    cpu = Device("cpu")
    less, more = (estimate_memory(task, None, "cpu").host for task in (opened, torus))
    assert more >= less + 8 * 200**3
    free_memory((less + more) // 2)
    check_memory(opened, None, cpu, 1)
    with pytest.raises(InputError, match="L = 200 needs"):
        check_memory(torus, None, cpu, 1)


def test_items_share_what_is_left_of_what_they_have_together():
    def memory(items):
        return Memory(device=1000 + 10 * items)

    assert entries_that_fit(memory, 1055) == 5
    assert entries_that_fit(memory, 900) == 0
