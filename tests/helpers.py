"""What the tests share: the lattices and labelers every property is tried on, and references.

A new lattice or labeler is tested by adding one entry here.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest

from percolab import coupled
from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import TOP, XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.coupled.thresholds import bisect, find_thresholds
from percolab.kernels.device import load_cuda
from percolab.labelers import LABELERS
from percolab.labelers.forest import Reading
from percolab.lattices.geometry import make_geometry
from percolab.lattices.lattice import Lattice, lattice_from_text, lattice_names, load_lattice
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.block_sums import sum_blocks
from percolab.measure.columns import WRAPPING, list_columns
from percolab.measure.radii import sum_gyration
from percolab.measure.rows import SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.tasks.blocks import pick_observables, pick_squared, same_block
from percolab.tasks.groups import add_groups, find_groups

DATA = Path(__file__).parent / "data"
RESULTS = Path(__file__).parents[1] / "results"

#: Lattices as a user would write them, by name.
TEXTS = {
    "kagome": """
name = "kagome"
dimension = 2
coordination_number = 4
bonds = [
    { offset = [1, 0], at = [[0, 0], [1, 0]] },
    { offset = [0, 1], at = [[0, 0], [0, 1]] },
    { offset = [1, -1], at = [[1, 0], [0, 1]] },
]

[cell]
shape = [2, 2]
vacant = [[1, 1]]

[drawing]
vectors = [[1.0, 0.0], [0.5, 0.8660254037844386]]
""",
    "cubic": """
name = "cubic"
dimension = 3
coordination_number = 6
bonds = [{ offset = [1, 0, 0] }, { offset = [0, 1, 0] }, { offset = [0, 0, 1] }]

[cell]
shape = [1, 1, 1]

[drawing]
vectors = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
""",
    "honeycomb_unit_cell": """
name = "honeycomb_unit_cell"
dimension = 2
coordination_number = 3

[unit_cell]
sites = 2
bonds = [
    { from = 0, to = 1, cell = [0, 0] },
    { from = 0, to = 1, cell = [-1, 0] },
    { from = 0, to = 1, cell = [0, -1] },
]

[drawing]
vectors = [[0.8660254037844386, 0.0], [0.8660254037844386, 1.5]]
shifts = [{ at = [1, 0], shift = [0.0, 0.5] }]
""",
    "hypercubic_4d": """
name = "hypercubic_4d"
dimension = 4
coordination_number = 8
bonds = [
    { offset = [1, 0, 0, 0] },
    { offset = [0, 1, 0, 0] },
    { offset = [0, 0, 1, 0] },
    { offset = [0, 0, 0, 1] },
]

[cell]
shape = [1, 1, 1, 1]

