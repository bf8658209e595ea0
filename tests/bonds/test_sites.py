"""Site and site-bond percolation: the uniform numbers of sites and bonds decide, nothing else."""

import numpy as np
import pytest
from helpers import (
    CPU_LABELERS,
    cpu_labeler,
    label_pairs,
    lattice,
    parity_topologies,
    slow_but,
    without_wrapping,
)

from percolab.bonds.model import BOND, Model
from percolab.bonds.models.site_bond import SiteBond
from percolab.bonds.words import GENERATORS, TOP, XORWOW, p_to_threshold, uniform_number
from percolab.coupled import new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import SPANNING

SITE = Model.parse("site")
MODELS = [
    SITE,
    Model.parse("site-bond"),
    Model.parse("site-bond:site=0.8"),
    Model.parse("site-bond:bond=0.7"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)
GRID = np.array([p_to_threshold(p) for p in (0.0, 0.3, 0.55, 0.6, 0.65, 0.9, 1.0)], np.uint64)
SEED = 11


def numbers_of(topology, generator, sample):
    """Return the uniform numbers of all sites and of all bonds (class, site), as Python floats."""
    key = generator, np.uint64(SEED), np.uint64(sample)
    found = np.empty((topology.num_classes + 1, topology.num_points))
    for k in range(topology.num_classes + 1):
        for i in range(topology.num_points):
            word = np.uint32(k * topology.num_words + i // 32)
            found[k, i] = int(uniform_number(*key, word, np.uint32(i % 32))) / TOP
    return found[-1], found[:-1]


def label_by_scipy(topology, model, numbers, p):
    """Return (labels, -1 where vacant; row) by SciPy, from the numbers alone."""
    site_numbers, bond_numbers = numbers
    site_p = p if model.site_varies else (1.0 if model.site_p is None else model.site_p)
    bond_p = p if model.bond_varies else (1.0 if model.bond_p is None else model.bond_p)
    there = unpack_bits(topology.occupied, topology.num_points)
    occupied = there & (site_numbers < site_p)
    k, i, j = topology.bonds().T
    is_open = (bond_numbers[k, i] < bond_p) & occupied[i] & occupied[j]
    labels = label_pairs(i[is_open], j[is_open], topology.num_points)
    sizes = np.sort(np.unique(labels[occupied], return_counts=True)[1])[::-1].tolist()
    labels[~occupied] = -1
    squares = sum(size**2 for size in sizes)
    row = [len(sizes), *(sizes + [0, 0])[:2], squares, sizes.count(1), 0]
    for axis, (first, last) in enumerate(topology.end_layers):
        if (set(labels[first].tolist()) & set(labels[last].tolist())) - {-1}:
            row[SPANNING] |= 1 << axis
    return labels, row


def thick(name):
    """Yield (case, topology) of those shapes whose two end layers share no site."""
    for case, topology in parity_topologies(name):
        if not any(np.intersect1d(*pair).size for pair in topology.end_layers):
            yield case, topology


@every_model
@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
def test_vacant_sites_are_counted_at_every_threshold(generator, model):
    topology, samples = lattice("kagome").topology((9, 11)), np.arange(3, 8, dtype=np.uint64)
    coupling = new_coupling("raster", "cpu", topology, model, openings=True)
    found = topology.num_sites - coupling.grid_rows(generator, SEED, samples, GRID)[..., -1]
    there = unpack_bits(topology.occupied, topology.num_points)
    for sample, counts in zip(samples, found):
        own = numbers_of(topology, generator, sample)[0][there]
        for count, threshold in zip(counts, GRID.tolist()):
            site_p = threshold / TOP if model.site_varies else model.site_p or 1.0
            assert count == (own >= site_p).sum()
    # Items at one threshold are drawn side by side, several samples at once.
    for k, threshold in enumerate(GRID):
        rows = coupling.rows(generator, SEED, samples, np.full_like(samples, threshold))
        assert (topology.num_sites - rows[:, -1]).tolist() == found[:, k].tolist()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param(name, model, marks=[] if n == m == 3 else pytest.mark.slow)
        for n, name in enumerate(("honeycomb", "triangular", "cubic", "kagome"))
        for m, model in enumerate(MODELS)
    ],
    ids=str,
)
def test_rows_and_labels_follow_from_the_numbers(name, model):
    seed = np.uint64(SEED)
    for number, (case, topology) in enumerate(thick(name)):
        generator = number % 2
        numbers = numbers_of(topology, generator, 3)
        expected = [label_by_scipy(topology, model, numbers, t / TOP) for t in GRID.tolist()]
        for labeler_name in CPU_LABELERS:
            labeler = cpu_labeler(labeler_name, topology, model)
            found = labeler.grid_rows(generator, SEED, np.array([3], np.uint64), GRID)[0]
            assert without_wrapping(found) == [row for _, row in expected], (case, labeler_name)
        for threshold, (labels, _) in zip(GRID, expected, strict=True):
            labeler.open_bonds(generator, seed, 3, threshold)
            here = unpack_bits(labeler.occupied, topology.num_points)
            np.testing.assert_array_equal(np.where(here, labeler.label(), -1), labels)


