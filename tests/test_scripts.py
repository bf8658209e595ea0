"""Scripts that make records in results/: they run, and print what they are for."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(name, *arguments):
    command = [sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_rows_are_timed_on_a_torus_of_three_dimensions():
    shape = ("--lattice", "cubic", "--boundary", "periodic", "-L", "6,8", "--points", "1,3")
    lines = run("bench_grid.py", "--device", "cpu", "--sites", 2000, "--repeats", 1, *shape)
    rows = [line.split() for line in lines.splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        ["cubic", size, count, "p"] for size in ("6", "8") for count in ("1", "3")
    ]
    assert all(float(row[4]) > 0 for row in rows)


def test_walks_are_timed_beside_labeling_of_the_same_sweeps():
    lines = run("compare_walks.py", "--seconds", 0.01, "--largest", 16).splitlines()
    (found,) = lines[2:]
    assert found.startswith("cubic     16  T = 4.5115  wolff")
    assert "us walking" in found


def test_trees_are_timed_beside_scipys():
    scipys, ours = run("tree_times.py", "-L", 8, "--repeats", 1).splitlines()
    assert scipys.startswith("square, L = 8: scipy")
    assert ours.startswith("kruskal")
    assert ours.endswith("times faster")


@pytest.mark.slow
def test_a_synthetic_study_has_pulls():
    slopes = ROOT / "results" / "cubic-h200" / "slopes.h5"
    if not slopes.exists():
        pytest.skip(f"{slopes.name} is not in this copy")
    lines = run("synthetic_quantities.py", slopes, "--studies", 1, "--third", 0).splitlines()
    assert lines[0].startswith("0 away")
    assert lines[-3].startswith("statistical: pulls of mean")


@pytest.mark.slow
def test_a_calibration_of_tau_goes_on_where_it_was(tmp_path):
    small = ("-L", "16,32,64", "--samples", 400, "--blocks", 10, "--bootstrap", 50)
    first = run("calibrate_tau.py", "--studies", 2, *small, "--out", tmp_path)
    lines = (tmp_path / "tau.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines[1:]] == [1, 2]
    assert "2 studies, 0 without a fit" in first
    assert "| tau, chosen window | 2 |" in first
    more = run("calibrate_tau.py", "--studies", 3, *small, "--out", tmp_path)
    assert "3 studies" in more
    assert (tmp_path / "tau.jsonl").read_text().splitlines()[:3] == lines
    assert (tmp_path / "tau.md").read_text() == more


def test_swendsen_wang_is_timed_and_peers_that_are_missing_are_named():
    lines = run("compare_spins.py", "-L", "16,24", "--rounds", 2, "--seconds", 0.01).splitlines()
    rows = [line.split() for line in lines if " ns a spin " in line]
    own = [row for row in rows if row[1] == "percolab"]
    assert [row[:3] for row in own] == [
        [size, "percolab", rng] for size in ("16", "24") for rng in ("xorwow", "philox")
    ]
    assert all(float(row[3]) > 0 for row in rows)
    for name in ("mcising", "peapods"):
        if importlib.util.find_spec(name) is None:
            assert f"{name} is not installed (pip install {name}): it is left out" in lines


def test_large_samples_are_tabulated_from_their_files(tmp_path):
    from percolab.api import sweep

    paths = tmp_path / "torus.h5", tmp_path / "open.h5"
    asked = {"L": [60], "p": [0.5], "samples": 4, "device": "cpu", "slabs": 3}
    found = [
        sweep("square", **asked, boundary=boundary, out=path)
        for path, boundary in zip(paths, ("periodic", "open"))
    ]
    head, *lines = (line.split() for line in run("large_lattices.py", *paths).splitlines())
    assert head[:4] == ["lattice", "L", "boundary", "sites"]
    for line, results in zip(lines, found, strict=True):
        (item,) = results.tasks.values()
        clusters = sum(block.sums[0, 0] for block in item.blocks.values()) / (4 * 3600)
        assert float(line[7]) == pytest.approx(clusters)
        assert line[11] == "3"
    # Clusters a site of a torus and their standard deviation, as they are known.
    exact, sigma = 0.098076211, (0.171 / (4 * 3600)) ** 0.5
    assert float(lines[0][8]) == pytest.approx((float(lines[0][7]) - exact) / sigma, abs=0.01)
    assert abs(float(lines[0][8])) <= 4
    assert lines[1][8] == "-"
