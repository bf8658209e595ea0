"""Samples of version 2 and all that is read off them are what they were when first made."""

import json
from collections import defaultdict

import golden
import numpy as np
import pytest


@pytest.fixture(scope="module")
def stored():
    """Return {case: {task id: {column: array}}}."""
    found = defaultdict(lambda: defaultdict(dict))
    with np.load(golden.FOLDER / "samples.npz", allow_pickle=False) as file:
        for key in file.files:
            case, task, column = key.split("|")
            found[case][task][column] = file[key]
    return found


def test_every_case_is_stored(stored):
    assert set(stored) == set(golden.CASES)


@pytest.mark.parametrize("name", golden.CASES)
def test_samples_are_what_they_were(name, stored):
    found = golden.measured(golden.CASES[name])
    assert set(found) == set(stored[name]), "ids of tasks"
    for task, columns in stored[name].items():
        # A column that came later is not there.
        for column, expected in columns.items():
            np.testing.assert_array_equal(found[task][column], expected, err_msg=column)
            assert found[task][column].dtype == expected.dtype, column


@pytest.mark.parametrize("name", golden.LABELS)
def test_labels_are_what_they_were(name):
    with np.load(golden.FOLDER / "labels.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(golden.labels_of(*golden.LABELS[name]), file[name])


def kept():
    return json.loads((golden.FOLDER / "kept.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", golden.KEPT)
def test_tables_of_kept_files_are_what_they_were(name):
    if not (golden.ROOT / name).exists():
        pytest.skip(f"{name} is not in this copy")
    assert golden.table_of(name) == kept()["tables"][name]


@pytest.mark.parametrize("name", golden.FITTED)
def test_fits_of_kept_files_are_what_they_were(name):
    """Up to where the search for a maximum ends, far below an error."""
    if not (golden.ROOT / name).exists():
        pytest.skip(f"{name} is not in this copy")
    expected, found = kept()["fits"][name], golden.fit_of(name)
    assert expected.keys() <= found.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-3, abs=1e-7), key
