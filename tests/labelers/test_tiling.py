"""Cutting a lattice into tiles, against its list of bonds."""

from itertools import islice, product
from math import prod

import numpy as np
import pytest
from helpers import CHAIN, LATTICES, lattice, slow, slow_but

from percolab.labelers import LABELERS, fitting_labeler
from percolab.labelers.tiled.labeler import refusal
from percolab.labelers.tiled.one_tile import LANES, TILE_WORDS
from percolab.labelers.tiled.tiling import make_tiling, tiling_bounds, why_not_tiled
from percolab.lattices import grid
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import lattice_from_text
from percolab.lattices.topology import unpack_bits, write_parts

every_name = pytest.mark.parametrize(
    "name", slow_but([*LATTICES, "hypercubic-5d"], "square", "kagome", "cubic")
)
SHAPES = {
    2: ((2, 2), (70, 6), (64, 66), (130, 34)),
    3: ((2, 4, 2), (34, 6, 10), (66, 18, 4), (10, 12, 20)),
    4: ((2, 2, 2, 2), (34, 6, 3, 4), (7, 6, 9, 5)),
    5: ((3, 2, 3, 2, 3), (10, 4, 6, 3, 5)),
}
#: Words of a tile and of a strip: the simulator's, and the GPU's.
SIZES = ((8, 4), (128, 32))


def cases(name):
    """Yield (topology, tiling) over shapes, boundaries and sizes of tiles."""
    item = lattice(name)
    for shape in SHAPES[item.dimension]:
        every = product(("open", "periodic"), repeat=item.dimension)
        for boundary in islice(every, 0, None, 5 if item.dimension > 3 else 1):
            topology = item.topology(shape, boundary)
            for words, strip in SIZES:
                yield topology, make_tiling(topology, words, strip), words, strip


def inner_of(tiling, k):
    """Return the bonds of a class with both ends in one tile, uint32 (num_words,)."""
    found = np.zeros(tiling.topology.num_words, np.uint32)
    write_parts(tiling.inner_parts(k), found)
    return found


def inner_words(tiling):
    """Return the bonds with both ends in one tile, uint32 like ``Topology.exists``."""
    return np.stack([inner_of(tiling, k) for k in range(tiling.topology.num_classes)])


def crossing_bonds(tiling):
    """Return the bond word, owner, other end and code of every bond between tiles, int64 (n, 4)."""
    crossing = tiling.crossing
    entry, bit = np.nonzero(unpack_bits(crossing.masks[:, None], 32))
    owner = 32 * crossing.owners[entry].astype(np.int64) + bit
    deltas, codes = map(crossing.of_entries, (crossing.run_deltas, crossing.run_codes))
    return np.column_stack([crossing.words[entry], owner, owner + deltas[entry], codes[entry]])


