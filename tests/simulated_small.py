"""Compares small lattices with the reference in CUDA's simulator."""

from contextlib import ExitStack, contextmanager
from itertools import cycle, product
from unittest.mock import patch

import numpy as np
import pytest
from helpers import assert_sums_equal, assert_windows_equal, lattice

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, NEVER, TOP, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling, small, small_thresholds
from percolab.coupled import block_sums as coupled_sums
from percolab.coupled.small import SmallCoupling, is_small
from percolab.coupled.tiled import TiledCoupling
from percolab.kernels.device import Device, load_cuda
from percolab.kernels.launches import Launches
from percolab.labelers import new_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import pack_bits
from percolab.measure import block_sums, block_sums_cuda
from percolab.measure.columns import list_columns
from percolab.measure.rows import SPANNING
from percolab.tasks.blocks import pick_observables, pick_squared, same_block
from percolab.tasks.groups import add_groups, find_groups
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.validation.check import measure_words

SEED = 5
#: Shapes by the number of axes: several samples a team, one, and one of many words.
SHAPES = {
    1: ((40,),),
    2: ((4, 4), (6, 6), (10, 12), (36, 8)),
    3: ((2, 3, 4), (4, 4, 5), (3, 8, 7)),
    4: ((2, 2, 2, 3), (3, 2, 4, 3), (4, 4, 4, 4)),
}


def topologies(name, count):
    """Yield topologies of so many shapes, with open, periodic and mixed boundaries in turn."""
    item = lattice(name)
    mixed = ("periodic", *("open",) * (item.dimension - 1))
    boundaries = ("open",) * item.dimension, ("periodic",) * item.dimension, mixed
    if item.dimension > 3:
        opened = item.topology(SHAPES[item.dimension][0], boundaries[2])
        assert not is_small(Extent.of_topology(opened)), "it has flags for the ends of three axes"
        boundaries = boundaries[1:2]
    for shape, boundary in zip(SHAPES[item.dimension][:count], cycle(boundaries)):
        yield item.topology(shape, boundary)


def compare(topology, model, grid, samples):
    """Compare rows at the p of a grid, and sums of blocks, with those of the reference.

    Samples are scanned by a thread each where they can be, and labeled by teams of threads.
    """
    compare_rows(topology, model, grid, samples)
    with patch.object(small.scan_cuda, "make_scan_lattice", return_value=None):
        compare_rows(topology, model, grid, samples)


def compare_rows(topology, model, grid, samples):
    coupling = new_coupling("tiled", "cuda", topology, model, capacity=4, openings=True)
    assert isinstance(coupling, SmallCoupling), topology
    generator = GENERATORS["xorwow"]
    reference = new_coupling("reference", "cpu", topology, model, openings=True)
    expected = reference.grid_rows(generator, SEED, samples, grid)
    found = coupling.grid_rows(generator, SEED, samples, grid)
    np.testing.assert_array_equal(found, expected, err_msg=str((topology, str(model))))
    items = np.repeat(samples, grid.size), np.tile(grid, samples.size)
    found = coupling.rows(generator, SEED, *items)
    np.testing.assert_array_equal(found, expected.reshape(found.shape))
    blocks = SampleBlocks(samples[::3], 3)
    # Chunks of two samples, so that a block has one and a half; a block of threads takes all teams.
    with patched_chunks(2), patch.object(small, "_BLOCKS", 1):
        assert_sums_equal(coupling, expected, (generator, SEED), blocks, grid)


