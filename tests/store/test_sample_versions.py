"""Samples of version 1 stay readable; whatever is made of them says what was wrong."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import answer, small_results, stored

from percolab.analysis.stored_fits import fit_quantities
from percolab.api import sweep
from percolab.lattices.lattice import load_lattice
from percolab.store.results import Results
from percolab.store.sample_versions import warning_of
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

LINE = (
    "sample version 1 (percolab until 0.1.0): bonds of one random word were correlated, which "
    "moved p_c by an amount of the order of 1e-6, not worked out for this lattice "
    "(docs/randomness.md)"
)


def of_version_1(results):
    """Return results as if version 1 had sampled them."""
    found = Results(replace(results.study, sample_version=1))
    for item in results.tasks.values():
        task = replace(item.task, sample_version=1)
        found.tasks[task.id] = TaskResult(task, item.blocks, item.columns)
    return found


def study(lattice, **options):
    item = load_lattice(lattice)
    return Results(Study(item, (4,), ("open",) * item.dimension, sample_version=1, **options))


@pytest.mark.parametrize(
    ("lattice", "options", "told"),
    [
        ("cubic", {}, "bonds of one random word were correlated, which moved p_c by +3.4(2)e-7, "),
        ("bcc", {}, "moved p_c by +1.1(4)e-6, to be subtracted"),
        ("fcc", {}, "moved p_c by +0.6(4)e-6, to be subtracted"),
        ("cubic", {"model": "site"}, "sites of one random word were correlated, which moved p_c by "
         "an amount of the order of 1e-6, not worked out for this model"),
        ("cubic", {"model": "site-bond:site=0.9"}, "bonds and sites of one random word"),
        ("kagome", {}, "an amount of the order of 1e-6, not worked out for this lattice"),
    ],
    ids=str,
)  # fmt: skip
def test_version_1_says_by_how_much_it_moved_the_threshold(lattice, options, told):
    warning = warning_of(study(lattice, **options))
    assert told in warning
    assert "\n" not in warning
    assert "docs/randomness.md" in warning


def test_philox_and_later_versions_have_nothing_to_say():
    assert warning_of(study("cubic", rng="philox")) is None
    assert warning_of(small_results()) is None


@pytest.mark.usefixtures("own_directory")
def test_whatever_is_made_of_version_1_says_so_in_one_line():
    path = stored(Path("old.h5"), of_version_1(small_results()))
    note = f"note: {LINE}"
    for name in ("fit", "status", "plot"):
        told = answer(name, path, *(() if name == "status" else ("--bootstrap", 0)))
        assert told.splitlines().count(note) == 1, name
    assert LINE in json.loads(answer("fit", path, "--bootstrap", 0, "--json"))["notes"]
    assert json.loads(answer("status", path, "--json"))["notes"] == [LINE]
    drawn = json.loads(answer("plot", path, "--kind", "clusters", "--json"))
    assert drawn["notes"] == [LINE]
    assert drawn["title"] == "Bond percolation, square (sample version 1)"
    answer("report", path, "--bootstrap", 0)
    assert f"<td>{LINE}</td>" in Path("old.html").read_text()
    new = stored(Path("new.h5"))
    for name in ("fit", "status", "plot"):
        told = answer(name, new, *(() if name == "status" else ("--bootstrap", 0)))
        assert "sample version" not in told


@pytest.mark.usefixtures("own_directory")
def test_thresholds_of_single_sizes_and_of_several_quantities_say_so_too():
    options = {"p": [0.4, 0.5, 0.6], "samples": 40, "device": "cpu"}
    bethe = stored(Path("bethe.h5"), of_version_1(sweep("bethe:3", L=[3, 4], **options)))
    assert answer("fit", bethe, "--bootstrap", 0).count(f"note: {LINE}") == 1
    p = [0.44, 0.48, 0.52, 0.56]
    torus = {"boundary": "periodic", "p": p, "samples": 600, "block_size": 10, "device": "cpu"}
    results = of_version_1(sweep("square", L=[4, 6, 8, 12], **torus))
    assert fit_quantities(results, ["wrapping_any"]).notes[0] == LINE