def tile_of(sites, tiling):
    """Return the tile of every site, as one number an axis."""
    wide, *others = tiling.tile
    places = np.unravel_index(sites, tiling.shape, order="F")
    return np.stack([x // n for x, n in zip(places, (32 * wide, *others))], axis=-1)


@pytest.mark.parametrize("name", ["honeycomb", slow("fcc")])
def test_bonds_are_equal_made_in_any_parts(name, monkeypatch):
    cut = 0
    for topology, tiling, _, _ in cases(name):
        whole, inner = crossing_bonds(tiling), inner_words(tiling)
        # The device gets the bonds inside tiles part by part, and those between as they come.
        monkeypatch.setattr(grid, "_PART_WORDS", 1)
        cut += len(topology.parts) > 1
        np.testing.assert_array_equal(crossing_bonds(tiling), whole)
        np.testing.assert_array_equal(inner_words(tiling), inner)
        monkeypatch.undo()
    assert cut > 0


@every_name
def test_every_bond_is_inside_a_tile_or_between_two(name):
    for topology, tiling, _, _ in cases(name):
        k, owner, other = topology.bonds().T
        inner = unpack_bits(inner_words(tiling), topology.num_points)[k, owner]
        direct = other - owner == topology.deltas[k]
        same = np.all(tile_of(owner, tiling) == tile_of(other, tiling), axis=1)
        # A bond across a periodic boundary is never inside, even if its ends lie in one tile.
        periodic = (
            np.zeros_like(inner)
            if topology.periodic_words is None
            else unpack_bits(topology.periodic_words, topology.num_points)[k, owner]
        )
        np.testing.assert_array_equal(inner, same & ~periodic)
        assert direct[inner].all()
        code = np.zeros_like(owner)
        code[periodic] = topology.periodic_codes
        word = k * topology.num_words + owner // 32
        expected = np.column_stack([word, owner, other, code])[~inner]
        found = crossing_bonds(tiling)
        assert len(found) == tiling.crossing.num_bonds
        np.testing.assert_array_equal(found[np.lexsort(found.T[1::-1])], expected)


@every_name
def test_border_sites_are_the_ends_of_crossing_bonds_and_the_end_layers(name):
    for topology, tiling, _, _ in cases(name):
        layers = [layer for pair in topology.end_layers for layer in pair]
        ends = np.flatnonzero(unpack_bits(tiling.ends, topology.num_points))
        assert set(ends) == set().union(*map(set, layers))
        marked = tiling.ends.copy()
        tiling.crossing.mark_ends(marked)
        border = np.flatnonzero(unpack_bits(marked, topology.num_points))
        assert set(border) == set(crossing_bonds(tiling)[:, 1:3].ravel()).union(ends)
        number = tile_of(border, tiling) @ 100 ** np.arange(len(tiling.shape))
        assert tiling.room == np.unique(number, return_counts=True)[1].max(initial=0)


@every_name
def test_a_tile_fits_its_words_and_what_a_tiling_takes_is_bounded_before_it_is_made(name):
    for topology, tiling, words, strip in cases(name):
        bounds = tiling_bounds(Extent.of_topology(topology), words, strip)
        crossing = tiling.crossing
        assert bounds.tiles == tiling.num_tiles
        assert bounds.room >= tiling.room
        assert bounds.crossing >= crossing.num_bonds
        assert bounds.entries >= crossing.words.size
        wide, *others = tiling.tile
        assert prod(tiling.tile) <= words
        assert strip % wide == 0, "a strip has whole rows"
        assert all(extent.bit_count() == 1 for extent in tiling.tile)
        covered = np.array(tiling.tiles) * (32 * wide, *others)
        assert np.all(covered >= tiling.shape)
        assert np.all(covered - (32 * wide, *others) < tiling.shape)


@every_name
def test_the_other_end_is_found_by_bits_and_words(name):
    for topology, tiling, _, _ in cases(name):
        for k, shift, row in zip(tiling.classes, tiling.shifts, tiling.rows, strict=True):
            owner = np.flatnonzero(unpack_bits(inner_of(tiling, k), topology.num_points))
            place = [place_in_tile(sites, tiling) for sites in (owner, owner + topology.deltas[k])]
            word, bit = place[0]
            step = bit + shift
            np.testing.assert_array_equal(place[1][0], word + row + (step >> 5))
            np.testing.assert_array_equal(place[1][1], step & 31)


def place_in_tile(sites, tiling):
    """Return (word, bit) of sites in their tiles."""
    wide, *others = tiling.tile
    places = np.unravel_index(sites, tiling.shape, order="F")
    x, *rows = (x % n for x, n in zip(places, (32 * wide, *others)))
    return x // 32 + wide * np.ravel_multi_index(rows, others, order="F"), x % 32


def test_lattices_that_cannot_be_tiled_are_refused():
    assert "graph" in why_not_tiled(graph_topology(3, [(0, 1)], source=[0], target=[2]))
    assert "chain" in why_not_tiled(lattice_from_text(CHAIN, where="chain").topology((40,)))
    assert why_not_tiled(lattice("square").topology((5, 5))) == ""


def test_a_lattice_that_cannot_be_tiled_gets_the_four_steps_with_a_note():
    assert fitting_labeler(None, "cuda", lattice("square")) == ("tiled", "")
    assert fitting_labeler(None, "cpu", lattice("hypercubic_4d")) == ("raster", "")
    name, note = fitting_labeler("tiled", "cuda", lattice_from_text(CHAIN, where="chain"))
    assert name in LABELERS
    assert name == "four_step"
    assert "four_step is used instead" in note


@pytest.mark.parametrize(
    "shape", [(60, 60, 60), (63, 63, 63), (127, 127, 127), (128, 128, 49), (96, 96, 10)]
)
def test_a_size_that_fills_no_tile_is_not_cut_into_flat_ones(shape):
    """Fewest tiles alone are flat here, with a bond a site between them; 0.2 is what cubes have."""
    topology = lattice("cubic").topology(shape, ("open",) * 3)
    assert refusal(topology) == ""
    tiling = make_tiling(topology, TILE_WORDS, LANES)
    assert tiling.crossing.num_bonds < 0.3 * topology.num_points
