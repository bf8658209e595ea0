"""Tables of topologies: packed masks and lists against a judge of one boolean a point; memory."""

import tracemalloc
from itertools import product
from math import prod

import numpy as np
import pytest
from helpers import BUILT_IN, lattice

from percolab.errors import InputError
from percolab.labelers.tiled.tiling import tiling_of
from percolab.lattices.extent import Extent
from percolab.lattices.grid import bonds_in_boxes
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.topology import pack_bits, period_codes

SHAPES = {
    1: ((1,), (33,), (64,)),
    2: ((1, 2), (5, 3), (32, 8), (33, 65), (96, 18), (130, 36), (4, 60)),
    3: ((1, 1, 1), (5, 3, 7), (32, 4, 6), (12, 12, 12), (65, 17, 3)),
    4: ((3, 4, 5, 3), (32, 2, 3, 2)),
    5: ((3, 2, 4, 3, 5),),
}
#: Long bonds of one axis; and of two, with a vacant point, that lead aside by more than a cell.
FILES = {
    "chain": "dimension = 1\nbonds = [{ offset = [1] }, { offset = [-3] }]\n[cell]\nshape = [1]",
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


def judged(item, shape, boundary):
    """Return exists, occupied, and the seam bonds as (number, other end, code), point by point."""
    exists, seams, stride = [], [np.empty((0, 3), np.int64)], -(-prod(shape) // 32) * 32
    for k, bond in enumerate(item.bonds):
        place, there = points_at(item, shape, bond.at)
        ends = [x + step for x, step in zip(place, bond.offset)]
        beyond = [(end < 0) | (end >= n) for end, n in zip(ends, shape)]
        for outside, kind in zip(beyond, boundary):
            there &= ~outside | (kind == "periodic")
        seam = (there & np.any(beyond, axis=0)).ravel()
        other = sum(end % n * prod(shape[:a]) for a, (end, n) in enumerate(zip(ends, shape)))
        periods = np.stack([(end // n).ravel() for end, n in zip(ends, shape)], axis=1)
        number = k * stride + np.flatnonzero(seam)
        columns = number, other.ravel()[seam], period_codes(periods[seam])
        seams.append(np.column_stack(columns))
        exists.append(there.ravel())
    _, vacant = points_at(item, shape, item.vacant)
    return np.array(exists), ~vacant, np.concatenate(seams)


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
        exists, occupied, seams = judged(item, shape, boundary)
        np.testing.assert_array_equal(topology.exists, pack_bits(exists))
        np.testing.assert_array_equal(topology.occupied, pack_bits(occupied.ravel()))
        listed = topology.seam_bonds, topology.seam_ends, topology.seam_codes
        np.testing.assert_array_equal(np.column_stack(listed), seams)
        index = np.arange(occupied.size).reshape(occupied.shape)
        for axis, (pair, kind) in enumerate(zip(topology.end_layers, boundary)):
            depth = min(item.per_size[axis], shape[axis]) * (kind == "open")
            for layer, first in zip(pair, (0, shape[axis] - depth)):
                cut = [slice(None)] * len(shape)
                cut[-1 - axis] = slice(first, first + depth)
                np.testing.assert_array_equal(layer, index[*cut][occupied[*cut]])


@pytest.mark.parametrize("name", ["stacked-triangular", "far", "chain"])
def test_bonds_in_boxes_have_both_ends_in_one(name):
    for item, shape, boundary, topology in topologies(name):
        seams = judged(item, shape, boundary)[2][:, 0]
        k, owner, other = topology.bonds().T
        for edges in ((32, 4, 2, 2), (3, 5, 1, 3)):
            place = np.unravel_index([owner, other], shape[::-1])[::-1]
            boxes = np.array([x // edge for x, edge in zip(place, edges)])
            stays = np.all(boxes[:, 0] == boxes[:, 1], axis=0)
            stays &= ~np.isin(32 * topology.num_words * k + owner, seams)
            expected = np.zeros((topology.num_classes, topology.num_points), bool)
            expected[k[stays], owner[stays]] = True
            found = [bonds_in_boxes(topology, n, edges) for n in range(topology.num_classes)]
            np.testing.assert_array_equal(found, pack_bits(expected))


def traced(make):
    """Return what is made, the bytes that it holds, and those that were taken at the peak."""
    make()
    tracemalloc.start()
    made = make()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, held, peak


@pytest.mark.parametrize("kind", ["open", "periodic"])
@pytest.mark.parametrize(
    ("name", "shape"), [("square", (1000, 600)), ("kagome", (602, 800)), ("fcc", (80, 60, 90))]
)
def test_memory_of_a_topology_is_stated(name, shape, kind):
    boundary = (kind,) * len(shape)
    extent = Extent.of_structure(load_lattice(name), shape, boundary)
    _, held, peak = traced(lambda: load_lattice(name).topology(shape, boundary))
    assert 0.85 * extent.topology_bytes <= held <= extent.topology_bytes + 10_000
    most = extent.topology_bytes + extent.building_bytes
    assert 0.4 * most <= peak <= most + 10_000


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [("square", (2048, 2048), "open"), ("triangular", (2048, 2048), "periodic")]
    + [("cubic", (400, 300, 300), "open"), ("cubic", (320, 320, 320), "periodic")],
)
def test_tables_of_a_cuda_sample_take_at_most_a_byte_a_site(name, shape, kind):
    item = load_lattice(name)

    def loaded():
        topology = item.topology(shape, (kind,) * item.dimension)
        tiling = tiling_of.__wrapped__(topology, 128, 32)
        for part in tiling.crossing_parts():
            part.of_entries(part.run_deltas.astype(np.int32))
        return tiling.ends, topology.end_flags()

    extent = Extent.of_structure(item, shape, (kind,) * item.dimension)
    _, _, peak = traced(loaded)
    # Of seam bonds there are the fewer, the larger the lattice is: 0.08 bytes a site here.
    assert peak <= prod(shape) + 9 * (extent.end_sites + extent.seam_bonds)
