"""The program that measures Weigel's figures: its records in CUDA's simulator, and its fits."""

import json

import numpy as np
import pytest
from helpers import run_simulated

from percolab.papers.weigel2011 import figures as script

#: Runs it in the simulator.
PROGRAM = "papers/weigel2011/simulated_weigel_figures.py"


@pytest.mark.slow
def test_every_part_is_measured_and_others_are_kept(tmp_path):
    out = tmp_path / "record.json"
    out.write_text(json.dumps({"parts": {"older": {"records": []}}}))
    parts = "sizes,local,beta,few,states,komura,cpu"
    done = run_simulated(PROGRAM, str(out), "--parts", parts)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["parts"]
    assert list(found) == ["older", *parts.split(",")]
    assert not any(own["skipped"] or own["failed"] for own in list(found.values())[1:])
    assert found["sizes"].keys() >= {"commit", "command", "device_name", "versions", "started"}
    sizes = found["sizes"]["records"]
    on_tiles = {(r["labeler"], r["L"], r["B"]) for r in sizes if "B" in r}
    for name in ("tiles:self+sewing", "tiles:self+relaxation"):
        assert {(name, size, edge) for size in (4, 8) for edge in (2, 4)} <= on_tiles
    six = {f"tiles:{a}+{b}" for a in ("self", "bfs", "union") for b in ("sewing", "relaxation")}
    others = {"komura_2015", "four_step", "tiled"}
    assert {r["labeler"] for r in sizes} == six | others
    whole = {"update", "activation"}
    steps = whole | {"local", "consolidation", "roots", "flip"}
    for r in sizes:
        expected = steps if "B" in r else whole | {"labels", "flip"}
        assert r["ns_a_site"].keys() == expected - ({"flip"} if r["labeler"] == "tiled" else set())
        assert ("steps" in r) == r["labeler"].endswith("relaxation")
    # Where no bond is open, the first step finds that no label changes.
    cold = [r for r in found["beta"]["records"] if r["ratio"] < 0.5 and "steps" in r]
    assert [set(r["steps"]) for r in cold] == [{1}]
    assert {r["update"] for r in found["few"]["records"]} == {
        "sw", "wolff", "few:1,flip=0.5", "few:4,flip=0.5",
    }  # fmt: skip
    assert {r["states"] for r in found["states"]["records"]} == {2, 3, 4}
    assert all(r["ns_a_site"]["update"] > 0 for r in found["cpu"]["records"])
    assert "2.0 steps" in done.stdout or "3.0 steps" in done.stdout


@pytest.mark.slow
def test_without_time_everything_is_named_as_skipped(tmp_path):
    out = tmp_path / "record.json"
    settings = ("--parts", "sizes,cpu", "--seconds", "-1")
    done = run_simulated(PROGRAM, str(out), *settings)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["parts"]
    assert found["sizes"]["skipped"] == [{"L": 4}, {"L": 8}]
    assert not found["sizes"]["records"] + found["cpu"]["records"]


def test_fits_find_what_was_put_in():
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


def test_the_best_edge_takes_least_in_all():
    relaxed = "tiles:self+relaxation"
    records = [record(relaxed, 64, 8, 1, 5, 1), record(relaxed, 64, 16, 3, 2, 1)]
    records += [record(relaxed, 128, 8, 1, 1, 1), record(relaxed, 128, 16, 3, 2, 1)]
    for each, steps in zip(records, (8, 4, 16, 8), strict=True):
        each["steps"] = [steps]
    found = script.fits(records, 8)
    assert found["best_edge"] == {64: 16, 128: 8}
    assert found["steps"]["exponent"] == pytest.approx(1)
