"""Joins interfaces in CUDA's simulator and compares them with the CPU's."""

import numpy as np
import pytest
from helpers import lattice, probabilities
from interface_support import assert_same_interface, fake_interface, joined_on_gpu, random_steps
from parts_support import interfaces_of

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS, Launches
from percolab.labelers.four_step_cuda import analysis_kernel
from percolab.labelers.tiled.borders import NODES, TILES_PER_BLOCK, gather_kernel
from percolab.labelers.tiled.records import Nodes
from percolab.lattices.topology import period_codes
from percolab.measure.radii_cuda import flatten_kernel
from percolab.measure.tallies import num_bins
from percolab.parts.interface import Face, close, join, make_row, no_face
from percolab.parts.join_cuda import InterfacesCuda, to_device, to_host
from percolab.parts.join_kernels import GATHERED, TOTALS, gather_clusters_kernel
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import thicknesses

#: Shapes and boundaries of a few dozen sites, which meet the edges of blocks.
SHAPES = {
    "square": (((5, 8), "oo"), ((5, 6), "pp"), ((4, 7), "po"), ((3, 8), "op")),
    "cubic": (((3, 2, 5), "ooo"), ((2, 2, 6), "ppp"), ((3, 2, 4), "pop")),
    "kagome": (((6, 6), "pp"), ((5, 7), "oo")),
}
KINDS = {"o": "open", "p": "periodic"}


def compare_lattice(name):
    """Compare interfaces of small lattices, joined in many orders."""
    rng, gpu = np.random.default_rng(1), InterfacesCuda()
    for shape, kinds in SHAPES[name]:
        boundary = tuple(KINDS[kind] for kind in kinds)
        for number, p in enumerate(probabilities(name)):
            model = Model.parse("site") if number == 3 else BOND
            whole = Whole(lattice(name), shape, boundary, model)
            draw = SampleKey(number % 2, 5, int(rng.integers(1000)), p_to_threshold(p))
            layers = thicknesses(whole, int(rng.integers(2, 5)))
            interfaces = interfaces_of(whole, draw, layers, tally=number % 2 == 0)
            chain = bool(number % 2)
            steps = [0] * (len(interfaces) - 1) if chain else random_steps(len(interfaces), rng)
            own = InterfacesCuda() if chain else gpu
            joined_on_gpu(own, interfaces, steps, whole, keep=chain)
            if chain:
                # Arrays of nothing have one element.
                assert own.num_bytes <= InterfacesCuda.memory(whole).device + 100


def compare_sizes():
    """Compare sums of sizes far beyond 32 bits, of many clusters, with all digits in use."""
    gpu, rng = InterfacesCuda(), np.random.default_rng(2)
    sizes = [2**31 - 1, 2**31, 2**32 - 1, 2**32 + 1, 2**54, 2**54 - 3, 63, 64, 1, 1]
    for bins in (0, num_bins(2**55)):
        for given in (sizes, rng.integers(1, 2**54, 40).tolist()):
            entries = np.arange(len(given))
            low = fake_interface(0, given, [], entries, bins=bins)
            high = fake_interface(1, [0] * len(given), entries, [], bins=bins)
            expected, found = join(low, high), gpu.join(to_device(low), to_device(high))
            assert_same_interface(expected, to_host(found))
            assert found.sums.clusters.sum_squares == sum(size**2 for size in given) > 2**100
            if bins:
                assert found.sums.fourths == sum(size**4 for size in given if size > 63) > 2**200
                assert sum(found.sums.bins) == len(given)
    # Many clusters, of which those that a face names stay, are added up on one root.
    low = fake_interface(0, [2**40] * 50, [], np.arange(50))
    high = fake_interface(1, [3, 5], [0] * 49 + [1], [1, 0, 1])
    found = to_host(gpu.join(to_device(low), to_device(high)))
    assert_same_interface(join(low, high), found)
    assert sorted(found.sizes.tolist()) == [2**40 + 5, 49 * 2**40 + 3]


