"""Tables of topologies: packed masks and lists against one boolean a point; memory."""

import tracemalloc
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from helpers import BUILT_IN, lattice, slow

from percolab.bonds.model import BOND
from percolab.errors import InputError
from percolab.kernels.memory import Needs
from percolab.kinds.memory import estimate_memory
from percolab.labelers.tiled.tiling import make_tiling
from percolab.lattices import grid, grid_loops
from percolab.lattices import topology as topology_room
from percolab.lattices.extent import Extent
from percolab.lattices.grid import bonds_in_boxes
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.topology import pack_bits, period_codes
from percolab.tasks.study import Task

SHAPES = {
    1: ((1,), (33,), (64,)),
    2: ((1, 2), (5, 3), (32, 8), (33, 65), (96, 18), (130, 36), (4, 60)),
    3: ((1, 1, 1), (5, 3, 7), (32, 4, 6), (12, 12, 12), (65, 17, 3)),
    4: ((3, 4, 5, 3), (32, 2, 3, 2)),
    5: ((3, 2, 4, 3, 5),),
}
#: The columns of an empty list of periodic bonds.
NONE = np.empty((3, 0), np.int64)
#: Long bonds of one axis; of two, which lead aside by several periods of a narrow torus; and, with
#: a vacant point, by more than a cell.
FILES = {
    "chain": "dimension = 1\nbonds = [{ offset = [1] }, { offset = [-3] }]\n[cell]\nshape = [1]",
    "aside": """dimension = 2
bonds = [{ offset = [1, 0] }, { offset = [-5, 1] }]
[cell]
shape = [1, 1]""",
    "far": """dimension = 2
bonds = [{ offset = [1, 0], at = [[0, 0], [1, 0], [0, 2], [1, 2]] },
    { offset = [-3, 2], at = [[0, 0], [1, 1]] }, { offset = [0, 2], at = [[1, 1], [0, 0]] },
    { offset = [1, 1], at = [[0, 2], [1, 2]] }]
[cell]
shape = [2, 3]
vacant = [[0, 1]]""",
}


def structure(name):
    text = FILES.get(name)
    return lattice_from_text(f'name = "{name}"\n{text}', where=name) if text else lattice(name)


def points_at(item, shape, points):
    """Return which grid points are copies of cell points, booleans with the last axis first."""
    place, cell = np.indices(shape[::-1])[::-1], np.zeros(item.cell, bool)
    for point in points:
        cell[point] = True
    return place, cell[*(x % n for x, n in zip(place, item.cell))]


