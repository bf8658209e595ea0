"""Winding numbers of the loops of a cluster, by any labeler and p; which wrap, alone too."""

import json

import numpy as np
import pytest
from cli_support import answer
from helpers import JUDGED_LABELERS, cpu_labeler, parity_topologies, slow

import percolab
from percolab import InputError, load_lattice
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.configurations.configuration import random_configuration
from percolab.lattices.topology import PERIOD_BITS, decode_periods, period_codes
from percolab.measure.columns import wrapping_names
from percolab.measure.rows import SPANNING
from percolab.measure.sums import FIELDS
from percolab.measure.wrapping import FIRST_WRAPPING, are_parallel, periods_along

PLANAR = ("square", "honeycomb", "triangular", "kagome")
GRID = np.array([p_to_threshold(p) for p in (0.0, 0.2, 0.35, 0.5, 0.6, 0.7, 1.0)], np.uint64)


def flags_of(name, topology, samples=8, model=BOND):
    labeler = cpu_labeler(name, topology, model)
    return labeler.grid_rows(XORWOW, 2, np.arange(samples, dtype=np.uint64), GRID)[..., SPANNING]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("square", BOND),
        slow("cubic", BOND),
        *(slow(name, BOND) for name in PLANAR[1:]),
        *(slow(name, Model.parse("site")) for name in ("square", "kagome", "cubic")),
    ],
    ids=str,
)
def test_every_labeler_finds_the_windings_of_the_reference(name, model):
    seen = set()
    for case, topology in parity_topologies(name):
        if model.draws_sites and any(np.intersect1d(*pair).size for pair in topology.end_layers):
            continue
        expected = flags_of("reference", topology, 2, model)
        seen |= set((expected >> FIRST_WRAPPING).ravel().tolist())
        for labeler in JUDGED_LABELERS:
            np.testing.assert_array_equal(
                flags_of(labeler, topology, 2, model), expected, err_msg=f"{labeler} {case}"
            )
    assert len(seen) > 3


@pytest.mark.parametrize("p", [0.3, 0.5, 0.6])
def test_observables_name_the_windings(p):
    settings = {"L": [5], "p": [p], "samples": 400, "block_size": 1, "device": "cpu"}
    results = percolab.sweep("square", boundary="periodic", **settings)
    (item,) = results.tasks.values()
    x, y, any_axis, all_axes, some, none, two, diagonal = (
        item.column(name)[:, 0] == 1 for name in wrapping_names(("periodic",) * 2)
    )
    np.testing.assert_array_equal(any_axis, x | y)
    np.testing.assert_array_equal(all_axes, x & y)
    np.testing.assert_array_equal(some, x ^ y)
    np.testing.assert_array_equal(none, ~any_axis)
    np.testing.assert_array_equal(two, all_axes & ~diagonal)
    assert not (diagonal & ~all_axes).any()
    assert {0.3: some, 0.5: x, 0.6: all_axes}[p].any()


def test_codes_of_periods_add_like_vectors():
    vectors = np.array([[3, -2, 1], [-3, 2, -1], [0, -1, 5], [2047, -2047, 0]])
    codes = period_codes(vectors)
    found = [[periods_along(code, axis, PERIOD_BITS) for axis in range(3)] for code in codes]
    assert found == vectors.tolist() == decode_periods(codes, 3).tolist()
    assert codes[0] + codes[1] == 0
    assert are_parallel(codes[0], codes[1], 3, PERIOD_BITS)
    assert not are_parallel(codes[0], codes[2], 3, PERIOD_BITS)


def axes_of(topology, opened):
    """Return the axes that any cluster wraps around, by a search without kernels."""
    labeler = cpu_labeler("reference", topology)
    labeler.load(opened)
    bits = int(labeler.row()[SPANNING]) >> FIRST_WRAPPING
    return {"xyz"[axis] for axis in range(topology.num_axes) if bits >> axis & 1}


