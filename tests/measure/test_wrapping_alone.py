"""``--measure wrapping``: nothing but what wraps around a torus, the same numbers as ever."""

import json

import numpy as np
import pytest
from cli_support import answer

import percolab
from percolab.errors import InputError
from percolab.measure.sums import FIELDS

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
    message = f"measure {word}: clusters are not measured with wrapping alone"
    with pytest.raises(InputError, match=message):
        percolab.sweep("square", boundary="periodic", measure=["wrapping", word], **GIVEN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boundary": "open"}, "every axis must be periodic"),
        ({"boundary": ("periodic", "open")}, "every axis must be periodic"),
        ({"boundary": "periodic", "model": "ising"}, "left out in percolation alone"),
    ],
)
def test_it_is_refused_where_clusters_may_span_or_are_of_spins(given, message):
    with pytest.raises(InputError, match=message):
        percolab.sweep("square", measure=["wrapping"], **GIVEN, **given)