def compare_chains():
    """Compare clusters that become one, link by link, so that paths are as long as can be."""
    gpu = InterfacesCuda()
    for periodic in (False, True):
        for order in (1, -1):
            links = np.arange(60)
            codes = period_codes(np.stack([links % 5 - 2, links % 3 - 1], axis=1))
            faces = np.repeat(links, 2)[1:-1][::order], np.repeat(links[:-1], 2)[::order]
            own = [np.repeat(codes, 2)[1:-1], np.repeat(codes[:-1] * 3, 2)] if periodic else []
            low = fake_interface(0, [1] * 60, [0, 59, 7], faces[0], codes=own[:1] and [
                codes[:3], own[0]])  # fmt: skip
            high = fake_interface(1, [1] * 59, faces[1], [58, 0], codes=own[1:] and [
                own[1], codes[:2]])  # fmt: skip
            expected, found = join(low, high), to_host(gpu.join(to_device(low), to_device(high)))
            assert_same_interface(expected, found)
            assert found.sizes.tolist() == [119]
            assert not expected.sums.loop


def long_paths(count, rng):
    """Return parents along long paths to a few roots, and the roots."""
    nodes, roots = np.arange(count), int(rng.integers(1, 4))
    parents = np.where(nodes < roots, nodes, np.maximum(nodes - rng.integers(1, 4, count), 0))
    found = parents.copy()
    while (found != parents[found]).any():
        found = parents[found]
    return parents, found


