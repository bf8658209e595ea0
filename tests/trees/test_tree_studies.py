"""Studies of trees: what is stored, that it continues and merges, and what is read off it."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, run

import percolab
from percolab.analysis.text import tree_table
from percolab.analysis.trees import fit_trees
from percolab.errors import AnalysisError, InputError
from percolab.measure.trees import WEIGHT_BINS, WEIGHT_BITS

L, SAMPLES = 12, 200


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "tree.h5"
    given = {"L": [8, L], "samples": SAMPLES, "block_size": 20, "device": "cpu", "out": path}
    return percolab.sweep("square", method="tree", **given), path


def of_size(results, size):
    (found,) = (item for item in results.tasks.values() if item.task.size == size)
    return found


def test_the_trees_of_a_study_are_those_of_the_samples_that_grids_have(trees):
    results, _ = trees
    item = of_size(results, L)
    thresholds = percolab.sweep("square", method="threshold", L=L, samples=SAMPLES, device="cpu")
    (other,) = thresholds.tasks.values()
    # T of the trees is rounded to 32 digits.
    exact = other.all_thresholds().astype(object).sum(axis=1)
    for axis, letter in enumerate("xy"):
        stored = item.column(f"tree_threshold_{letter}")[:, 0].astype(object)
        assert np.all(abs(stored * 2**31 - exact[:, axis]) <= SAMPLES * 2**30)
    assert np.all(item.column("tree_bonds") == (L * L - 1) * item.task.block_size)


@pytest.mark.slow
def test_on_the_square_torus_accepted_shares_of_w_and_1_minus_w_add_up_to_one():
    results = percolab.sweep(
        "square", method="tree", boundary="periodic", L=16, samples=1000, device="cpu"
    )
    (item,) = results.tasks.values()
    histogram = item.extra("tree_weights")[:, 0].astype(float)
    bonds, sites = 2 * 16**2, 16**2
    shares = histogram / (item.task.block_size * bonds / WEIGHT_BINS)
    both = shares + shares[:, ::-1]
    error = both.std(axis=0, ddof=1) / np.sqrt(len(both))
    # The torus closes with one bond less than half of all: the sum is (N - 1) / N on average.
    expected = np.mean(both)
    assert expected == pytest.approx((sites - 1) / sites, abs=1e-12)
    half = slice(0, WEIGHT_BINS // 2)
    z = (both.mean(axis=0)[half] - 1) / error[half]
    # What the closing bonds lack lies near w = 1/2, where it is 2 / N in a few bins at most.
    assert np.all(abs(z[: WEIGHT_BINS // 4]) < 4)
    assert np.std(z[: WEIGHT_BINS // 4]) > 0.3


def test_what_is_printed_is_what_the_file_gives(trees, tmp_path):
    results, path = trees
    found = json.loads(answer("fit", path, "--json"))
    assert [item["L"] for item in found["sizes"]] == [8, L]
    expected = of_size(results, L).column("tree_weight").sum() / (SAMPLES * L * L * 2**WEIGHT_BITS)
    assert found["sizes"][1]["weight"]["value"] == pytest.approx(expected, rel=1e-12)
    again = answer("tree", "--lattice", "square", "-L", "4,5,6", "--samples", "30",
                   "--device", "cpu", "--out", tmp_path / "n.h5", "--quiet")  # fmt: skip
    text = answer("fit", tmp_path / "n.h5")
    assert again.splitlines()[1:] == text.splitlines()[1:]
    for target in ("tree.png", "tree.html"):
        what = ["plot", "--kind", "tree"] if target.endswith("png") else ["report"]
        answer(*what, path, "--out", tmp_path / target)
        assert (tmp_path / target).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sweep", "--method", "tree", "-p", "0.5"], "method tree uses all bonds"),
        (["sweep", "--method", "tree", "--model", "site"], "model must be bond, not site"),
        (["sweep", "--method", "tree", "--measure", "sizes"], "measures only trees"),
        (
            ["sweep", "--method", "tree", "-L", "8,16", "--target-error", "0.01"],
            "give the number of samples",
        ),
        (["tree", "--method", "quick"], "unknown tree method 'quick'"),
        (["tree", "--method", "prim:persistent", "--device", "cpu"], "does not run on cpu"),
        (["tree", "--samples", "0"], "0 is not in the range"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(arguments, expected, tmp_path):
    out = tmp_path / "out.h5"
    size = [] if "-L" in arguments else ["-L", "8"]
    found = run(*arguments, *size, "--out", out)
    assert found.exit_code == 2
    assert expected in found.output
    assert "Traceback" not in found.output
    assert not out.exists()


def test_unconnected_source_and_target_are_reported(tmp_path):
    graph = tmp_path / "two.txt"
    graph.write_text("0 1\n1 2\n3 4\n")
    command = ["tree", "--graph", str(graph), "--source", "0", "--target", "3", "--samples", "10"]
    found = run(*command, "--out", tmp_path / "out.h5")
    assert found.exit_code == 2
    assert "source and target are not connected" in found.output


def test_unconnected_sides_of_a_lattice_are_reported():
    skew = percolab.Lattice.from_cell(
        np.eye(2), [[0, 0], [0.5, 0]], [(0, 1, (0, 0)), (0, 0, (1, 1)), (0, 0, (1, 0))]
    )
    with pytest.raises(InputError, match="the two sides along y are not connected"):
        percolab.sweep(skew, L=[(1, 2)], method="tree", samples=1, device="cpu")


def test_a_sweep_of_a_graph_ends_with_its_trees():
    Path("ring.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,0\n")
    told = answer("sweep", "--graph", "ring.csv", "--method", "tree", "--samples", 8, "--device",
                  "cpu", "--out", "ring.h5")  # fmt: skip
    assert answer("fit", "ring.h5") == told.replace("; results in ring.h5", "")
    assert "weight/site" in told


@pytest.mark.parametrize("of", [{"lattice": "square", "L": [4, 8]}, {"graph": [(0, 1), (1, 2)]}])
def test_trees_are_fitted_from_python(of):
    results = percolab.sweep(**of, method="tree", samples=8, device="cpu")
    assert results.fit().to_dict() == fit_trees(results).to_dict()
    assert results.summary() == tree_table(fit_trees(results))
    with pytest.raises(AnalysisError, match="trees have no spanning curve"):
        results.estimates()
    with pytest.raises(InputError, match="of trees all means are fitted"):
        results.fit("spanning_y")
    with pytest.raises(InputError, match="degree: trees have no such fit"):
        results.fit(degree=3)
