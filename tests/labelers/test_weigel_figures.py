"""The script that measures Weigel's figures: its records in CUDA's simulator, and its fits."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import run_simulated

from percolab.lattices.lattice import load_lattice

SCRIPT = Path(__file__).parents[2] / "scripts" / "weigel_figures.py"
needs_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("weigel_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_cuda
def test_the_script_measures_words_of_files(tmp_path):
    for size in (4, 8, 12):
        words = load_lattice("square").topology((size, size)).exists.size
        np.save(tmp_path / f"words-{size}.npy", np.zeros((1, words), np.uint32))
    out = tmp_path / "record.json"
    pattern = tmp_path / "words-{L}.npy"
    done = run_simulated("simulated_weigel_figures.py", str(out), "--words", str(pattern))
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["words"] == str(pattern)
    records = document["records"]
    on_tiles = {(r["labeler"], r["L"], r["B"]) for r in records if "B" in r}
    for name in ("tiles:self+sewing", "tiles:self+relaxation"):
        assert {(name, size, edge) for size in (4, 8, 12) for edge in (2, 4)} <= on_tiles
    for name in ("tiles:bfs+sewing", "tiles:union+sewing", "tiles:self+sewing"):
        assert {(name, 12, 4), (name, 12, 6)} <= on_tiles
    # No bond is open, so the first step finds that no label changes.
    assert all(set(r["steps"]) == {1} for r in records if "steps" in r)
    parts = {"local", "consolidation", "roots"}
    assert all(r["ns_a_site"].keys() == (parts if "B" in r else {"labels"}) for r in records)
    assert document["fits"]["steps"]["exponent"] == pytest.approx(0, abs=1e-12)
    assert "self-labeling and relaxation take least" in done.stdout


def test_fits_find_what_was_put_in(script):
    ratios = np.array([8.0, 16, 32, 64])
    exponent, error, prefactor = script.fit_power(ratios, 3 * ratios**1.13)
    assert (exponent, prefactor) == pytest.approx((1.13, 3))
    assert error == pytest.approx(0, abs=1e-9)
    scattered = 3 * ratios**1.13 * np.exp([0.1, -0.1, -0.1, 0.1])
    exponent, error, _ = script.fit_power(ratios, scattered)
    # The scatter has no slope; its variance is 0.04 / 2, that of the logarithms sums to 5 ln(2)^2.
    assert exponent == pytest.approx(1.13)
    assert error == pytest.approx(np.sqrt(0.02 / 5) / np.log(2))
    sizes = [64, 128, 256, 512, 1024]
    times = [0.5 + 70 / size + 9000 / size**2 for size in sizes]
    assert script.fit_sewing(sizes, times) == pytest.approx([0.5, 70, 9000])
    assert script.fit_sewing(sizes[:3], times[:3]) is None


def record(name, size, edge, *times):
    parts = dict(zip(("local", "consolidation", "roots"), times, strict=True))
    return {"labeler": name, "L": size, "B": edge, "ns_a_site": parts}


def test_the_best_edge_takes_least_in_all(script):
    relaxed = "tiles:self+relaxation"
    records = [record(relaxed, 64, 8, 1, 5, 1), record(relaxed, 64, 16, 3, 2, 1)]
    records += [record(relaxed, 128, 8, 1, 1, 1), record(relaxed, 128, 16, 3, 2, 1)]
    for each, steps in zip(records, (8, 4, 16, 8), strict=True):
        each["steps"] = [steps]
    found = script.fits(records, 8)
    assert found["best_edge"] == {64: 16, 128: 8}
    assert found["steps"]["exponent"] == pytest.approx(1)
    assert "steps = 1.00 (L/B)^1.000" in script.tables(records, found)
