"""Samples of version 2 and all that is read off them are what they were when first made."""

import json
from collections import defaultdict

import golden
import numpy as np
import pytest

SAMPLED = golden.CASES | golden.KINDS
OTHERS = {f"invasion {name}" for name in golden.INVASIONS} | {
    f"checkpoint {name}" for name in golden.CHECKPOINTS
}


@pytest.fixture(scope="module")
def stored():
    """Return {case: {task id: {column: array}}}."""
    found = defaultdict(lambda: defaultdict(dict))
    for name in ("samples", "kinds"):
        with np.load(golden.FOLDER / f"{name}.npz", allow_pickle=False) as file:
            for key in file.files:
                case, task, column = key.split("|")
                found[case][task][column] = file[key]
    return found


def assert_stored(found, stored):
    """Compare {id: {column: array}} with what is stored; a column that came later is not there."""
    assert set(found) == set(stored), "ids of tasks"
    for task, columns in stored.items():
        for column, expected in columns.items():
            np.testing.assert_array_equal(found[task][column], expected, err_msg=column)
            assert found[task][column].dtype == expected.dtype, column


def test_every_case_is_stored(stored):
    assert set(stored) == set(SAMPLED) | OTHERS


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_are_what_they_were(name, stored):
    assert_stored(golden.measured(SAMPLED[name]), stored[name])


@pytest.mark.parametrize("name", golden.INVASIONS)
def test_invasions_are_what_they_were(name, stored):
    assert_stored({"": golden.invaded(name)}, stored[f"invasion {name}"])


@pytest.mark.parametrize("name", golden.CHECKPOINTS)
def test_checkpoints_are_what_they_were(name, stored):
    assert_stored(golden.checkpointed(name), stored[f"checkpoint {name}"])


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
    assert_fit(golden.fit_of(name), kept()["fits"][name])


@pytest.mark.parametrize("name", golden.STUDIES)
def test_fits_of_all_kinds_are_what_they_were(name):
    """As above; what is fitted is sampled here."""
    assert_fit(golden.fit_of_study(name), kept()["studies"][name])


def assert_fit(found, expected):
    """Compare the numbers of a fit, but for new ones."""
    assert expected.keys() <= found.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-3, abs=1e-7), key