def list_by_points(item, shape, boundary):
    """Return exists, occupied and the periodic bonds (number, other end, code), point by point."""
    exists, bonds, stride = [], [np.empty((0, 3), np.int64)], -(-prod(shape) // 32) * 32
    for k, bond in enumerate(item.bonds):
        place, there = points_at(item, shape, bond.at)
        ends = [x + step for x, step in zip(place, bond.offset)]
        beyond = [(end < 0) | (end >= n) for end, n in zip(ends, shape)]
        for outside, kind in zip(beyond, boundary):
            there &= ~outside | (kind == "periodic")
        periodic = (there & np.any(beyond, axis=0)).ravel()
        other = sum(end % n * prod(shape[:a]) for a, (end, n) in enumerate(zip(ends, shape)))
        periods = np.stack([(end // n).ravel() for end, n in zip(ends, shape)], axis=1)
        number = k * stride + np.flatnonzero(periodic)
        columns = number, other.ravel()[periodic], period_codes(periods[periodic])
        bonds.append(np.column_stack(columns))
        exists.append(there.ravel())
    _, vacant = points_at(item, shape, item.vacant)
    return np.array(exists), ~vacant, np.concatenate(bonds)


def topologies(name):
    item = structure(name)
    for shape in SHAPES[item.dimension]:
        for boundary in product(("open", "periodic"), repeat=item.dimension):
            try:
                yield item, shape, boundary, item.topology(shape, boundary)
            except InputError:
                assert any(n % cell for n, cell in zip(shape, item.cell))


@pytest.mark.parametrize("name", [*BUILT_IN, *FILES])
def test_masks_and_lists_are_those_of_every_point(name):
    for item, shape, boundary, topology in topologies(name):
        exists, occupied, periodic = list_by_points(item, shape, boundary)
        np.testing.assert_array_equal(topology.exists, pack_bits(exists))
        np.testing.assert_array_equal(topology.occupied, pack_bits(occupied.ravel()))
        listed = topology.periodic_bonds, topology.periodic_ends, topology.periodic_codes
        np.testing.assert_array_equal(np.column_stack(listed), periodic)
        index = np.arange(occupied.size).reshape(occupied.shape)
        for axis, (pair, kind) in enumerate(zip(topology.end_layers, boundary)):
            depth = min(item.per_size[axis], shape[axis]) * (kind == "open")
            for layer, first in zip(pair, (0, shape[axis] - depth)):
                cut = [slice(None)] * len(shape)
                cut[-1 - axis] = slice(first, first + depth)
                np.testing.assert_array_equal(layer, index[*cut][occupied[*cut]])


@pytest.mark.parametrize("name", ["maple-leaf", slow("stacked-triangular"), "far", "chain"])
def test_masks_and_lists_are_equal_made_in_any_parts(name, monkeypatch):
    cut = 0
    for _, _, _, topology in topologies(name):
        whole = topology.exists, topology.periodic_words, topology.periodic_bonds
        for words in (1, 5):
            monkeypatch.setattr(grid, "_PART_WORDS", words)
            again = replace(topology)
            cut += len(again.parts) > 1
            np.testing.assert_array_equal(again.exists, whole[0])
            np.testing.assert_array_equal(again.periodic_bonds, whole[2])
            if whole[1] is not None:
                np.testing.assert_array_equal(again.periodic_words, whole[1])
        monkeypatch.undo()
    assert cut > 0


@pytest.mark.parametrize(
    "name", ["triangular", slow("stacked-triangular"), slow("hypercubic_4d"), "far"]
)
def test_lists_of_periodic_bonds_are_equal_in_pieces_of_any_size(name, monkeypatch):
    cut = 0
    for item, shape, boundary, topology in topologies(name):
        _, _, periodic = list_by_points(item, shape, boundary)
        stride = 32 * topology.num_words
        for most, words in ((32, 2**17), (40, 1), (1000, 5)):
            monkeypatch.setattr(topology_room, "periodic_piece_length", lambda _, most=most: most)
            monkeypatch.setattr(grid, "_PART_WORDS", words)
            for k in range(topology.num_classes):
                pieces = list(topology.periodic_list_pieces(k))
                cut += len(pieces) > 1
                assert all(0 < owners.size <= most for owners, _, _ in pieces)
                words_of = [set(owners >> 5) for owners, _, _ in pieces]
                assert all(map(set.isdisjoint, words_of, words_of[1:]))
                listed = np.column_stack([np.concatenate(each) for each in zip(*pieces)] or NONE)
                expected = periodic[periodic[:, 0] // stride == k] - (k * stride, 0, 0)
                np.testing.assert_array_equal(listed, expected)
                whole = topology.list_periodic_bonds(k)
                assert [each.dtype for each in whole] == [np.int32, np.int32, np.int64]
                np.testing.assert_array_equal(np.column_stack(whole), expected)
        monkeypatch.undo()
    assert cut > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["open", "periodic"])
@pytest.mark.parametrize(
    ("name", "shape"), [("square", (96, 64)), ("cubic", (1, 96, 64)), ("bcc", (4, 4, 64))]
)
def test_many_parts_are_as_much_work_as_one(name, shape, kind, monkeypatch):
    """Rows, and layers of all axes, once for every part made tables take forty times as long."""
    looked_at = []

    def count(owner, function, size):
        made = getattr(owner, function)

        def counted(*given):
            looked_at.append(size(*given))
            return made(*given)

        monkeypatch.setattr(owner, function, counted)

    # Rows, the first axis' and others, and which layers there are along all axes.
    count(grid, "_repeated", lambda cells, there: cells.size * there.size)
    count(grid_loops, "put_rows", lambda words, rows, first, bits, there: there.size)
    count(grid.Grid, "inside_layers", lambda *given: sum(shape))
    count(grid.Grid, "owner_layers", lambda *given: sum(shape))
    work = []
    for words in (2**17, 1):
        monkeypatch.setattr(grid, "_PART_WORDS", words)
        topology = load_lattice(name).topology(shape, (kind,) * len(shape))
        looked_at.clear()
        assert topology.exists.any()
        assert (topology.periodic_words is None) == (kind == "open")
        assert make_tiling(topology, 1, 1).num_crossing > 0
        work.append(sum(looked_at))
    assert len(topology.parts) >= 32
    assert work[1] <= work[0]


@pytest.mark.parametrize("name", ["stacked-triangular", "far", "chain"])
def test_bonds_in_boxes_have_both_ends_in_one(name):
    for item, shape, boundary, topology in topologies(name):
        periodic = list_by_points(item, shape, boundary)[2][:, 0]
        k, owner, other = topology.bonds().T
        for edges in ((32, 4, 2, 2), (3, 5, 1, 3)):
            place = np.unravel_index([owner, other], shape[::-1])[::-1]
            boxes = np.array([x // edge for x, edge in zip(place, edges)])
            stays = np.all(boxes[:, 0] == boxes[:, 1], axis=0)
            stays &= ~np.isin(32 * topology.num_words * k + owner, periodic)
            expected = np.zeros((topology.num_classes, topology.num_points), bool)
            expected[k[stays], owner[stays]] = True
            found = [bonds_in_boxes(topology, n, edges) for n in range(topology.num_classes)]
            np.testing.assert_array_equal(found, pack_bits(expected))


def traced(make):
    """Return what is made, the bytes that it holds, and those that were taken at the peak."""
    make()
    tracemalloc.start()
    made = make()
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, used, peak


@pytest.mark.parametrize("kind", ["open", "periodic"])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("square", (1000, 600)), ("kagome", (602, 800)), ("fcc", (80, 60, 90))]
    + [("square", (100_003, 24)), ("stacked-triangular", (4, 10_000, 6))],
)
def test_memory_of_a_topology_is_stated(name, shape, kind):
    boundary = (kind,) * len(shape)
    extent = Extent.of_structure(load_lattice(name), shape, boundary)

    def made(*requested):
        topology = load_lattice(name).topology(shape, boundary)
        return topology, [getattr(topology, each) for each in requested]

    for stated, requested in (
        (extent.base_bytes, ()),
        (extent.topology_bytes, ("exists", "periodic_bonds")),
    ):
        _, used, peak = traced(lambda requested=requested: made(*requested))
        assert 0.85 * stated <= used <= stated + 10_000
        most = stated + extent.building_bytes
        assert 0.4 * most <= peak <= most + 10_000 or not requested


class OnDevice:
    """An array of a device, of which the host has nothing."""

    def __init__(self, shape, dtype, nothing=None):
        self.array = np.broadcast_to(np.zeros(1, dtype), shape)

    def __getattr__(self, name):
        return getattr(self.array, name)

    def __getitem__(self, key):
        return OnDevice(self.array[key].shape, self.array.dtype)

    def copy_to_device(self, values):
        assert (values.shape, values.dtype) == (self.array.shape, self.array.dtype)


def set_up(name, shape, kind, monkeypatch):
    """Return the bytes of the host that a sample on CUDA takes until its tables are copied."""
    cuda = pytest.importorskip("numba.cuda")
    pytest.importorskip("numba_cuda")
    from percolab.bonds.batch_cuda import CudaBatch
    from percolab.labelers.tiled.labeler import Tiled

    monkeypatch.setattr(cuda, "device_array", OnDevice)
    monkeypatch.setattr(cuda, "pinned_array", np.empty)
    monkeypatch.setattr(cuda, "stream", lambda: None)
    monkeypatch.setattr(cuda, "to_device", lambda host: OnDevice(host.shape, host.dtype))

    def loaded():
        make_tiling.cache_clear()
        topology = load_lattice(name).topology(shape, (kind,) * len(shape))
        return Tiled(CudaBatch(topology, BOND, 1))

    _, _, peak = traced(loaded)
    make_tiling.cache_clear()
    return peak


@pytest.mark.parametrize(
    ("name", "size", "kind"),
    [("square", 1500, "open"), ("kagome", 400, "periodic"), ("cubic", 96, "periodic")]
    + [("fcc", 60, "open"), ("fcc", 60, "periodic"), ("fcc", 96, "periodic")]
    + [("cubic", 40, "periodic"), ("triangular", 400, "periodic")],
)
def test_memory_of_a_cuda_sample_is_stated(name, size, kind, monkeypatch):
    item = load_lattice(name)
    peak = set_up(name, item.shape(size), kind, monkeypatch)
    task = Task(structure=item, size=size, boundary=(kind,) * item.dimension, p=(0.5,))
    assert peak <= estimate_memory(task, "tiled", "cuda").host + 20_000 <= 2.6 * peak


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [("square", (2048, 2048), "open"), ("triangular", (2048, 2048), "periodic")]
    + [
        ("cubic", (256,) * 3, "periodic"),
        ("fcc", (256,) * 3, "open"),
        ("cubic", (100,) * 3, "open"),
    ]
    + [
        slow(name, (256,) * 3, kind)
        for name, kind in product(("bcc", "fcc"), ("open", "periodic"))
        if (name, kind) != ("fcc", "open")
    ],
)
def test_tables_of_a_cuda_sample_take_less_than_a_byte_a_site(name, shape, kind, monkeypatch):
    peak = set_up(name, shape, kind, monkeypatch)
    assert peak < 0.8 * prod(shape)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("cubic", (100,) * 3), ("fcc", (60,) * 3), ("triangular", (400, 400))]
    + [("cubic", (600, 600, 8)), slow("fcc", (8, 600, 600)), slow("bcc", (2000, 500, 2))]
    + [("square", (200_000, 8)), ("square", (8, 200_000)), ("cubic", (40,) * 3)],
)
def test_tables_of_small_and_thin_tori_take_a_byte_a_site(name, shape, monkeypatch):
    """Parts and pieces are not made smaller than what takes 0.11 MB: 1.8 bytes of cubic 40^3."""
    peak = set_up(name, shape, "periodic", monkeypatch)
    assert peak <= max(prod(shape), 130_000)


@pytest.mark.parametrize("shape", [(300, 300, 8), slow((8, 300, 300)), slow((2000, 500, 2))])
def test_memory_of_a_thin_cuda_sample_is_stated(shape, monkeypatch):
    pytest.importorskip("numba_cuda")
    from percolab.bonds.batch_cuda import CudaBatch
    from percolab.labelers.tiled.labeler import Tiled

    peak = set_up("bcc", shape, "periodic", monkeypatch)
    extent = Extent.of_structure(load_lattice("bcc"), shape, ("periodic",) * 3)
    one = CudaBatch.memory(extent, BOND, 1).plus(Tiled.memory(extent, Needs(), 1))
    stated = extent.base_bytes + max(extent.building_bytes, one.host)
    assert peak <= stated + 20_000 <= 1.5 * peak