@pytest.mark.parametrize("model", slow_but(MODELS, *MODELS[-1:]), ids=str)
def test_thresholds_are_where_rows_begin_to_span(model):
    topology = lattice("triangular").topology((9, 8))
    samples = np.arange(6, dtype=np.uint64)
    for generator in GENERATORS.values():
        found = {
            name: find_thresholds(
                cpu_labeler(name, topology, model), generator, SEED, samples, (0, TOP)
            )
            for name in ("raster", "four_step")
        }
        np.testing.assert_array_equal(found["raster"], found["four_step"])
        for sample, per_axis in enumerate(found["raster"].tolist()):
            numbers = numbers_of(topology, generator, sample)
            for axis, threshold in enumerate(per_axis):
                if threshold > TOP:
                    _, row = label_by_scipy(topology, model, numbers, 1.0)
                    assert not row[SPANNING] >> axis & 1
                    continue
                # The number that opens last is one less than T.
                before, at = ((threshold + step) / TOP for step in (-(2**11), 2**11))
                assert not label_by_scipy(topology, model, numbers, before)[1][SPANNING] >> axis & 1
                assert label_by_scipy(topology, model, numbers, at)[1][SPANNING] >> axis & 1


def test_all_sites_occupied_is_bond_percolation_and_all_bonds_open_site_percolation():
    topology = lattice("square").topology((12, 9))
    samples = np.arange(3, dtype=np.uint64)

    def rows(model):
        return cpu_labeler("raster", topology, model).grid_rows(XORWOW, 2, samples, GRID)

    np.testing.assert_array_equal(rows(Model.parse("site-bond:site=1.0")), rows(BOND))
    np.testing.assert_array_equal(rows(Model.parse("site-bond:bond=1.0")), rows(SITE))
    assert not np.array_equal(rows(SITE), rows(BOND))


def test_a_layer_that_is_both_ends_is_refused():
    topology = lattice("square").topology((1, 5))
    with pytest.raises(InputError, match="site 0 is in both of axis 0"):
        cpu_labeler("raster", topology, SITE)
    cpu_labeler("raster", topology)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sites", "unknown model 'sites'"),
        ("sight", "unknown model 'sight'; did you mean .site."),
        ("site-bond:", "is written as in site-bond:site=0.9"),
        ("site-bond:p=0.5", "is written as in site-bond:site=0.9"),
        ("site-bond:site=high", "'high' is not a number"),
        ("site:site=0.5", "model site:site=0.5: only site-bond takes a fixed probability"),
        ("site-bond:site=1.5", "site = 1.5, but it must be a number from 0 to 1"),
        ("site-bond:bond=nan", "bond = nan"),
        ("bond:", "written as in bond:x=p,y=0.3"),
        ("bond:x=p,y", "written as in bond:x=p,y=0.3"),
        ("bond:x=0.5,x=p", "x is given twice"),
        ("bond:x=-0.5", "x = -0.5, but it must be a number from 0 to 1"),
        ("bond:x=q", "'q' is not a number"),
        ("ising:q=2", "ising has two spins and no q"),
    ],
)
def test_models_that_are_none_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        Model.parse(text)


def test_one_probability_of_site_bond_percolation_is_left_to_be_p():
    with pytest.raises(InputError, match="give only one of site and bond"):
        SiteBond(0.5, 0.5)


@every_model
def test_a_model_is_read_as_it_is_written(model):
    assert Model.parse(str(model)) == model