[drawing]
vectors = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
""",
}

#: The file of a lattice of one dimension, which tiles refuse.
CHAIN = 'name = "chain"\ndimension = 1\ncell = { shape = [1] }\nbonds = [{ offset = [1] }]\n'

BUILT_IN = tuple(lattice_names())
#: Those of the plane, and those of them that are drawn without crossing bonds.
FLAT = tuple(name for name in BUILT_IN if load_lattice(name).dimension == 2)
PLANAR = tuple(name for name in FLAT if name != "square-nnn")
#: Those of percolab's own lattices that every labeler is tried on at length.
PLANE = ("honeycomb", "square", "triangular")
LATTICES = (*PLANE, *TEXTS)
CPU_LABELERS = tuple(name for name, entry in LABELERS.items() if "cpu" in entry.classes)
#: Those that are compared with another one.
JUDGED_LABELERS = tuple(name for name in CPU_LABELERS if name != "reference")
#: Schemes of papers, here to compare with: the simulator tries them in a program of their own.
BASELINES = tuple(
    name for name, entry in LABELERS.items() if entry.paper and "cpu" not in entry.classes
)
CUDA_LABELERS = tuple(
    name for name, entry in LABELERS.items() if "cuda" in entry.classes and name not in BASELINES
)

#: Shapes by dimension: ones, twos, below and across the edges of 32-bit words.
SHAPES = {
    2: ((1, 1), (1, 2), (2, 1), (1, 37), (37, 1), (2, 2), (7, 5), (32, 3), (34, 6), (31, 33)),
    3: ((1, 1, 1), (2, 2, 2), (1, 5, 7), (7, 4, 5), (34, 2, 3)),
    4: ((1, 1, 1, 1), (2, 2, 2, 2), (3, 4, 2, 5)),
}

#: About the thresholds of the lattices in ``TEXTS``; the others publish their own.
MIDDLE_P = {
    "honeycomb_unit_cell": 0.6527,
    "kagome": 0.5244,
    "cubic": 0.2488,
    "hypercubic_4d": 0.1601,
}


#: Of a test that compiles or simulates kernels of CUDA.
needs_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


def slow(*values: object):
    """Return a case of a parametrized test that is left to ``make test-slow``."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_but(values: Iterable[object], *quick: object) -> list:
    """Return values as cases, of which all but some are left to ``make test-slow``."""
    kept = [value in quick or hasattr(value, "marks") for value in values]
    return [value if is_kept else slow(value) for value, is_kept in zip(values, kept)]


@cache
def lattice(name: str) -> Lattice:
    """Return a lattice that comes with percolab, or one of ``TEXTS``."""
    return lattice_from_text(TEXTS[name], where=name) if name in TEXTS else load_lattice(name)


def probabilities(name: str) -> tuple[float, ...]:
    """Return p values: nothing, little, about the threshold, much, everything."""
    published = lattice(name).threshold("bond")
    middle = published.value if published else MIDDLE_P[name]
    return (0.0, 0.3 * middle, middle, (1 + middle) / 2, 1.0)


def parity_topologies(name: str):
    """Yield (case, topology) over all shapes, boundaries, and kinds of neighbour list."""
    item = lattice(name)
    for shape in SHAPES[item.dimension]:
        for boundary in product(("open", "periodic"), repeat=item.dimension):
            kinds = zip(shape, item.cell, boundary)
            if all(kind == "open" or points % block == 0 for points, block, kind in kinds):
                topology = item.topology(shape, boundary)
                yield (shape, boundary, "computed"), topology
                yield (shape, boundary, "explicit"), topology.explicit()


class Single:
    """A CPU labeler with its coupling, one sample at a time: words in, labels and row out.

    What couples samples in p (``rows``, ``grid_rows``, ``scan_windows`` ...) is the coupling's.
    """

    def __init__(self, name: str, topology: Topology, model: Model, *, tally: bool = False):
        self.coupling = new_coupling(name, "cpu", topology, model, tally=tally)
        self.labeler, self.topology = self.coupling.labeler, topology
        self.batch = self.labeler.batch

    def __getattr__(self, name: str):
        return getattr(self.coupling, name)

    def open_bonds(self, generator: int, seed: int, sample: int, threshold: int) -> None:
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        assert self.batch.fill(generator, seed, *one) == 1

    def load(self, words: np.ndarray) -> None:
        """Take given bond words."""
        assert self.batch.load(np.asarray(words, np.uint32).reshape(1, -1)) == 1

    @property
    def opened(self) -> np.ndarray:
        """The bond words, uint32 (num_classes * num_words,)."""
        return self.batch.copy_open_words(1)[0]

    @property
    def occupied(self) -> np.ndarray:
        """The occupied sites, uint32 (num_words,), one bit a site."""
        return self.batch.copy_occupied(1)[0]

    def label(self) -> np.ndarray:
        return self.labeler.join(1, Reading.LABELS).labels()[0]

    def row(self) -> np.ndarray:
        return self.labeler.join(1).rows()[0]


