"""Calls of many kernels on a GPU: captured once, launched with other numbers, and forgotten."""

import numpy as np
import pytest
from helpers import cpu_labeler, cuda_coupling, items_of, lattice

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, XORWOW, p_to_threshold

pytestmark = pytest.mark.gpu

SAMPLES = np.arange(5, dtype=np.uint64)
GRIDS = [
    np.array([p_to_threshold(p) for p in grid], np.uint64)
    for grid in ((0.49, 0.495, 0.5), (0.5, 0.505, 0.51), (0.51, 0.511, 0.512))
]


def pair(labeler="tiled", model=BOND, boundary=("periodic", "open"), **options):
    topology = lattice("square").topology((130, 70), boundary)
    device = cuda_coupling(labeler, topology, model, capacity=5, **options)
    return device, cpu_labeler("raster", topology, model, **options)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("model", [BOND, Model.parse("site")], ids=str)
@pytest.mark.parametrize("labeler", ["tiled", "four_step"])
def test_a_captured_call_takes_its_samples_seed_and_p_from_memory(labeler, model, generator):
    device, host = pair(labeler, model, tally=labeler == "tiled")
    for seed in (1, 2, 2**62):
        for shift, p in enumerate((0.45, 0.5, 0.6, 0.7)):
            samples = SAMPLES + np.uint64(7 * shift + seed)
            limits = np.full(samples.size, p_to_threshold(p), np.uint64)
            key = generator, seed, samples, limits
            np.testing.assert_array_equal(device.rows(*key), host.rows(*key))
    assert device.labeler.batch.launches.num_captured == 1


def test_a_captured_grid_takes_its_p_from_memory_and_makes_room_when_it_must():
    device, host = pair()
    launches = device.labeler.batch.launches
    for turn, grid in enumerate([*GRIDS, *GRIDS]):
        key = XORWOW, 4 + turn, SAMPLES, grid
        np.testing.assert_array_equal(device.grid_rows(*key), host.grid_rows(*key))
    assert launches.num_captured == 1
    # A wider grid needs more room: what was captured works on memory that is gone.
    wide = np.array([p_to_threshold(p) for p in (0.4, 0.42, 0.44, 0.46, 0.5)], np.uint64)
    for grid in (wide, GRIDS[0], GRIDS[1], GRIDS[0], wide):
        key = XORWOW, 9, SAMPLES, grid
        np.testing.assert_array_equal(device.grid_rows(*key), host.grid_rows(*key))


def test_batches_of_many_sizes_are_captured_up_to_a_number():
    device, host = pair(boundary=("open", "open"))
    most = device.labeler.batch.launches.MOST_CAPTURED
    for _ in range(3):
        for count in range(1, 6):
            for generator in GENERATORS.values():
                samples, limits = items_of((0.5,), samples=count)
                key = generator, 3, samples, limits
                np.testing.assert_array_equal(device.rows(*key), host.rows(*key))
    assert 0 < device.labeler.batch.launches.num_captured <= most


def test_labels_thresholds_and_rows_may_come_in_turn():
    device, host = pair(boundary=("open", "open"))
    limits = np.full(5, p_to_threshold(0.5), np.uint64)
    low, high = limits - np.uint64(2**55), limits + np.uint64(2**55)
    for seed in range(4):
        key = XORWOW, seed, SAMPLES
        np.testing.assert_array_equal(device.rows(*key, limits), host.rows(*key, limits))
        found = device.scan_windows(*key, low, high)
        np.testing.assert_array_equal(found, host.scan_windows(*key, low, high))
        np.testing.assert_array_equal(
            device.grid_rows(*key, GRIDS[0]), host.grid_rows(*key, GRIDS[0])
        )