@pytest.mark.parametrize(
    ("name", "size", "p", "boundary"),
    [
        ("square", 8, 0.5, "periodic"),
        ("triangular", 8, 0.35, "periodic,open"),
        ("cubic", 4, 0.25, "periodic,open,periodic"),
    ],
)
def test_axes_that_clusters_wrap_around_are_those_of_the_sample(name, size, p, boundary):
    seen, lattice = set(), load_lattice(name)
    for sample in range(12):
        chosen = random_configuration(lattice, size, p, sample=sample, seed=3, boundary=boundary)
        clusters = chosen.label("reference")
        wrapped = {axis for axis, numbers in clusters.wrapping.items() if numbers.size}
        assert wrapped == axes_of(chosen.topology, chosen.opened)
        # And the clusters that are named are those that do it alone.
        for item in clusters.crossing():
            own = clusters.labels == item["label"]
            alone = chosen.opened.copy()
            for klass, owner, _ in chosen.topology.bonds().tolist():
                if not own[owner]:
                    alone[klass, owner // 32] &= ~np.uint32(1 << owner % 32)
            assert set(item["wrapping"]) == axes_of(chosen.topology, alone)
        seen.add(frozenset(wrapped))
    assert len(seen) > 1


def test_label_and_show_name_the_clusters_that_span_and_wrap():
    mask = np.zeros((6, 6), bool)
    mask[2] = True
    mask[4:, 1:3] = True
    np.save("mask.npy", mask)
    options = ("mask.npy", "--boundary", "periodic,open")
    message = answer("label", *options)
    assert "cluster 12 of 6 sites wraps around x" in message
    # Six of the ten sites are in the row that wraps.
    assert message.splitlines()[-2].split()[-7:] == [
        "share",
        "spanning",
        "y",
        "share",
        "wrapping",
        "x",
        "surface",
    ]
    assert message.split()[-3:] == ["0", "0.6", "18"]
    record = json.loads(answer("label", *options, "--json"))
    assert record["wrapping"] == ["x"]
    assert record["crossing_clusters"] == [
        {"label": 12, "sites": 6, "spanning": [], "wrapping": ["x"]}
    ]
    assert "cluster 12 of 6 sites wraps around x" in answer("show", "labels.h5")


# --- ``--measure wrapping``: nothing but what wraps ---


GIVEN = {"L": [6], "p": [0.4, 0.55], "samples": 40, "block_size": 10, "device": "cpu"}


@pytest.mark.parametrize("more", [(), ("openings",)])
@pytest.mark.parametrize("name", ["square", "cubic"])
def test_the_columns_are_those_of_the_study_with_clusters(name, more):
    whole, alone = (
        percolab.sweep(name, boundary="periodic", measure=words, **GIVEN)
        for words in (list(more), [*more, "wrapping"])
    )
    (expected,), (found,) = whole.tasks.values(), alone.tasks.values()
    names = {column.name for column in found.task.columns}
    assert names == {column.name for column in expected.task.columns} - {*FIELDS}
    assert "wrapping_two" in names
    for each in names:
        np.testing.assert_array_equal(found.column(each), expected.column(each))


def test_status_says_that_nothing_else_is_measured(tmp_path):
    path = tmp_path / "alone.h5"
    percolab.sweep("square", boundary="periodic", measure=["wrapping"], out=path, **GIVEN)
    assert "measured alone: wrapping (L = 6)" in answer("status", path)


def test_only_what_wraps_is_collapsed(tmp_path):
    path = tmp_path / "alone.h5"
    given = GIVEN | {"L": [6, 12], "p": [0.4, 0.45, 0.5, 0.55, 0.6], "samples": 400}
    percolab.sweep("square", boundary="periodic", measure=["wrapping"], out=path, **given)
    record = json.loads(answer("fit", path, "--collapse", "--bootstrap", 0, "--json"))
    assert [each["observable"] for each in record["collapses"]] == ["wrapping_y"]


@pytest.mark.parametrize("word", ["sizes", "gyration"])
def test_it_is_refused_with_numbers_of_clusters_that_it_leaves_out(word):
    message = f"measure {word}: with measure wrapping no clusters are"
    with pytest.raises(InputError, match=message):
        percolab.sweep("square", boundary="periodic", measure=["wrapping", word], **GIVEN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boundary": "open"}, "every axis must be periodic"),
        ({"boundary": ("periodic", "open")}, "every axis must be periodic"),
        ({"boundary": "periodic", "model": "ising"}, "left out only for percolation"),
    ],
)
def test_it_is_refused_where_clusters_may_span_or_are_of_spins(given, message):
    with pytest.raises(InputError, match=message):
        percolab.sweep("square", measure=["wrapping"], **GIVEN, **given)