def check_gathering():
    """Check that every cluster has its root as its parent, whoever passes by meanwhile."""
    launches, rng = Launches(), np.random.default_rng(4)
    for _ in range(8):
        count = 100
        parents, roots = long_paths(count, rng)
        expected = np.bincount(roots, np.arange(1, count + 1))
        split = np.uint64(7)
        forest = cuda.to_device(parents.astype(np.uint64))
        sizes = cuda.to_device(np.arange(1, count + 1, dtype=np.uint64))
        flags = cuda.to_device(np.ones(count, np.uint32))
        totals = cuda.to_device(np.zeros(TOTALS, np.uint64))
        grid = -(-count // (GATHERED * THREADS)), 1
        given = forest, np.uint64(count), split, np.uint64(0), sizes, flags, totals
        launches.blocks(gather_clusters_kernel, grid, THREADS, *given)
        assert (forest.copy_to_host() & np.uint64(127) == roots).all(), "a parent that is no root"
        assert sizes.copy_to_host()[: expected.size].tolist() == expected.tolist()


def check_flattening():
    """Check the same of nodes of tiles, of sites with their periods, and of labels."""
    launches, rng = Launches(), np.random.default_rng(5)
    room, blocks = 9, 8
    count = room * blocks
    item_of = np.uint32(count)
    for with_forest in (False, True) * 3:
        parents, roots = long_paths(count, rng)
        # Places along a line: the code of a node is how far its parent is.
        places = rng.integers(-50, 50, count)
        codes = np.where(parents == np.arange(count), 0, places - places[parents])
        high = codes.astype(np.int32).view(np.uint32).astype(np.uint64) << np.uint64(32)
        packed = high | parents.astype(np.uint64)
        # Nearly every node lowers its root's origin, and none has another's flag.
        ends = np.zeros(count, np.uint32)
        ends[rng.permutation(count)[:32]] = np.uint32(1) << np.arange(32, dtype=np.uint32)
        origins = np.arange(count, dtype=np.uint32)[::-1].copy()
        given = parents if not with_forest else np.arange(count)
        ones = np.ones(count, np.uint32)
        arrays = given.astype(np.uint32), ones, ends, origins
        nodes = Nodes(*map(cuda.to_device, arrays), np.uint32(room))
        interior = np.zeros((blocks, NODES + 1), np.uint32)
        interior[:, NODES] = room
        forest = cuda.to_device(packed if with_forest else np.zeros(1, np.uint64))
        sizes = cuda.to_device(interior), np.int32(blocks), forest, np.uint32(1)
        grid = -(-blocks // TILES_PER_BLOCK)
        launches.blocks(gather_kernel, grid, THREADS, nodes, *sizes)
        assert (nodes.parents.copy_to_host() == roots).all(), "a parent that is no root"
        assert (nodes.sizes.copy_to_host() == np.bincount(roots, minlength=count)).all()
        for root in set(roots.tolist()):
            own = roots == root
            assert nodes.ends.copy_to_host()[root] == np.bitwise_or.reduce(ends[own])
            assert nodes.origins.copy_to_host()[root] == origins[own].min()
        forest, reach = cuda.to_device(packed), cuda.to_device(ones)
        sums = cuda.to_device(np.ones(count, np.uint64))
        launches.each(flatten_kernel, count, 1, forest, item_of, reach, sums, np.uint64(count))
        found = forest.copy_to_host()
        assert (found & np.uint64(0xFFFFFFFF) == roots).all(), "a parent that is no root"
        away = (found >> np.uint64(32)).astype(np.uint32).view(np.int32)
        assert (away == places - places[roots]).all()
        labels = cuda.to_device(parents.astype(np.uint32))
        launches.each(analysis_kernel, count, 1, labels, item_of)
        assert (labels.copy_to_host() == roots).all(), "a label that is no root"


def compare_crowds():
    """Compare a few clusters that many bonds join in any order, at places that do not wind."""
    gpu, rng = InterfacesCuda(), np.random.default_rng(3)
    for case in range(12):
        clusters, bonds = int(rng.integers(2, 24)), int(rng.integers(20, 70))
        places = rng.integers(-40, 40, (2, clusters, 2))
        ends = rng.integers(clusters, size=(2, bonds))
        stay = rng.permutation(clusters), rng.permutation(clusters)
        # The clusters of the upper interface are further up: a bond leads over the difference.
        codes = [period_codes(places[side, ends[side]]) for side in range(2)]
        beside = [period_codes(places[side, stay[side]]) for side in range(2)]
        low = fake_interface(0, np.ones(clusters), stay[0], ends[0], codes=[beside[0], codes[0]])
        high = fake_interface(1, np.ones(clusters), ends[1], stay[1], codes=[codes[1], beside[1]])
        expected, found = join(low, high), to_host(gpu.join(to_device(low), to_device(high)))
        assert_same_interface(expected, found)
        assert not expected.sums.loop, case


def compare_periods():
    """Compare many periods, of one axis next to others, up to those that are too many."""
    gpu = InterfacesCuda()
    for axes in (1, 2, 3, 5):
        for axis in range(axes):
            for periods, fits in ((1023, True), (-1023, True), (1024, False), (1900, False),
                                  (-1500, False)):  # fmt: skip
                vector = np.zeros((2, axes), np.int64)
                vector[0, axis], vector[1, axis] = -(periods // 2), periods - periods // 2
                low_codes, high_codes = period_codes(vector)[:, None]
                low = fake_interface(0, [1], [], [0], axes=axes, codes=[[], low_codes])
                high = fake_interface(1, [1, 1], [0], [0], axes=axes, codes=[high_codes, [0]])
                expected = join(low, high)
                if not fits:
                    with pytest.raises(InputError, match="wind more than 1023 times"):
                        gpu.join(to_device(low), to_device(high))
                    continue
                found = to_host(gpu.join(to_device(low), to_device(high)))
                # The reference is one of the two clusters.
                away = abs(int(found.high.codes[0] - expected.high.codes[0]))
                assert away in (0, abs(int(period_codes(vector[1:] - vector[:1])[0])))


def compare_empty():
    """Compare interfaces without an open bond, and one that is closed."""
    gpu = InterfacesCuda()
    for codes in (None, [[], []]):
        low = fake_interface(0, [], [], [], codes=codes)
        high = fake_interface(1, [], [], [], codes=codes)
        assert_same_interface(join(low, high), to_host(gpu.join(to_device(low), to_device(high))))
    empty = join(join(low, high), fake_interface(2, [], [], []))
    assert (
        make_row(gpu.close(to_device(empty))).sum_squares == make_row(close(empty)).sum_squares == 0
    )
    assert no_face().num_bonds == Face(np.empty(0, np.uint32), np.empty(0, np.int64)).num_bonds


def compare_made():
    """Compare interfaces that are made up, and check what follows parents to their roots."""
    compare_sizes()
    compare_chains()
    check_gathering()
    check_flattening()
    compare_crowds()
    compare_periods()
    compare_empty()
