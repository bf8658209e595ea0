"""Many samples of a small lattice in one call: the rows of each alone, and no reference left."""

import sys
from itertools import product

import numpy as np
import pytest
from helpers import cpu_labeler, lattice

from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.coupled.small import _can_flood

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


@pytest.mark.parametrize(
    ("name", "shape", "floods"),
    [("cubic", (10, 10, 10), True), ("fcc", (10, 10, 10), False), ("square", (1, 9), False)],
)
def test_samples_are_flooded_that_fit_in_shared_memory(name, shape, floods):
    topology = lattice(name).topology(shape, ("open",) * len(shape))
    assert _can_flood(topology) is floods