def spirals(name, size, rng, count=12):
    """Return open bonds of tori in which a loop winds as often as it can, and some more.

    The loop visits all sites: a row but for one bond, one site down, and so on; on the square
    lattice straight down, so that it winds ``size - 1`` times, on the triangular one along the
    diagonal, so that it winds ``size`` times.  Returns the torus and its open bonds, uint32 (count,
    words): the first three have the loop alone, each third one a bond more than those before it.
    """
    topology = lattice(name).topology((size, size), ("periodic",) * 2)
    x, y = np.arange(size)[None, :], np.arange(size)[:, None]
    # Where a row begins, and the one before it ends.
    first = x + 0 * y == 0 if name == "triangular" else (x + y) % size == 0
    down = (-1, -1) if name == "triangular" else (0, -1)
    opened = {(-1, 0): ~first, down: first}
    loop = [opened.get(offset, first & False).ravel() for offset in topology.offsets]
    made = np.repeat(np.stack(loop)[None], count, axis=0)
    closed = np.flatnonzero(~made[0].ravel())
    for n in range(1, count):
        made[n].reshape(-1)[rng.choice(closed, n // 3, replace=False)] = True
        # Anywhere on the torus, so that boundaries cut the loop elsewhere.
        cut, shape = rng.integers(size, size=2), (-1, size, size)
        made[n] = np.roll(made[n].reshape(shape), cut, axis=(1, 2)).reshape(made[n].shape)
    return topology, np.stack([np.concatenate(list(map(pack_bits, each))) for each in made])


def compare_spirals(*sizes):
    """Compare what wraps where loops wind as often as they can."""
    for name, size in product(("square", "triangular"), map(int, sizes)):
        topology, words = spirals(name, size, np.random.default_rng(size))
        reference = new_labeler("reference", "cpu", topology, capacity=4)
        expected = measure_words(reference, words)
        # The simulator takes no samples of so many words else.
        with patch.object(small.rows_cuda, "MOST_WORDS", 128):
            coupling = new_coupling("tiled", "cuda", topology, capacity=4)
        assert coupling.is_scannable
        opened = coupling.make_words(len(words))
        opened[: words.size].copy_to_device(words.ravel())
        rows = coupling.measure_words(len(words))
        found = rows[: expected.size].copy_to_host().reshape(expected.shape)
        np.testing.assert_array_equal(found, expected, err_msg=f"{name}, {size}")
        flags = {int(flag) for flag in expected[:, SPANNING]}
        assert len(flags) > 1, "some wrap in one direction, others in two"


def compare_rows_of_two_words():
    """Compare samples whose rows are two words: also of a lattice with steps of half a row."""
    kinds, (x, y) = [("open", "open"), ("periodic", "periodic")], ((1, 0), (0, 1))
    grid = np.array([p_to_threshold(p) for p in (0.3, 0.45, 0.6)], np.uint64)
    for steps, boundary, height, paired in (
        ((x, y), kinds[0], 8, 1),
        ((x, y), kinds[1], 8, 0),
        ((x, (-20, 1)), kinds[1], 3, 1),
        ((x, y, (31, 2)), kinds[0], 8, 1),
        ((x, (-32, 1)), kinds[0], 8, 0),
    ):
        bonds = [(0, 0, step) for step in steps]
        topology = Lattice.from_cell([x, y], [(0, 0)], bonds).topology((64, height), boundary)
        coupling = new_coupling("tiled", "cuda", topology, capacity=4)
        assert int(coupling._scan.paired) == paired
        compare_rows(topology, Model.parse("bond"), grid, np.arange(6, dtype=np.uint64))


def compare_sums_of_tiles(topology, *grids, size=3, capacities=(4, 1)):
    """Compare the sums of blocks whose rows the labeler of tiles leaves on the device.

    size: samples of a block.  capacities: samples labeled at a time; where they are several blocks,
    these are summed together, and a block of more samples is summed piece by piece.
    """
    samples, generator = np.arange(4 * size, dtype=np.uint64), GENERATORS["xorwow"]
    reference = new_coupling("reference", "cpu", topology)
    own = [each for each in list_columns(("open",) * 2) if each.is_observable]
    picks, squared = pick_observables(own), pick_squared(own)
    blocks = SampleBlocks(samples[::size], size)
    for grid in grids:
        rows = reference.grid_rows(generator, SEED, samples, grid)
        expected = block_sums.sum_blocks(rows.reshape(4, size, grid.size, -1), squared, *picks)
        for capacity in capacities:
            coupling = TiledCoupling(new_labeler("tiled", "cuda", topology, capacity=capacity))
            found = coupling.block_sums(generator, SEED, blocks, grid, picks, squared)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def compare_groups(blocks, largest):
    """Compare the sums of groups of blocks with the host's, in two steps, and one too large."""
    rng, numbers = np.random.default_rng(blocks), np.arange(3, 3 + blocks)
    begins = find_groups(np.delete(numbers, blocks // 3), largest)
    sums = rng.integers(-(2**40), 2**40, (blocks - 1, 2, 3))
    squares = rng.random((blocks - 1, 2, 2))
    given = Launches(), begins
    found = block_sums_cuda.add_groups(*given, *map(load_cuda().to_device, (sums, squares)))
    for one, other in zip(found, (sums, squares), strict=True):
        np.testing.assert_array_equal(one.copy_to_host(), add_groups(other, begins))
    # Another order of additions is another number.
    (whole,) = np.nonzero(np.diff(begins) == largest)
    in_turn = np.add.reduceat(squares, begins[:-1])
    assert np.any(in_turn[whole] != found[1].copy_to_host()[whole])
    sums[begins[whole[-1]] :, 1, 2] = 2**63 // largest
    with pytest.raises(OverflowError, match="64 bits"):
        block_sums_cuda.add_groups(*given, *map(load_cuda().to_device, (sums, squares)))


def compare_thresholds(topology, model, samples, too_little=3):
    """Compare T in windows of all sizes, also where a team has too little room for a window."""
    reference = new_coupling("reference", "cpu", topology, model)
    ends = [(0, TOP), (TOP // 2, TOP), (TOP // 5 * 2, TOP // 5 * 3), (TOP // 3, TOP // 3 + 1)]
    key, expected = (GENERATORS["xorwow"], SEED), None
    for most in (small_thresholds.MOST_OPENING, too_little):
        # Two blocks of threads find the thresholds of all samples.
        with (
            patch.object(small_thresholds, "BLOCKS", 2),
            patch.object(small_thresholds, "MOST_OPENING", most),
        ):
            coupling = new_coupling("tiled", "cuda", topology, model, capacity=4)
            given = coupling, reference, key, samples, ends
            expected = assert_windows_equal(*given, expected)
    return set(expected.ravel().tolist()) - {0, NEVER}


@contextmanager
def patched_chunks(samples):
    """Have chunks of so many samples, in the simulator: on a GPU they are part of the kernels."""
    with ExitStack() as stack:
        for module in (block_sums, block_sums_cuda, coupled_sums):
            stack.enter_context(patch.object(module, "CHUNK", samples))
        yield


def compare_blocks_with_radii():
    """Compare the blocks of a sampler whose rows and radii are summed on the device."""
    settings = {"boundary": ("periodic", "open"), "p": (0.4, 0.6), "measure": ("gyration",)}
    task = Task(lattice("triangular"), 6, **settings, seed=3, block_size=2)
    device, host = (make_sampler(task, device=Device(kind)) for kind in ("cuda", "cpu"))
    # As many as there is room for on the device.
    assert device.blocks_per_call * len(task.p) == block_sums.MOST_SUMS
    with patch.object(device.coupling, "grid_rows", side_effect=AssertionError):
        found = device.sample([1, 4])
    for one, other in zip(found, host.sample([1, 4]), strict=True):
        assert same_block(one, other)


def main(name, model="bond", count="2", few=""):
    """Compare samples of a lattice below, at and above its threshold."""
    if few:
        compare_blocks_with_radii()
        compare_spirals(9, 17, 64)
        compare_rows_of_two_words()
        with patch.object(block_sums_cuda, "ADDED_BLOCKS", 2):
            compare_groups(23, 8)
        # One labeling serves the first grid, and of the second each p has its own.
        near, wide, one = ([0.45, 0.4502], [0.2, 0.45, 0.7], [0.45])
        grids = (
            np.array([p_to_threshold(p) for p in each], np.uint64) for each in (near, wide, one)
        )
        with patched_chunks(2):
            compare_sums_of_tiles(lattice(name).topology((9, 8), ("open", "open")), *grids)
        # Every site spans by itself along one axis; along the other T needs all of five bonds, for
        # which there is too little room by one.
        topology, samples = lattice(name).topology((6, 1), ("open", "open")), np.arange(8)
        given = topology, Model.parse(model), samples.astype(np.uint64)
        assert compare_thresholds(*given, too_little=4)
    grid = np.array([p_to_threshold(p) for p in (0.15, 0.45, 0.7)], np.uint64)
    if few:
        # Only the last axis is periodic, in the plane and in space.
        for item, shape in (lattice(name), (10, 12)), (lattice("cubic"), (3, 4, 5)):
            boundary = (*("open",) * (item.dimension - 1), "periodic")
            samples = np.arange(6, dtype=np.uint64)
            compare(item.topology(shape, boundary), Model.parse(model), grid, samples)
        # The last layer begins within a word.
        torus, near = lattice("square").topology((20, 20), ("periodic", "periodic")), grid[1:2]
        compare_rows(torus, Model.parse("bond"), near, np.arange(12, dtype=np.uint64))
    for topology in topologies(name, int(count)):
        compare(topology, Model.parse(model), grid, np.arange(6, dtype=np.uint64))
        if topology.open_axes:
            samples = np.arange(10, 18, dtype=np.uint64)
            assert compare_thresholds(topology, Model.parse(model), samples), "choose another seed"
