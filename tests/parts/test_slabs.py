"""A lattice in slabs has the row of the whole lattice, however it is cut and joined."""

from dataclasses import fields
from itertools import islice, product
from math import prod

import numpy as np
import pytest
from helpers import lattice, slow, slow_but, traced_peak
from interface_support import fake_interface
from parts_support import (
    FAR_REACHING,
    MODELS,
    NAMES,
    SIZES,
    boundaries_of,
    interfaces_of,
    join_in_order,
    ps_of,
    row_by_slabs,
    row_of_the_whole,
    shape_of,
    structure,
)

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, open_word, p_to_threshold
from percolab.errors import InputError
from percolab.lattices.bethe import bethe_lattice
from percolab.lattices.topology import pack_bits
from percolab.measure.rows import BINS, CUBES
from percolab.measure.tallies import bin_edges, num_bins
from percolab.parts.interface import Interface, close, interface_bytes, join, make_row
from percolab.parts.parts import Parts, Whole
from percolab.parts.raster import SampleKey, SlabRaster
from percolab.parts.slabs import Slabs, equal_slabs, thicknesses


def random_layers(whole, slabs, rng):
    """Return the layers of so many slabs at most, none too thin."""
    least = max(whole.reach, 1)
    slabs = min(slabs, whole.num_layers // least)
    free = whole.num_layers - slabs * least
    edges = np.sort(rng.integers(0, free + 1, slabs - 1))
    return [least + int(n) for n in np.diff([0, *edges, free])]


def random_order(slabs, rng):
    kind = rng.integers(4)
    return (
        ("chain", "tree")[kind]
        if kind < 2
        else [int(rng.integers(n)) for n in range(slabs - 1, 0, -1)]
    )


def assert_rows_equal(name, boundary, model, generator, p, slabs, *, rng, tally, sizes=None):
    shape = shape_of(name, boundary, sizes)
    whole = Whole(structure(name), shape, boundary, model)
    layers = random_layers(whole, slabs, rng)
    order = random_order(len(layers), rng)
    draw = SampleKey(generator, 5, int(rng.integers(1000)), p_to_threshold(p))
    expected = row_of_the_whole(whole, draw, tally=tally)
    found = row_by_slabs(whole, draw, slabs=layers, order=order, tally=tally)
    case = f"{name} {shape} {boundary} {model} {draw} p = {p}, layers {layers} joined by {order}"
    np.testing.assert_array_equal(found.numbers, expected, err_msg=case)
    assert found.sum_squares == expected[3], case


#: A cell of one site and of several, three and four axes, bonds over layers, thick end layers.
QUICK = (
    "square",
    "kagome",
    "cubic",
    "hypercubic-4d",
    "honeycomb_unit_cell",
    "far_reaching",
    "chain_of_two",
)


@pytest.mark.parametrize("name", slow_but(NAMES, *QUICK))
def test_rows_of_slabs_are_those_of_the_whole_lattice(name):
    rng = np.random.default_rng(len(name))
    boundaries = boundaries_of(name)
    for n, p in enumerate(ps_of(name) * 4):
        # All boundaries of the plane, models, generators, 1 to 8 slabs; not each with each.
        boundary = boundaries[n * 7 % len(boundaries)]
        model, generator = MODELS[(n + n // 5) % 5], list(GENERATORS.values())[n // 2 % 2]
        kinds = {"rng": rng, "tally": n % 3 == 0}
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, **kinds)


@pytest.mark.parametrize("boundary", boundaries_of("square"), ids="-".join)
@pytest.mark.parametrize("sizes", [(33, 40), (1, 30), (130, 6), (2, 2), (1, 1)], ids=str)
def test_rows_of_slabs_with_layers_of_many_words_or_one_site(sizes, boundary):
    rng = np.random.default_rng(1)
    for n, p in enumerate((0.3, 0.5, 0.6) * 2):
        model = BOND if n < 3 or sizes[1] == 1 or sizes[0] == 1 else Model.parse("site")
        given = {"rng": rng, "tally": True, "sizes": sizes}
        assert_rows_equal("square", boundary, model, 0, p, 4, **given)


def test_end_layers_may_be_thicker_than_one():
    rng = np.random.default_rng(6)
    for n in range(60):
        given = {"rng": rng, "tally": False, "sizes": (6 + n % 2,)}
        assert_rows_equal("chain_of_two", ("open",), MODELS[n % 2], 0, 0.8, n % 3 + 1, **given)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_slabs_with_all_boundaries_and_models(name):
    rng = np.random.default_rng(2)
    cases = product(boundaries_of(name), MODELS, GENERATORS.values(), ps_of(name))
    # Every seventh has all boundaries, models, generators and p, not each with each.
    for n, (boundary, model, generator, p) in islice(enumerate(cases), 0, None, 7):
        given = {"rng": rng, "tally": n % 2 == 0}
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, **given)
    for n in range(50):
        # Near the threshold of bonds, on tori, where windings are easily wrong.
        boundary, model = boundaries_of(name)[-1 - rng.integers(2)], MODELS[n % 5]
        p = ps_of(name)[2] * rng.uniform(0.9, 1.3) ** (1 + model.draws_sites)
        slabs = int(rng.integers(1, 9))
        assert_rows_equal(name, boundary, model, 0, min(p, 1), slabs, rng=rng, tally=False)


@pytest.mark.parametrize("name", ["square", "kagome", slow("cubic"), slow("far_reaching")])
def test_wrapping_rows_about_the_threshold(name):
    # Rows that wrap in one direction, in two and in none, cut into many slabs.
    rng = np.random.default_rng(3)
    boundary = boundaries_of(name)[-1]
    sizes = {2: (9, 12), 3: (4, 4, 9)}[structure(name).dimension]
    for _ in range(30):
        p = ps_of(name)[2] * rng.uniform(0.9, 1.2)
        given = {"rng": rng, "tally": False, "sizes": sizes}
        assert_rows_equal(name, boundary, BOND, 0, p, int(rng.integers(1, 9)), **given)


def assert_interfaces_equal(one, other):
    """Assert that two interfaces are equal in every number, codes of periods left out."""
    assert one.sums == other.sums
    for item in fields(Interface):
        if item.name in ("low", "high"):
            clusters = getattr(one, item.name).clusters, getattr(other, item.name).clusters
            np.testing.assert_array_equal(*clusters, err_msg=item.name)
        elif item.name != "sums":
            np.testing.assert_array_equal(getattr(one, item.name), getattr(other, item.name))


@pytest.mark.parametrize("model", MODELS[:3], ids=str)
@pytest.mark.parametrize("name", ["square", "kagome", "cubic", "far_reaching"])
def test_interfaces_join_to_the_interface_of_the_thicker_slab(name, model):
    item, rng = structure(name), np.random.default_rng(4)
    shape = (*SIZES[item.dimension][:-1], 10**6)
    whole = Whole(item, shape, ("open",) * item.dimension, model)
    for p in ps_of(name):
        draw = SampleKey(0, 5, 1, p_to_threshold(p))
        (expected,) = interfaces_of(whole, draw, [17], 1001, tally=True)
        pieces = interfaces_of(whole, draw, [3, 2, 7, 5], 1001, tally=True)
        for order in ("chain", "tree", [2, 1, 0], [1, 1, 0], random_order(4, rng)):
            assert_interfaces_equal(join_in_order(pieces, order), expected)


def test_an_interface_has_only_clusters_that_touch_a_face():
    whole = Whole(lattice("square"), (40, 40), ("periodic",) * 2)
    interfaces = interfaces_of(whole, SampleKey(0, 5, 1, p_to_threshold(0.4)), [10, 10, 10, 10])
    for interface in (*interfaces, join(*interfaces[:2]), join_in_order(interfaces, "tree")):
        named = np.concatenate([interface.low.clusters, interface.high.clusters])
        assert np.unique(named).tolist() == list(range(interface.num_clusters))
        # Numbers are in the order in which the entries name them.
        assert (np.diff(np.unique(named, return_index=True)[1]) > 0).all()
        assert interface.sums.clusters.clusters > interface.num_clusters > 0


#: The first word of a slab in a class, about: where numbers of sites, words or both lose 32 bits.
FAR_WORDS = (2**26, 2**27, 2**31, 2**32, 2**36, 2**54)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("word", FAR_WORDS, ids=lambda word: f"word 2^{word.bit_length() - 1}")
def test_bonds_of_a_slab_far_inside_are_those_of_its_words(word, generator):
    width, layers = 33, 5
    # Words of the second class and of sites begin behind as many of the first.
    whole = Whole(lattice("square"), (width, word), ("open", "open"), Model.parse("site-bond"))
    first = 32 * word // width - 2
    labeler, part = SlabRaster(whole, layers), Parts(whole).part(first, layers)
    assert part.first_site // 32 < word <= (part.first_site + part.num_points) // 32
    threshold = p_to_threshold(0.8)
    interface = labeler.make_interface(part, SampleKey(generator, 5, 1, threshold))
    sites = part.first_site + np.arange(-width, (layers + 1) * width, dtype=object)

    def drawn(klass):
        """Return which owners of a class are open, of this slab and a layer on either side."""
        words = {int(site) // 32 for site in sites}
        found = {}
        for number in words:
            key = np.uint64(5), np.uint64(1), np.uint64(klass * whole.num_words + number)
            found[number] = int(
                open_word(generator, *key, np.uint64(threshold), np.uint32(0xFFFFFFFF))
            )
        bits = [found[int(site) // 32] >> int(site) % 32 & 1 for site in sites]
        return np.array(bits, bool).reshape(layers + 2, width)

    occupied, right, up = drawn(2), drawn(0), drawn(1)
    right &= occupied & np.roll(occupied, 1, axis=1)
    right[:, 0] = False
    up[1:] &= occupied[1:] & occupied[:-1]
    inside = up[1:-1].copy()
    inside[0] = False
    assert whole.lattice.bonds[0].offset == (-1, 0)
    opened = labeler.opened.reshape(2, -1)
    np.testing.assert_array_equal(
        opened, pack_bits(np.stack([right[1:-1].ravel(), inside.ravel()]))
    )
    np.testing.assert_array_equal(labeler.occupied, pack_bits(occupied[1:-1].ravel()))
    assert interface.low.num_bonds == up[1].sum()
    assert interface.high.num_bonds == up[-1].sum()


def test_sums_of_sizes_beyond_64_and_128_bits_are_exact():
    a, b, c, d, e = 2**31 + 7, 2**32 + 1, 3 * 2**40 + 5, 2**44 - 1, 2**33 - 1
    bins = num_bins(2**50)
    low = fake_interface(0, [a, b, c], [], [0, 1, 2, 1], bins=bins)
    middle = fake_interface(1, [d, e, 63, 1], [0, 1, 2, 3], [0, 2], bins=bins)
    high = fake_interface(2, [17, 99], [0, 1], [], bins=bins)
    # b meets e and 1; a meets d and then 17; c meets 63 and then 99.
    sizes = [a + d + 17, b + e + 1, c + 63 + 99]
    for order in ("chain", [1, 0]):
        interface = join_in_order([low, middle, high], order)
        row = make_row(interface)
        assert row.sum_squares == sum(size**2 for size in sizes) > 2**63
        assert row.cubes == sum(size**3 for size in sizes) > 2**128
        assert row.fourths == sum(size**4 for size in sizes) > 2**170
        clusters, largest, second, squares, *_ = row.numbers.tolist()
        assert (clusters, largest, second) == (3, sizes[0], sizes[2])
        assert squares % 2**64 == row.sum_squares % 2**64
        pairs = [int(number) % 2**64 for number in row.numbers[CUBES:BINS]]
        assert pairs[0] + (pairs[1] << 64) == row.cubes % 2**128
        assert pairs[2] + (pairs[3] << 64) == row.fourths % 2**128
        edges = bin_edges(2**50)
        counted = np.histogram(np.array(sizes, np.int64), bins=edges)[0]
        np.testing.assert_array_equal(row.numbers[BINS:], counted)


def test_sums_of_many_fourth_powers_carry_through_all_digits():
    rng = np.random.default_rng(5)
    sizes = [*rng.integers(1, 2**60, 1000).tolist(), *([2**60 - 1] * 7)]
    entries, bins = np.arange(1007), num_bins(2**62)
    low = fake_interface(0, sizes, [], entries, bins=bins)
    sums = join(low, fake_interface(1, [0] * 1007, entries, [], bins=bins)).sums
    for power, total in ((2, sums.clusters.sum_squares), (3, sums.cubes), (4, sums.fourths)):
        assert total == sum(size**power for size in sizes)


def test_equal_slabs_share_their_tables():
    parts = Parts(Whole(lattice("kagome"), (8, 40), ("open", "open")))
    first, second, odd = (parts.part(*layers) for layers in ((0, 10), (10, 10), (21, 10)))
    assert first.tables is second.tables
    assert odd.tables is not second.tables
    assert first.high is second.low
    assert odd.low is not second.low


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [
        ("square", (500, 900), "open"),
        ("cubic", (60, 60, 60), "periodic"),
        ("kagome", (400,) * 2, "open"),
    ],
)
@pytest.mark.parametrize("model", [BOND, Model.parse("site")], ids=str)
def test_memory_of_a_row_is_stated(name, shape, kind, model):
    item = lattice(name)
    whole = Whole(item, shape, (kind,) * item.dimension, model)
    layers = thicknesses(whole, 6)
    Slabs(whole, layers).row(DRAW)
    draw = SampleKey(0, 5, 1, p_to_threshold(0.6))
    peak = traced_peak(lambda: Slabs(whole, layers).row(draw))
    assert peak <= Slabs.memory(whole, layers).host < 2.5 * peak


@pytest.mark.parametrize("name", NAMES)
def test_memory_of_an_interface_is_stated(name):
    boundary = boundaries_of(name)[-1]
    whole = Whole(structure(name), shape_of(name, boundary), boundary)
    layers = thicknesses(whole, 3)
    one, two, _ = interfaces_of(whole, SampleKey(0, 5, 1, p_to_threshold(1.0)), layers)
    for interface in (one, two, join(one, two)):
        bonds = interface.low.num_bonds + interface.high.num_bonds
        assert interface.num_bytes == interface_bytes(
            bonds, interface.num_clusters, has_periods=True
        )
        # All bonds are open; from some points of a larger cell none leads down.
        assert 0 < bonds <= 2 * whole.most_crossing
        assert bonds == 2 * whole.most_crossing or prod(whole.lattice.cell) > 1


def test_slabs_hold_whole_cells_where_there_are_enough():
    whole = Whole(lattice("kagome"), (8, 23), ("open", "open"))
    assert thicknesses(whole, 4) == (6, 6, 6, 5)
    assert thicknesses(whole, 5) == (6, 4, 4, 4, 5)
    assert thicknesses(whole, 23) == (1,) * 23
    assert thicknesses(Whole(lattice("square"), (8, 23), ("open", "open")), 4) == (6, 6, 6, 5)


def test_slabs_of_one_thickness_and_the_rest():
    square = Whole(lattice("square"), (8, 23), ("open", "open"))
    assert equal_slabs(square, 5) == (5, 5, 5, 5, 3)
    assert equal_slabs(square, 23) == equal_slabs(square, 30) == (23,)
    far = Whole(structure("far_reaching"), (8, 23), ("open", "open"))
    assert far.reach == 2
    assert equal_slabs(far, 4) == (4,) * 5 + (3,)
    assert equal_slabs(far, 11) == (11, 6, 6)
    assert equal_slabs(far, 2) == (2,) * 10 + (3,)


WHOLE = Whole(lattice("square"), (4, 6), ("open", "open"))
DRAW = SampleKey(0, 5, 1, p_to_threshold(0.5))
OPEN = "open", "open"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Whole(bethe_lattice("bethe:3"), (5,), ("open",)), "only a lattice can be cut"),
        (lambda: Whole(lattice("square"), (4, 6), OPEN, Model.parse("ising")), "spins"),
        (lambda: Whole(lattice("kagome"), (4, 5), ("open", "periodic")), "multiple of its cell, 2"),
        (lambda: Whole(lattice("square"), (4, 1), OPEN, Model.parse("site")), "two end layers"),
        (lambda: Whole(lattice("square"), (4, 2**62), OPEN), "bond words have 60 bits"),
        (lambda: row_by_slabs(WHOLE, DRAW, slabs=7), "7 slabs, but there are 6 layers"),
        (lambda: row_by_slabs(WHOLE, DRAW, slabs=0), "slabs = 0"),
        (lambda: row_by_slabs(WHOLE, DRAW, slabs=[3, 2]), "slabs of 5 layers"),
        (lambda: row_by_slabs(WHOLE, DRAW, slabs=[6, 0]), "a slab of 0 layers"),
        (lambda: Parts(WHOLE).part(4, 3), "layers 4 to 6, but the lattice has 0 to 5"),
        (lambda: Parts(Whole(FAR_REACHING, (4, 6), OPEN)).part(0, 1), "reach over 2 layers"),
        (lambda: Parts(Whole(lattice("square"), (2**20, 2**12), OPEN)).part(0, 2**11), "at most"),
        (lambda: join(*interfaces_of(WHOLE, DRAW, [2, 2, 2])[::2]), "no neighbours from 4 on"),
        (lambda: make_row(interfaces_of(WHOLE, DRAW, [3, 3])[0]), "a row needs all 6 layers"),
        (
            lambda: close(interfaces_of(WHOLE, DRAW, [3, 3])[0]),
            "a torus needs all 6 layers; only 3 are here",
        ),
    ],
)
def test_what_is_no_slab_or_no_row_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_faces_of_different_samples_do_not_match():
    low, _ = interfaces_of(WHOLE, SampleKey(0, 5, 1, p_to_threshold(0.0)), [3, 3])
    _, high = interfaces_of(WHOLE, SampleKey(0, 5, 1, p_to_threshold(1.0)), [3, 3])
    with pytest.raises(ValueError, match="0 open bonds below a face, 4 above"):
        join(low, high)


def test_a_torus_that_is_not_closed_has_no_row():
    whole = Whole(lattice("square"), (4, 6), ("open", "periodic"))
    (interface,) = interfaces_of(whole, SampleKey(0, 5, 1, p_to_threshold(1.0)), [6])
    with pytest.raises(InputError, match="no open face"):
        make_row(interface)
    assert make_row(close(interface)).numbers[1] == prod(whole.shape)
