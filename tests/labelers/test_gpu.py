"""CUDA against the CPU, bit for bit, on a real GPU: large lattices, and many small ones."""

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from helpers import (
    BASELINES,
    CUDA_LABELERS,
    LATTICES,
    PLANE,
    assert_cuda_equals_cpu,
    assert_gyration_equal,
    assert_same_blocks,
    assert_sums_equal,
    assert_thresholds_equal,
    assert_vacant_counts_equal,
    assert_windows_equal,
    cpu_labeler,
    cuda_coupling,
    items_of,
    lattice,
    parity_topologies,
    probabilities,
)
from simulated_small import compare_groups, compare_spirals, compare_sums_of_tiles

from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, TOP, XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.coupled.small import SmallCoupling, is_small
from percolab.coupled.thresholds import find_thresholds
from percolab.kernels.device import Device
from percolab.labelers import labeler_class, scan_cuda, serving_labeler, small_cuda
from percolab.labelers.forest import Reading
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import make_geometry
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.measure.block_sums import CHUNK
from percolab.measure.radii import sum_gyration
from percolab.run.runner import run_study
from percolab.tasks.study import StopRule, Study

pytestmark = pytest.mark.gpu


def pair(topology, model=BOND, *, capacity, labeler="tiled"):
    """Return a labeler of CUDA and the one of the CPU that it is compared with."""
    return (
        cuda_coupling(labeler, topology, model, capacity=capacity),
        cpu_labeler("raster", topology, model),
    )


every_labeler = pytest.mark.parametrize("labeler", CUDA_LABELERS)
every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)


@pytest.mark.parametrize("labeler", [*CUDA_LABELERS, *BASELINES])
@every_generator
@pytest.mark.parametrize("name", LATTICES)
def test_small_lattices_equal_the_cpu(name, generator, labeler):
    items = items_of(probabilities(name), samples=2)
    for number, (_, topology) in enumerate(parity_topologies(name)):
        if serving_labeler(labeler, "cuda", topology) != labeler:
            continue
        assert_cuda_equals_cpu(
            labeler,
            topology,
            items,
            generator=generator,
            capacity=(1, 7, 64)[number % 3],  # ten items: one at a time, 7 + 3, all at once
            tally=number % 2 == 1,
        )


@every_labeler
@pytest.mark.parametrize("boundary", list(product(("open", "periodic"), repeat=2)), ids="-".join)
@pytest.mark.parametrize("name", [name for name in LATTICES if lattice(name).dimension == 2])
def test_many_blocks_of_threads_equal_the_cpu(name, boundary, labeler):
    topology = lattice(name).topology((1022, 514), boundary)
    for kind in (topology, topology.explicit()):
        assert_cuda_equals_cpu(labeler, kind, items_of(probabilities(name)), capacity=5)


@pytest.mark.parametrize("name", ["square:1-8", "cubic:1-3"])
def test_lattices_with_many_bonds_a_site_equal_the_cpu(name):
    item = lattice(name)
    shape = (130, 75) if item.dimension == 2 else (34, 18, 22)
    topology = item.topology(shape, ("periodic",) * item.dimension)
    labeler = serving_labeler("tiled", "cuda", topology)
    assert labeler == ("tiled" if name == "cubic:1-3" else "four_step")
    assert_cuda_equals_cpu(labeler, topology, items_of((0.0, 0.03, 0.2, 1.0)), capacity=3)