def cpu_labeler(
    name: str, topology: Topology, model: Model = BOND, *, tally: bool = False
) -> Single:
    return Single(name, topology, model, tally=tally)


def cuda_coupling(
    name: str, topology: Topology, model: Model = BOND, *, capacity: int, **options: bool
):
    """Return a CUDA labeler with the coupling of large lattices; options: tally, openings."""
    with patch.dict(coupled._SMALL, clear=True):
        return new_coupling(name, "cuda", topology, model, capacity=capacity, **options)


def items_of(ps: tuple[float, ...], samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the batch entries (sample, threshold) of some samples at every p, uint64 each."""
    thresholds = np.array([p_to_threshold(p) for p in ps], np.uint64)
    numbers = np.arange(samples, dtype=np.uint64)
    return np.repeat(numbers, thresholds.size), np.tile(thresholds, samples)


def labels_and_row(labeler) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and the row that a CPU labeler finds for its open bonds."""
    return labeler.label(), labeler.row()


def without_wrapping(rows: np.ndarray) -> list:
    """Return rows (..., ROW_WIDTH) with the spanning bits alone among their flags, as lists."""
    found = np.array(rows)
    found[..., SPANNING] &= (1 << FIRST_WRAPPING) - 1
    return found.tolist()


def label_pairs(owner: np.ndarray, other: np.ndarray, num_sites: int) -> np.ndarray:
    """Return the smallest site of every site's cluster, int (num_sites,), by scipy."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(owner)), (owner, other)), (num_sites, num_sites))
    component = connected_components(matrix, directed=False)[1]
    return np.unique(component, return_index=True)[1][component]


def row_by_counting(topology: Topology, labels: np.ndarray) -> list[int]:
    """Return the row of labels by NumPy alone, sharing no code with the kernels."""
    occupied = unpack_bits(topology.occupied, topology.num_points)
    sizes = np.sort(np.unique(labels[occupied], return_counts=True)[1])[::-1].tolist()
    spanning = sum(
        1 << axis
        for axis, (first, last) in enumerate(topology.end_layers)
        if set(labels[first].tolist()) & set(labels[last].tolist())
    )
    largest, second = (sizes + [0, 0])[:2]
    squares = sum(size * size for size in sizes)
    return [len(sizes), largest, second, squares, sizes.count(1), spanning]


def assert_cuda_equals_cpu(
    name: str,
    topology: Topology,
    items: tuple[np.ndarray, np.ndarray],
    *,
    capacity: int = 2,
    reference: str = "raster",
    generator: int = XORWOW,
    model: Model = BOND,
    tally: bool = False,
) -> None:
    """Assert that a CUDA labeler gives the words, labels and rows of a CPU labeler, bit for bit."""
    device = cuda_coupling(name, topology, model, capacity=capacity, tally=tally)
    host = cpu_labeler(reference, topology, model, tally=tally)
    batch, labeler, seed = device.labeler.batch, device.labeler, 5
    message = f"{name}, {topology!r}, {model}"
    expected, grown = (each.rows(generator, seed, *items) for each in (host, device))
    np.testing.assert_array_equal(grown, expected, err_msg=f"{message}, grown from p to p")
    for first in range(0, len(items[0]), capacity):
        samples, thresholds = (values[first : first + capacity] for values in items)
        count = batch.fill(generator, seed, samples, thresholds)
        words, labels = batch.copy_open_words(count), labeler.join(count, Reading.LABELS).labels()
        rows = labeler.join(count).rows()
        if not model.draws_sites:
            np.testing.assert_array_equal(rows, expected[first : first + count], err_msg=message)
        for n in range(count):
            host.open_bonds(generator, seed, samples[n], thresholds[n])
            np.testing.assert_array_equal(words[n], host.opened, err_msg=message)
            np.testing.assert_array_equal(labels[n], host.label(), err_msg=message)
    if topology.num_periodic_bonds and not topology.open_axes:
        # Where nothing but what wraps is read, along a grid of p and at each p.
        device.wraps_alone = True
        some = [values[:capacity] for values in items]
        for each, found in ((items, device.rows), (some, device.measured)):
            flags = found(generator, seed, *each)[:, SPANNING]
            correct = expected[: len(flags), SPANNING]
            np.testing.assert_array_equal(flags, correct, err_msg=f"{message}, wrapping alone")
        device.wraps_alone = False


def assert_same_blocks(found, expected) -> None:
    """Assert that two results have the same tasks with the same blocks, bit for bit."""
    assert found.tasks.keys() == expected.tasks.keys()
    for key, item in expected.tasks.items():
        blocks = found.tasks[key].blocks
        assert blocks.keys() == item.blocks.keys()
        assert all(same_block(block, item.blocks[n]) for n, block in blocks.items()), item.task


def traced_peak(call: Callable[[], object]) -> int:
    """Return the bytes that a call has at most on the host."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def assert_vacant_counts_equal(topology, model, generator, *, steps):
    """Compare the vacant sites of CUDA with the CPU's: of what was drawn, and along a grid of p."""
    samples, seed = np.array([0, 1, 2**40], np.uint64), 2**63 + 1
    grid = np.array([p_to_threshold(p) for p in np.linspace(0, 1, steps)], np.uint64)
    batch = new_batch("cuda", topology, model, capacity=samples.size)
    host = new_batch("cpu", topology, model)
    at_all = np.empty((samples.size, steps), np.int64)
    for n, step in np.ndindex(at_all.shape):
        host.fill(generator, seed, samples[n : n + 1], grid[step : step + 1])
        at_all[n, step] = host.copy_vacant(1)[0]
    batch.closed.make_room(samples.size, steps)
    for step in (0, steps // 2, steps - 1):
        # Two entries first, so that what is counted was not zero before.
        batch.fill(generator, seed, samples[:2], grid[[0, 0]])
        assert batch.copy_vacant(2).tolist() == at_all[:2, 0].tolist()
        items = batch.fill(generator, seed, samples, np.full(samples.size, grid[step]))
        assert batch.copy_vacant(items).tolist() == at_all[:, step].tolist()
    samples_on_device = batch.keys.on_device.samples
    for _ in range(2):
        thresholds = load_cuda().to_device(grid)
        batch.closed.count_along(generator, samples_on_device, items, thresholds)
        batch.launches.wait()
        np.testing.assert_array_equal(batch.closed.fetch(items, steps), at_all)
    if model.site_varies:
        assert at_all.min() == 0 < at_all.max() == topology.num_sites


def assert_openings_equal(
    labeler: str, topology: Topology, model: Model, ps: tuple[float, ...], *, generator: int
) -> None:
    """Assert that rows on CUDA end with the openings: point by point, and along a grid of p.

    First, while no memory has rows, on tori where nothing but what wraps is read.
    """
    device = cuda_coupling(labeler, topology, model, capacity=3, openings=True)
    host = new_coupling("reference", "cpu", topology, model, openings=True)
    samples, grid = np.array([0, 1, 2**40, 5], np.uint64), items_of(ps)[1]
    expected = host.grid_rows(generator, 7, samples, grid)
    if topology.num_periodic_bonds and not topology.open_axes:
        device.wraps_alone = True
        found, read = device.grid_rows(generator, 7, samples, grid), [SPANNING, -1]
        np.testing.assert_array_equal(found[..., read], expected[..., read])
        device.wraps_alone = False
    np.testing.assert_array_equal(device.grid_rows(generator, 7, samples, grid), expected)
    np.testing.assert_array_equal(
        device.grid_rows(generator, 7, samples, grid[1:2]), expected[:, 1:2]
    )


def assert_gyration_equal(
    labeler: str, name: str, shape: tuple[int, ...], boundary: tuple[str, ...], model: Model = BOND
) -> None:
    """Assert that a CUDA labeler finds how far clusters reach as the CPU does, bit for bit.

    So are the sums of blocks, which it makes of a part of the samples at a time.
    """
    item = load_lattice(name)
    topology, geometry = item.topology(shape, boundary), make_geometry(item, shape)
    grid = items_of(probabilities(name)[1:4])[1]
    blocks = SampleBlocks(np.array([5, 2**40, 1], np.uint64), 3)
    samples = np.add.outer(blocks.starts, np.arange(3, dtype=np.uint64)).ravel()
    device = cuda_coupling(labeler, topology, model, capacity=4)
    host = cpu_labeler("raster", topology, model)
    found = [each.radii_rows(0, 3, samples, grid, geometry) for each in (device, host)]
    np.testing.assert_array_equal(*found, err_msg=f"{labeler} {name} {shape} {boundary} {model}")
    assert found[0].any()
    if labeler == "tiled":
        sums = device.radii_sums(0, 3, blocks, grid, geometry)
        by_block = found[1].reshape(3, 3, *found[1].shape[1:])
        np.testing.assert_array_equal(sums, sum_gyration(by_block, geometry.unit))


def assert_thresholds_equal(
    labeler, reference, *, window: tuple[float, float], samples: int, generator: int = XORWOW
) -> None:
    """Assert that two labelers of a topology find the same T of samples, in a window of p."""
    numbers = np.arange(samples, dtype=np.uint64)
    found = find_thresholds(labeler, generator, 5, numbers, tuple(map(p_to_threshold, window)))
    # Another window and a labeler that sorts or bisects by itself; T depends on neither.
    expected = find_thresholds(reference, generator, 5, numbers, (0, TOP))
    np.testing.assert_array_equal(found, expected, err_msg=f"{labeler.labeler}, p from {window}")


def assert_sums_equal(coupling, rows: np.ndarray, key, blocks: SampleBlocks, grid) -> np.ndarray:
    """Assert that a coupling sums rows of openings, (samples, grid, width), in blocks as the CPU.

    On tori also where nothing but what wraps is read.  key: generator and seed.  Returns the sums
    of squares.
    """
    open_axes = coupling.labeler.batch.topology.open_axes
    axes = range(coupling.labeler.batch.topology.num_axes)
    boundary = ["open" if axis in open_axes else "periodic" for axis in axes]
    by_block = rows.reshape(len(blocks.starts), blocks.size, *rows.shape[1:])
    every = []
    for words in (("openings",), ("openings", WRAPPING))[: 1 + (not open_axes)]:
        own = [each for each in list_columns(boundary, words) if each.is_observable]
        picks, squared = pick_observables(own), pick_squared(own)
        expected = sum_blocks(by_block, squared, *picks)
        coupling.wraps_alone = WRAPPING in words
        found = coupling.block_sums(*key, blocks, grid, picks, squared)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        begins = find_groups(range(len(blocks.starts)), 2)
        found = coupling.block_sums(*key, blocks, grid, picks, squared, begins)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, add_groups(other, begins))
        every.append(expected[1])
    if not open_axes:
        samples = blocks.starts[:, None] + np.arange(blocks.size, dtype=np.uint64)
        read = [SPANNING, -1]
        found = coupling.grid_rows(*key, samples.ravel(), grid)
        np.testing.assert_array_equal(found[..., read], rows[..., read])
    coupling.wraps_alone = False
    return every[0]


def assert_windows_equal(coupling, reference, key, samples: np.ndarray, ends: list, expected=None):
    """Assert that T of samples, in windows of these ends in turn, are those that bisection finds.

    key: generator and seed.  expected: what it has found before, if it has.  Returns T.
    """
    windows = np.array([ends[n % len(ends)] for n in range(samples.size)], np.uint64).T
    if expected is None:
        expected = bisect(reference, *key, samples, *windows)
    found = coupling.scan_windows(*key, samples, *windows)
    np.testing.assert_array_equal(found, expected, err_msg=str(coupling.labeler.batch.topology))
    return expected


def run_simulated(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this folder, or FILE:FUNCTION, on CUDA's simulator in its own process."""
    pytest.importorskip("numba_cuda")
    folder = Path(__file__).parent
    return subprocess.run(
        [sys.executable, str(folder / "simulator.py"), str(folder / program), *arguments],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_simulated(program: str, *arguments: str) -> None:
    """Run such a program, which must end well."""
    done = run_simulated(program, *arguments)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"


def record_program(path: str, folder: Path = RESULTS) -> ModuleType:
    """Import a program of results/; it finds the others of its folder."""
    program = folder / path
    sys.path.insert(0, str(program.parent))
    try:
        return importlib.import_module(program.stem)
    finally:
        sys.path.remove(str(program.parent))


def script(name: str) -> ModuleType:
    """Import a program of scripts/."""
    return record_program(f"{name}.py", RESULTS.parent / "scripts")


def exact(name: str) -> dict:
    """Return the exact enumeration of a tiny graph (README in tests/data/exact)."""
    return json.loads((DATA / "exact" / f"{name}.json").read_text())


#: Exactly enumerated lattices: which lattice, which shape, which boundary along every axis.
EXACT_LATTICES = {
    "square_open_2x2": ("square", (2, 2), "open"),
    "square_open_3x2": ("square", (3, 2), "open"),
    "square_open_3x3": ("square", (3, 3), "open"),
    "square_torus_2x2": ("square", (2, 2), "periodic"),
    "square_torus_3x3": ("square", (3, 3), "periodic"),
    "triangular_open_2x2": ("triangular", (2, 2), "open"),
    "triangular_torus_2x2": ("triangular", (2, 2), "periodic"),
    "honeycomb_brick_open_4x3": ("honeycomb", (4, 3), "open"),
    "honeycomb_torus_2x2": ("honeycomb_unit_cell", (4, 2), "periodic"),
    "hypercubic_open_2x2x3": ("cubic", (2, 2, 3), "open"),
    "hypercubic_torus_2x2x2": ("cubic", (2, 2, 2), "periodic"),
}
EXACT_GRAPHS = ("cayley_z3_k1", "cayley_z3_k2", "complete_K4", "petersen")


def exact_topology(name: str) -> Topology:
    lattice_name, shape, boundary = EXACT_LATTICES[name]
    return lattice(lattice_name).topology(shape, (boundary,) * len(shape))


def assert_z(value: float, expected: float, sigma: float) -> None:
    """Assert that a value lies within four standard deviations of what is expected."""
    z = (value - expected) / sigma
    assert abs(z) <= 4, f"z = {z:.1f}: {value} instead of {expected} +- {sigma}"


def count_by_walking(topology, opened):
    """Return (two, none, clusters) of bonds, found by walks that remember how far they went.

    Where a walk comes back to a site with another displacement, the difference is a loop.
    """
    ways = defaultdict(list)
    for klass, owner, other in opened:
        step = np.array(topology.offsets[klass])
        ways[owner].append((other, step))
        ways[other].append((owner, -step))
    sites = np.flatnonzero(np.unpackbits(topology.occupied.view(np.uint8), bitorder="little"))
    seen, two, none, clusters = {}, False, True, 0
    for start in sites.tolist():
        if start in seen:
            continue
        clusters += 1
        seen[start], stack, loops = np.zeros(2, int), [start], []
        while stack:
            site = stack.pop()
            for other, step in ways[site]:
                place = seen[site] + step
                if other in seen:
                    loops.append(place - seen[other])
                else:
                    seen[other] = place
                    stack.append(other)
        none &= not np.any(loops)
        two |= bool(loops) and np.linalg.matrix_rank(np.array(loops)) == 2
    return two, none, clusters
