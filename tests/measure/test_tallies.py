"""The tally of a sample against its labels: counts of every size, exact sums of s^3 and s^4."""

import numpy as np
import pytest
from helpers import cpu_labeler

from percolab import InputError, load_lattice, sweep
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import BINS, CLUSTERS, CUBES, FOURTHS
from percolab.measure.tallies import (
    EXACT,
    bin_edges,
    num_bins,
    product,
    size_bin,
    sum_tallies,
    tally_cluster,
)

CASES = {
    "honeycomb": ((70, 40), "open", 0.65),
    "square": ((64, 64), "periodic", 0.5),
    "kagome": ((40, 40), "open", 0.52),
    "cubic": ((16, 12, 10), "periodic", 0.25),
}
SAMPLES = np.arange(3, dtype=np.uint64)


def wide(row: np.ndarray, at: int) -> int:
    """Return the 128 bits of a pair of columns."""
    return int(np.uint64(row[at])) + (int(np.uint64(row[at + 1])) << 64)


def sizes_of(labeler, sample: int, threshold: int) -> list[int]:
    """Return the sizes of a sample's clusters, counted from the labels of the reference."""
    labeler.open_bonds(XORWOW, 1, np.uint64(sample), np.uint64(threshold))
    occupied = unpack_bits(labeler.occupied, labeler.topology.num_points)
    return [int(size) for size in np.bincount(labeler.label()[occupied]) if size]


@pytest.mark.parametrize("model", [BOND, Model.parse("site")], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_tallies_of_grids_follow_from_labels(name, model):
    shape, boundary, centre = CASES[name]
    topology = load_lattice(name).topology(shape, (boundary,) * len(shape))
    centre += 0.06 if model.draws_sites else 0.0
    grid = np.array([p_to_threshold(centre + step) for step in (-0.03, 0.0, 0.01, 0.03)], np.uint64)
    reference = cpu_labeler("reference", topology, model)
    expected_sizes = [[sizes_of(reference, sample, limit) for limit in grid] for sample in SAMPLES]
    for labeler in ("raster", "four_step"):
        measured = cpu_labeler(labeler, topology, model, tally=True)
        rows = measured.grid_rows(XORWOW, 1, SAMPLES, grid)
        for sample, threshold in np.ndindex(rows.shape[:2]):
            row, sizes = rows[sample, threshold], expected_sizes[sample][threshold]
            counts, _ = np.histogram(sizes, bin_edges(topology.num_points))
            assert row[BINS:].tolist() == counts.tolist()
            assert row[CLUSTERS] == len(sizes)
            large = [size for size in sizes if size >= EXACT]
            assert wide(row, CUBES) == sum(size**3 for size in large)
            assert wide(row, FOURTHS) == sum(size**4 for size in large)
        sums = sum_tallies(rows[None])["powers"][0]
        sizes = list(zip(*expected_sizes, strict=True))
        expected = [
            [
                sum(s**3 for one in point for s in one),
                sum(s**4 for one in point for s in one),
                sum(max(one, default=0) ** 3 for one in point),
                sum(max(one, default=0) ** 4 for one in point),
            ]
            for point in sizes
        ]
        np.testing.assert_allclose(sums, np.array(expected, float), rtol=1e-14)


def test_bins_hold_what_their_edges_say():
    edges = bin_edges(2**31)
    assert edges.size == num_bins(2**31) + 1
    for size in (*range(1, 200), *(2**n + d for n in range(8, 31) for d in (-1, 0, 1)), 2**31):
        assert edges[size_bin(size)] <= size < edges[size_bin(size) + 1]
        assert num_bins(size) == size_bin(size) + 1


def test_fourth_powers_of_the_largest_cluster_do_not_overflow():
    x, y = (2**31) ** 2, (2**31 - 1) ** 2
    low, high = product(np.uint64(x), np.uint64(y))
    assert int(low) + (int(high) << 64) == x * y


def test_a_study_without_a_tally_says_so():
    results = sweep("square", L=[4], p=[0.5], samples=10, device="cpu")
    with pytest.raises(InputError, match="size_counts of L = 4 is not in this file"):
        next(iter(results.tasks.values())).extra("size_counts")


def test_the_tally_of_huge_clusters_carries_and_forgets_them_again():
    rng, row = np.random.default_rng(7), np.zeros(BINS + num_bins(2**31), np.int64)
    sizes = [2**30, *(int(size) for size in rng.integers(2**15, 2**24, 90))]
    for size in sizes:
        tally_cluster(row, np.int64(size), np.int64(1))
    assert wide(row, CUBES) == sum(size**3 for size in sizes)
    assert wide(row, FOURTHS) == sum(size**4 for size in sizes)
    powers = sum_tallies(row[None, None, None])["powers"][0, 0]
    assert powers[1] == pytest.approx(float(sum(size**4 for size in sizes)), rel=1e-15)
    for size in sizes[:-1]:
        tally_cluster(row, np.int64(size), np.int64(-1))
    assert wide(row, CUBES) == sizes[-1] ** 3
    assert wide(row, FOURTHS) == sizes[-1] ** 4
    assert row[BINS:].sum() == 1