@every_labeler
@pytest.mark.parametrize("name", PLANE)
def test_sixteen_million_sites_equal_the_cpu(name, labeler):
    dimension = lattice(name).dimension
    shape = (2 ** (24 // dimension),) * dimension
    boundary = ("open",) + ("periodic",) * (dimension - 1)
    assert_cuda_equals_cpu(
        labeler,
        lattice(name).topology(shape, boundary),
        items_of(probabilities(name)[2:3], samples=2),
        tally=True,
    )


@every_labeler
@pytest.mark.parametrize("name", ["square", "honeycomb", "kagome", "cubic"])
def test_how_far_clusters_reach_equals_the_cpu(name, labeler):
    for shape in ((30, 34), (130, 258)) if lattice(name).dimension == 2 else ((34, 18, 22),):
        for boundary in product(("open", "periodic"), repeat=len(shape)):
            assert_gyration_equal(labeler, name, shape, boundary)
    assert_gyration_equal(labeler, name, shape, boundary, Model.parse("site"))
    if lattice(name).dimension == 2:
        # Sums of squares over a tile's cluster, seen from the lattice's first site, pass 64 bits.
        assert_gyration_equal(labeler, name, (1026, 1030), ("open", "periodic"))


@pytest.mark.parametrize("labeler", BASELINES)
@pytest.mark.parametrize("boundary", list(product(("open", "periodic"), repeat=2)), ids="-".join)
@pytest.mark.parametrize("name", ["square", "triangular", "honeycomb", "kagome", "maple-leaf"])
def test_many_tiles_in_the_schemes_of_papers_equal_the_cpu(name, boundary, labeler):
    topology = lattice(name).topology((606, 258), boundary)
    if serving_labeler(labeler, "cuda", topology) != labeler:
        pytest.skip("another labeler serves it")
    assert_cuda_equals_cpu(labeler, topology, items_of(probabilities(name)), capacity=5)


@pytest.mark.parametrize(
    ("labeler", "name", "shape", "boundary"),
    [
        *((labeler, "square", (2047, 2049), ("periodic",) * 2) for labeler in BASELINES),
        ("komura_2015", "cubic", (61, 37, 45), ("open",) * 3),
        ("komura_2015", "cubic", (61, 37, 45), ("periodic", "open", "periodic")),
    ],
)
def test_large_lattices_in_the_schemes_of_papers_equal_the_cpu(labeler, name, shape, boundary):
    topology, middle = lattice(name).topology(shape, boundary), probabilities(name)[2]
    assert_cuda_equals_cpu(labeler, topology, items_of((middle, middle + 0.1)))


@every_generator
@pytest.mark.parametrize("model", ["site", "site-bond", "site-bond:site=0.8"])
def test_vacant_sites_of_many_thresholds_are_those_of_the_cpu(model, generator):
    for shape, steps in (((4, 5), 3), ((302, 203), 70), ((1026, 1023), 32)):
        topology = lattice("honeycomb").topology(shape, ("periodic", "open"))
        assert_vacant_counts_equal(topology, Model.parse(model), generator, steps=steps)


#: Below, at and above the edges of words, strips and tiles.
TILE_EDGES = {
    2: ((8, 8), (62, 66), (64, 64), (66, 130), (128, 192), (258, 62), (1022, 514)),
    3: ((8, 8, 8), (32, 8, 16), (34, 6, 18), (66, 10, 34), (60, 50, 40)),
    4: ((4, 4, 4, 4), (16, 8, 4, 16), (34, 5, 6, 4), (20, 12, 10, 14)),
    5: ((8, 8, 4, 4, 4), (10, 6, 7, 5, 3)),
}
#: Lattices that tiles serve.
TILED = [*LATTICES, "hypercubic-5d"]


@pytest.mark.parametrize("half_width", [0.002, 0.02, 0.2])
@pytest.mark.parametrize("name", TILED)
def test_a_grid_of_p_in_tiles_equals_the_cpu(name, half_width):
    item, middle = lattice(name), probabilities(name)[2]
    steps = (-1, -0.7, -0.3, 0, 0.1, 0.4, 1)
    grid = tuple(max(middle + half_width * step, 0.0) for step in steps)
    for shape in TILE_EDGES[item.dimension]:
        for number, boundary in enumerate(product(("open", "periodic"), repeat=item.dimension)):
            assert_cuda_equals_cpu(
                "tiled",
                item.topology(shape, boundary),
                items_of(grid, samples=2),
                generator=number % 2,
                capacity=3,
                tally=number % 3 == 1,
            )


@pytest.mark.parametrize("name", TILED)
def test_thresholds_of_samples_equal_the_cpu(name):
    item, middle = lattice(name), probabilities(name)[2]
    for shape in TILE_EDGES[item.dimension]:
        for number, others in enumerate(product(("open", "periodic"), repeat=item.dimension - 1)):
            topology = item.topology(shape, ("open", *others))
            both = pair(topology, capacity=3)
            for window in ((middle - 0.02, middle + 0.02), (middle + 0.1, middle + 0.11)):
                assert_thresholds_equal(*both, window=window, samples=5, generator=number % 2)


#: What is drawn in addition to bonds, and where the square lattice begins to span in p.
SITE_MODELS = {
    Model.parse("site"): 0.593,
    Model.parse("site-bond"): 0.75,
    Model.parse("site-bond:site=0.8"): 0.65,
    Model.parse("site-bond:bond=0.8"): 0.68,
}


@every_labeler
@pytest.mark.parametrize("model", SITE_MODELS, ids=str)
def test_models_that_draw_sites_equal_the_cpu(model, labeler):
    for name in ("square", "kagome", "cubic"):
        for number, (_, topology) in enumerate(parity_topologies(name)):
            if any(np.intersect1d(*pair).size for pair in topology.end_layers):
                continue
            assert_cuda_equals_cpu(
                labeler,
                topology,
                items_of((0.0, 0.2, 0.5, 0.6, 0.9, 1.0), samples=2),
                generator=number % 2,
                capacity=(1, 7, 64)[number % 3],
                model=model,
            )


@pytest.mark.parametrize("model", SITE_MODELS, ids=str)
def test_grids_and_thresholds_of_models_that_draw_sites_equal_the_cpu(model):
    for name, middle in (("square", SITE_MODELS[model]), ("cubic", 0.4), ("triangular", 0.55)):
        item = lattice(name)
        for number, shape in enumerate(TILE_EDGES[item.dimension]):
            kinds = ("open", *(("open", "periodic")[number % 2],) * (item.dimension - 1))
            topology = item.topology(shape, kinds)
            for half_width in (0.002, 0.05):
                grid = tuple(middle + half_width * step for step in (-1, -0.6, 0, 0.3, 1))
                assert_cuda_equals_cpu(
                    "tiled",
                    topology,
                    items_of(grid, samples=2),
                    generator=number % 2,
                    capacity=3,
                    model=model,
                )
            both, window = pair(topology, model, capacity=3), (middle - 0.02, middle + 0.02)
            assert_thresholds_equal(*both, window=window, samples=5, generator=number % 2)


@every_labeler
def test_every_labeler_finds_the_same_thresholds(labeler):
    topology = lattice("triangular").topology((70, 50), ("periodic", "open"))
    both = pair(topology, capacity=4, labeler=labeler)
    assert_thresholds_equal(*both, window=(0.3, 0.4), samples=9)


def test_two_hundred_million_sites_in_tiles_equal_the_cpu():
    topology = lattice("honeycomb").topology((2**14, 2**14))
    device, host = pair(topology, capacity=1)
    items = items_of((0.6527, 0.6528))
    np.testing.assert_array_equal(device.rows(XORWOW, 5, *items), host.rows(XORWOW, 5, *items))
    host.open_bonds(XORWOW, 5, 0, items[1][0])
    count = device.labeler.batch.fill(XORWOW, 5, items[0][:1], items[1][:1])
    labels = device.labeler.join(count, Reading.LABELS).labels()
    np.testing.assert_array_equal(labels[0], host.label())


@every_labeler
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_equal_the_cpu(seed, labeler):
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(1, 5000))
    bonds = rng.integers(0, sites, (2 * sites, 2)).tolist()
    assert_cuda_equals_cpu(
        labeler,
        graph_topology(sites, bonds, source=[0], target=[sites - 1]),
        items_of((0.0, 0.2, 0.5, 1.0), samples=3),
        capacity=5,
    )


@pytest.mark.parametrize(
    ("labeler", "options"),
    [
        *((labeler, {}) for labeler in CUDA_LABELERS),
        *((name, {"edge": edge}) for name in BASELINES[1:] for edge in (3, 8, 24, 32, 64)),
    ],
)
def test_given_open_bonds_are_labeled_as_they_are(labeler, options):
    topology = lattice("triangular").topology((301, 203), ("periodic", "open"))
    host = cpu_labeler("raster", topology)
    batch = new_batch("cuda", topology, BOND, capacity=3)
    device = labeler_class(labeler, "cuda")(batch, **options)
    given = []
    for sample, p in enumerate((0.35, 0.4, 0.6)):
        host.open_bonds(XORWOW, 1, sample, p_to_threshold(p))
        given.append((host.opened, host.label()))
    count = batch.load(np.array([opened for opened, _ in given]))
    found = device.join(count, Reading.LABELS).labels()
    np.testing.assert_array_equal(found, [labels for _, labels in given])


@every_labeler
@every_generator
def test_same_sample_is_labeled_the_same_every_time(generator, labeler):
    topology = lattice("honeycomb").topology((512, 512))
    device = cuda_coupling(labeler, topology, capacity=16)
    items = np.zeros(16, np.uint64), np.full(16, p_to_threshold(0.6527), np.uint64)
    rows = [device.rows(generator, 9, *items) for _ in range(10)]
    assert (np.array(rows) == rows[0][0]).all()


@pytest.mark.parametrize("name", ["honeycomb", "kagome", "cubic", "honeycomb_unit_cell"])
def test_sweep_gives_the_blocks_of_the_cpu(name):
    item = lattice(name)
    study = Study(structure=item, sizes=(6, 20), boundary=("open",) * item.dimension, seed=3)
    rule = StopRule(dict.fromkeys(study.sizes, 300))
    first, second = (run_study(study, rule, device=Device(kind)) for kind in ("cpu", "cuda"))
    assert_same_blocks(second, first)
    assert {item.task.size for item in first.tasks.values()} == set(study.sizes)
    assert all(item.num_samples >= 300 for item in first.tasks.values())


GRID = np.array([p_to_threshold(p) for p in (0.2, 0.5, 0.62, 0.9)], np.uint64)
#: By dimension: several samples a team, one, and one of as many words as there may be.
SIZES = {1: (100,), 2: (4, 8, 12, 16, 20, 30, 32, 48, 64), 3: (4, 8, 10, 16), 4: (2, 3, 4, 5, 6, 8)}
BLOCK = 1500


def couplings(name, size, boundary, model, capacity=64):
    item = load_lattice(name)
    topology = item.topology(item.shape(size), boundary)
    made = [
        new_coupling(
            labeler, device, topology, Model.parse(model), capacity=capacity, openings=True
        )
        for labeler, device in (("tiled", "cuda"), ("raster", "cpu"))
    ]
    return isinstance(made[0], SmallCoupling), *made


def by_teams():
    """Let couplings that are made inside have teams of threads for all samples."""
    return patch.object(scan_cuda, "make_scan_lattice", return_value=None)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("model", ["bond", "site", "site-bond"])
@pytest.mark.parametrize(
    "name", ["square", "honeycomb", "triangular", "kagome", "cubic", "bcc", "fcc", "hypercubic-4d"]
)
def test_rows_and_sums_equal_those_of_the_cpu(name, model, generator):
    dimension = load_lattice(name).dimension
    small = 0
    for size in SIZES[dimension]:
        mixed = ("periodic", *("open",) * (dimension - 1))
        for boundary in (("open",) * dimension, ("periodic",) * dimension, mixed):
            is_small, device, host = couplings(name, size, boundary, model)
            if not is_small:
                continue
            small += 1
            key = generator, 7
            samples = np.arange(2 * BLOCK if size == 8 else 60, dtype=np.uint64)
            expected = host.grid_rows(*key, samples, GRID)
            blocks = SampleBlocks(samples[:: samples.size // 2], samples.size // 2)
            # Scanned by a thread each where they can be, and by teams of threads.
            devices = [device]
            if device.is_scannable:
                with by_teams():
                    devices.append(couplings(name, size, boundary, model)[1])
            for coupling in devices:
                np.testing.assert_array_equal(coupling.grid_rows(*key, samples, GRID), expected)
                assert_sums_equal(coupling, expected, key, blocks, GRID)
    assert small >= 6


@pytest.mark.parametrize("shape", [(70, 96), (200, 130)])
def test_sums_of_rows_of_tiles_equal_those_of_the_cpu(shape):
    grids = [[0.49, 0.491, 0.492], [0.3, 0.5, 0.501, 0.7], [0.5]]
    grids = (np.array([p_to_threshold(p) for p in grid], np.uint64) for grid in grids)
    # Two blocks of two chunks at a time, and blocks of more samples than there is room for.
    given = {"size": CHUNK + 6, "capacities": (2 * CHUNK + 12, CHUNK, 4)}
    compare_sums_of_tiles(load_lattice("square").topology(shape), *grids, **given)


def test_loops_that_wind_as_often_as_they_can_are_found():
    compare_spirals(8, 9, 17, 20, 24, 33, 48, 64)


@pytest.mark.parametrize("largest", [4, 64, 1024])
def test_groups_of_blocks_are_added_up_as_on_the_host(largest):
    compare_groups(5000, largest)


@pytest.mark.parametrize("model", ["bond", "site", "site-bond", "bond:x=0.6"])
@pytest.mark.parametrize("name", ["square", "triangular", "kagome", "cubic"])
def test_thresholds_equal_those_of_the_cpu(name, model):
    item, ends = load_lattice(name), [(0, TOP), (TOP // 2, TOP), (TOP // 5, TOP // 5 * 4)]
    own = Model.parse(model)
    chosen = own if model != "bond:x=0.6" or name == "square" else Model.parse("bond")
    compared = 0
    for size in {2: (4, 12, 20, 64), 3: (4, 10, 16)}[item.dimension]:
        samples = np.arange(100 if size < 16 else 24, dtype=np.uint64)
        for opened in range(1, item.dimension + 1):
            boundary = ("open",) * opened + ("periodic",) * (item.dimension - opened)
            topology = item.topology(item.shape(size), boundary)
            if not is_small(Extent.of_topology(topology)):
                continue
            device, host = (
                new_coupling(labeler, kind, topology, chosen, capacity=64)
                for labeler, kind in (("tiled", "cuda"), ("raster", "cpu"))
            )
            generator = size % 2
            assert_windows_equal(device, host, (generator, 7), samples, ends)
            expected = find_thresholds(host, generator, 3, samples, (TOP // 3, TOP // 2))
            found = find_thresholds(device, generator, 3, samples, (TOP // 3, TOP // 2))
            np.testing.assert_array_equal(found, expected, err_msg=f"{size}, {boundary}")
            compared += 1
    assert compared >= 6


def compare_sums(size, boundary, model, samples, p):
    """Compare the sums of one block on both devices; return the sums of squares."""
    _, device, host = couplings("square", size, boundary, model, capacity=samples)
    numbers, grid = np.arange(samples, dtype=np.uint64), np.array([p_to_threshold(p)], np.uint64)
    key = GENERATORS["xorwow"], 7
    rows = host.grid_rows(*key, numbers, grid)
    return assert_sums_equal(device, rows, key, SampleBlocks(numbers[:1], samples), grid)


def test_squares_beyond_53_bits_are_rounded_like_those_of_the_cpu():
    assert compare_sums(64, ("periodic",) * 2, "bond", 3000, 0.7).max() > 2.0**53


@pytest.mark.parametrize("size", [16, 24, 32, 48, 64])
@pytest.mark.parametrize(
    ("boundary", "model"), [("periodic", "bond"), ("periodic", "site"), ("open", "bond")]
)
def test_a_block_of_threads_measures_one_sample_after_the_other(size, boundary, model):
    # There are 2^14 blocks of threads, of which each has four samples of L = 16 at a time.
    samples = 2**17 + 1 if size < 24 else 2**15 + 1
    with by_teams():
        compare_sums(size, (boundary,) * 2, model, samples, 0.5 if model == "bond" else 0.5927)


@pytest.mark.parametrize("boundary", ["periodic", "open"])
@pytest.mark.parametrize("samples", [1, 2**16 + 1])
@pytest.mark.parametrize("size", [12, 48])
def test_samples_are_scanned_by_a_thread_each(size, samples, boundary):
    with patch.object(small_cuda, "small_rows_kernel", None):
        compare_sums(size, (boundary,) * 2, "bond", samples, 0.5)


@pytest.mark.parametrize("name", ["honeycomb", "cubic"])
def test_radii_of_long_blocks_are_summed_like_those_of_the_cpu(name):
    item = load_lattice(name)
    shape, boundary = item.shape(8), ("periodic",) * item.dimension
    topology, geometry = item.topology(shape, boundary), make_geometry(item, shape)
    # Pieces of 700 samples, which end within blocks.
    device = new_coupling("tiled", "cuda", topology, capacity=700)
    host = new_coupling("raster", "cpu", topology)
    key, blocks = (GENERATORS["xorwow"], 7), SampleBlocks(np.array([0, BLOCK], np.uint64), BLOCK)
    rows = host.radii_rows(*key, np.arange(2 * BLOCK, dtype=np.uint64), GRID[:2], geometry)
    expected = sum_gyration(rows.reshape(2, BLOCK, *rows.shape[1:]), geometry.unit)
    found = device.radii_sums(*key, blocks, GRID[:2], geometry)
    np.testing.assert_array_equal(found, expected)
