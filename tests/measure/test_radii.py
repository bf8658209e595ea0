"""Radius of gyration of the clusters that end, against places found by walking through them."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from helpers import cpu_labeler, slow_but

from percolab import InputError, load_lattice
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.lattices.geometry import make_geometry
from percolab.lattices.structure import load_structure
from percolab.lattices.topology import unpack_bits
from percolab.measure.radii import PER_BIN, read_spread
from percolab.measure.tallies import num_bins, size_bin

CASES = {
    "square": [((7, 5), ("periodic", "periodic")), ((12, 9), ("open", "open"))],
    "honeycomb": [((8, 6), ("periodic", "open")), ((6, 8), ("periodic", "periodic"))],
    "kagome": [((8, 8), ("periodic", "periodic"))],
    "triangular": [((33, 3), ("periodic", "periodic")), ((40, 20), ("open", "periodic"))],
    "cubic": [((4, 5, 6), ("periodic",) * 3), ((5, 4, 4), ("periodic", "open", "periodic"))],
}
SAMPLES = np.arange(6, dtype=np.uint64)


def walk(labeler, geometry):
    """Return (size, s^2 R^2 in steps) of every cluster that neither wraps nor spans, one a row.

    Every site gets its place from the one it is reached from; R^2 by its definition, the mean
    square distance from the centre of mass, times s^2: s times the sum of |s r - sum r|^2 over s^2.
    """
    top = labeler.topology
    is_open = unpack_bits(labeler.opened.reshape(top.num_classes, -1), top.num_points)
    occupied = unpack_bits(labeler.occupied, top.num_points)
    grid = np.unravel_index(np.arange(top.num_points), top.shape[::-1])[::-1]
    steps = [[] for _ in range(top.num_points)]
    for k, owner, other in top.bonds().tolist():
        if is_open[k, owner]:
            at = [int(axis[owner]) + d for axis, d in zip(grid, top.offsets[k])]
            turns = np.array([x // n for x, n in zip(at, top.shape)])
            way = geometry.places[:, other].astype(int) + turns @ geometry.spans
            way = way - geometry.places[:, owner]
            steps[owner].append((other, way))
            steps[other].append((owner, -way))
    ends = np.zeros(top.num_points, int)
    for site, flag in zip(*top.end_flags()):
        ends[site] |= int(flag)
    found, place = [], {}
    for start in np.flatnonzero(occupied).tolist():
        if start in place:
            continue
        place[start] = np.zeros(len(geometry.places), int)
        queue, sites, wraps = deque([start]), [start], False
        while queue:
            site = queue.popleft()
            for other, way in steps[site]:
                there = place[site] + way
                if other not in place:
                    place[other] = there
                    queue.append(other)
                    sites.append(other)
                wraps = wraps or not np.array_equal(place[other], there)
        reach = int(np.bitwise_or.reduce(ends[sites]))
        spans = any(reach >> 2 * axis & 3 == 3 for axis in range(top.num_axes))
        if not wraps and not spans:
            r = np.array([place[site] for site in sites], object)
            size = len(sites)
            off = size * r - r.sum(axis=0)
            spread = (off**2).sum()
            assert spread % size == 0
            found.append((size, spread // size))
    return found


def test_more_samples_than_are_drawn_at_once_have_their_own_radii():
    lattice = load_lattice("square")
    shape, grid = (4, 4), np.array([p_to_threshold(p) for p in (0.4, 0.5)], np.uint64)
    topology, geometry = lattice.topology(shape, ("open", "open")), make_geometry(lattice, shape)
    labeler = cpu_labeler("raster", topology)
    samples = np.arange(5000, dtype=np.uint64)
    rows = labeler.radii_rows(XORWOW, 4, samples, grid, geometry)
    for first in (0, 2345, 4990):
        part = samples[first : first + 10]
        alone = labeler.radii_rows(XORWOW, 4, part, grid, geometry)
        np.testing.assert_array_equal(rows[first : first + 10], alone)
    assert len(np.unique(rows.reshape(-1, rows.shape[-1]), axis=0)) > 100


@pytest.mark.parametrize("model", [BOND, Model.parse("site")], ids=str)
@pytest.mark.parametrize("name", slow_but(CASES, "square", "honeycomb", "kagome", "cubic"))
def test_gyration_equals_its_definition(name, model):
    for shape, boundary in CASES[name]:
        lattice = load_lattice(name)
        topology, geometry = lattice.topology(shape, boundary), make_geometry(lattice, shape)
        labeler = cpu_labeler("raster", topology, model)
        slower = cpu_labeler("four_step", topology, model)
        centre = {"cubic": 0.25, "triangular": 0.35}.get(name, 0.55)
        grid = np.array([p_to_threshold(centre + d) for d in (-0.15, 0.0, 0.2)], np.uint64)
        rows = labeler.radii_rows(XORWOW, 4, SAMPLES, grid, geometry)
        same = slower.radii_rows(XORWOW, 4, SAMPLES, grid, geometry)
        np.testing.assert_array_equal(rows, same)
        ended = 0
        for sample, threshold in np.ndindex(rows.shape[:2]):
            labeler.open_bonds(XORWOW, 4, SAMPLES[sample], grid[threshold])
            expected = np.zeros((num_bins(topology.num_points), 2), object)
            for size, spread in walk(labeler, geometry):
                expected[size_bin(size)] += (size**2, spread)
                ended += 1
            found = rows[sample, threshold].reshape(-1, PER_BIN)
            assert found[:, 0].tolist() == expected[:, 0].tolist()
            wide = [(int(high) << 64) + int(np.uint64(low)) for _, low, high in found]
            assert wide == expected[:, 1].tolist()
        assert ended > 20


def test_sums_of_large_clusters_do_not_overflow():
    rng = np.random.default_rng(4)
    for _ in range(50):
        size = int(rng.integers(1, 2**31))
        low, high = int(rng.integers(2**62)), int(rng.integers(2**60, 2**62))
        # As large as they may be: the spread is never negative.
        most = int(np.sqrt(float(size * (low + (high << 32)) // 3)) * 0.999)
        place = [int(rng.integers(-min(most, 2**62), min(most, 2**62))) for _ in range(3)]
        sums = np.array([size, low, high, *(x % 2**64 for x in place)], np.uint64)
        found = read_spread(sums, np.uint64(0), 3)
        exact = size * (low + (high << 32)) - sum(x * x for x in place)
        assert int(found[1]) + (int(found[2]) << 64) == exact


def test_places_are_those_of_the_drawn_lattice():
    for name in ("honeycomb", "kagome", "cubic", "three-twelve"):
        lattice = load_lattice(name)
        shape = lattice.shape(6)
        geometry = make_geometry(lattice, shape)
        exact = lattice.positions(shape)
        np.testing.assert_allclose(
            geometry.places.T * 2.0**-geometry.digits, exact, atol=2e-4, rtol=0
        )


def test_a_lattice_without_coordinates_is_refused():
    with pytest.raises(InputError, match="has no coordinates"):
        make_geometry(load_structure("bethe:3"), (10,))
    bare = replace(load_lattice("square"), vectors=())
    with pytest.raises(InputError, match=r"no coordinates; \[drawing\] vectors in its file give"):
        make_geometry(bare, (8, 8))
