"""Studies by method threshold: the same samples as on a grid of p, stored one by one."""

import csv
import io

import numpy as np
import pytest
from cli_support import answer, refusal, refusal_after, replace_dataset, stored
from helpers import assert_z

from percolab.analysis.stored_data import read_curves
from percolab.analysis.study_kinds import spanning_counts, transition_grid
from percolab.api import fit, sweep
from percolab.bonds.words import NEVER, TOP
from percolab.measure.columns import spanning_names
from percolab.store.merging import merge
from percolab.store.results import read_results

SIZES = (8, 12)
OPTIONS = {"L": SIZES, "device": "cpu", "seed": 4, "block_size": 20}


def found_by_threshold(lattice="square", samples=60, **given):
    return sweep(lattice, samples=samples, method="threshold", **OPTIONS | given)


@pytest.mark.parametrize(
    ("lattice", "boundary"),
    [("square", "open"), ("honeycomb", ("periodic", "open")), ("triangular", "open")],
)
def test_counts_at_every_p_are_those_of_a_grid(lattice, boundary):
    p = [0.2, 0.35, 0.5, 0.55, 0.65, 0.8]
    single = found_by_threshold(lattice, boundary=boundary)
    grid = sweep(lattice, p=p, samples=60, boundary=boundary, **OPTIONS)
    for size in SIZES:
        (ours,), (theirs,) = single.of_size(size), grid.of_size(size)
        assert ours.task.stream_seed == theirs.task.stream_seed
        for name in spanning_names(ours.task.boundary):
            counts = spanning_counts(ours.thresholds(name), p)
            np.testing.assert_array_equal(counts, theirs.column(name), err_msg=name)


@pytest.mark.parametrize(
    ("change", "sealed", "message"),
    [
        (lambda found: found[...] // 2, False, "does not match its checksum"),
        (lambda found: found[:, :10], True, "the shapes of its datasets do not fit together"),
        (lambda found: found[...].astype(float), True, "thresholds holds float64, not uint64"),
        (lambda found: found[...] * 0 + NEVER - 1, True, "a threshold is above 1"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, sealed, message):
    path = stored(tmp_path / "t.h5", found_by_threshold())
    assert message in refusal_after(
        path, lambda group: replace_dataset(group, "thresholds", change), sealed=sealed
    )


def test_thresholds_and_grids_of_other_seeds_merge_and_are_fitted_together():
    options = {"L": [8, 16, 32], "device": "cpu", "samples": 400}
    single = sweep("square", method="threshold", seed=1, **options)
    grid = sweep("square", p=[0.4, 0.45, 0.5, 0.55, 0.6], seed=2, **options)
    both = merge([("a", single), ("b", grid)])
    assert [curve.L for curve in read_curves(both)] == [8, 8, 16, 16, 32, 32]
    estimate = fit(both)
    assert_z(estimate.threshold, 0.5, estimate.threshold_error)


def test_curves_cover_the_transition_at_rounded_p():
    found = (np.linspace(0.4, 0.6, 1000) * TOP).astype(np.uint64)[None]
    p = transition_grid(found, points=11)
    np.testing.assert_allclose(p, np.linspace(0.402, 0.598, 11), atol=0.002)
    assert p.tolist() == [round(value, 4) for value in p.tolist()]
    assert transition_grid(np.full((1, 5), NEVER, np.uint64)).tolist() == [1.0]


def test_the_command_line_sweeps_continues_and_exports():
    study = ("sweep", "--lattice", "square", "-L", "6,9", "--method", "threshold",
             "--samples", 200, "--device", "cpu", "--out", "t.h5", "--quiet")  # fmt: skip
    assert "p_c = 0." in answer(*study)
    before = read_results("t.h5").runs
    answer(*study)
    assert read_results("t.h5").runs == before
    assert "thresholds" in answer("status", "t.h5")
    rows = list(csv.DictReader(io.StringIO(answer("export", "t.h5", "-p", "0.3:0.7:3"))))
    assert [(row["L"], row["p"]) for row in rows] == [
        (size, p) for size in ("6", "9") for p in ("0.3", "0.5", "0.7")
    ]
    assert all(row["clusters"] == "" and 0 <= float(row["spanning_x"]) <= 1 for row in rows)
    single = list(csv.DictReader(io.StringIO(answer("export", "t.h5", "--thresholds"))))
    assert len(single) == 400
    assert [*single[0]][:7] == ["lattice", "model", "boundary", "L", "sites", "seed", "sample"]
    assert {(row["L"], row["sites"], row["model"]) for row in single} == {
        ("6", "36", "bond"), ("9", "81", "bond")
    }  # fmt: skip
    assert sorted(int(row["sample"]) for row in single) == sorted([*range(200)] * 2)
    share = np.mean([float(row["T_x"]) <= 0.5 for row in single if row["L"] == "6"])
    assert f"{share:.10g}" == f"{float(rows[1]['spanning_x']):.10g}"


def test_a_grid_has_no_thresholds_to_export(tmp_path):
    path = stored(tmp_path / "g.h5", sweep("square", L=[4], p=[0.5], samples=20, device="cpu"))
    assert "sweep with --method threshold" in refusal("export", path, "--thresholds")
    assert "only for method threshold or microcanonical" in refusal("export", path, "-p", "0.5")
