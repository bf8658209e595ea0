"""percolab invade: what it tells, writes and refuses."""

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal, run, tree_of
from helpers import slow

from percolab import invade, load_lattice, sweep
from percolab.analysis.trees import InvasionMeans, fit_mass_dimension, fit_size_dimension
from percolab.figures.invasion import Curves, plot_invasion
from percolab.store.tree import check_seal

SQUARE = ("--lattice", "square", "-L", 24)


def test_one_invasion_is_told_and_written_in_three_formats():
    found = invade("square", 24, seed=5, trapping=True)
    for name in ("one.csv", "one.npz", "one.h5"):
        text = answer("invade", *SQUARE, "--seed", 5, "--trapping", "--out", name)
    assert f"invaded {found.num_invaded} of 576 sites" in text
    assert f"breakthrough at step {found.breakthrough}, T = {found.threshold:.12g}" in text
    with open("one.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["site"]) for row in rows] == found.sites.tolist()
    assert [row["weight"] for row in rows[:24]] == [""] * 24
    assert [float(row["weight"]) for row in rows[24:]] == found.weights[24:].tolist()
    with np.load("one.npz") as arrays, h5py.File("one.h5") as file:
        for name in ("sites", "origins", "bonds", "weights", "fronts", "tried", "accepted"):
            np.testing.assert_array_equal(arrays[name], getattr(found, name))
            np.testing.assert_array_equal(file[name][...], getattr(found, name))
        assert json.loads(str(arrays["record"]))["seed"] == 5
    check_seal(tree_of(Path("one.h5")))


def test_means_of_several_sizes_give_the_dimension():
    told = json.loads(answer("invade", "--lattice", "square", "-L", "8,16,32", "--samples", 30,
                             "--json"))  # fmt: skip
    counts = [invade("square", 16, sample=sample).num_invaded for sample in range(30)]
    item = told["sizes"][1]["invaded"]
    assert item["mean"] == pytest.approx(np.mean(counts))
    assert item["error"] == pytest.approx(np.std(counts, ddof=1) / 30**0.5)
    assert abs(told["dimension"]["value"] - 91 / 48) < 4 * told["dimension"]["error"] + 0.05
    text = answer("invade", "--lattice", "square", "-L", "8,16,32", "--samples", 30)
    assert f"D = {told['dimension']['value']:.2f}"[:6] in text
    assert "percolation has 1.89583  (91/48)" in text
    assert text.startswith("Bond invasion, square, L = 8, 16, 32, seed 1\n")
    assert told["L"] == [8, 16, 32]
    assert told["sites"] == [size["sites"] for size in told["sizes"]] == [64, 256, 1024]
    assert "breakthrough" not in told  # which is of one size


@pytest.mark.parametrize(("samples", "unsure"), [(1, ""), (2, "71 %"), (9, "25 %"), (10, "")])
def test_errors_of_few_samples_have_a_note(samples, unsure):
    text = answer("invade", *SQUARE, "--samples", samples)
    record = json.loads(answer("invade", *SQUARE, "--samples", samples, "--json"))
    (note,) = record.get("notes", [""])
    assert (unsure in note) if unsure else not note
    assert text.count("note: ") == bool(unsure)
    assert f"note: {note}" in text or not unsure


def test_dimensions_of_exact_power_laws():
    errors = {"invaded": 1.0, "threshold": 0.0, "front": 0.0, "largest_burst": 0.0}
    means = [
        InvasionMeans(L, 9, 9, dict.fromkeys(errors, 0.0) | {"invaded": 3 * L**1.75}, errors)
        for L in (16, 32, 64)
    ]
    assert fit_size_dimension(means).value == pytest.approx(1.75)
    assert fit_size_dimension(means[:1]) is None
    radii = np.array([4.0, 8.0, 16.0])
    masses = np.outer([1.0, 1.2, 0.9], radii**1.5)
    fit = fit_mass_dimension(radii, masses)
    assert (fit.value, fit.statistical_error) == (pytest.approx(1.5), pytest.approx(0.0, abs=1e-9))
    assert fit_mass_dimension(radii, masses[:1]) is None
    assert fit_mass_dimension(radii, masses[[0, 0]]) is None


def test_mass_dimension_allows_for_an_invasion_that_ends_and_for_small_radii():
    radii = 4.0 * 2 ** np.arange(0, 5, 0.5)
    noise = 1 + 0.1 * np.random.default_rng(1).standard_normal((200, 1))
    laws = radii**1.9 * np.exp([-1.6 * radii / 400, 0.5 / radii])
    for law in laws:
        fit = fit_mass_dimension(radii, law * noise)
        assert abs(fit.value - 1.9) < fit.error


@pytest.mark.parametrize(
    "options",
    [("square", 12), slow(("cubic", 6, "--trapping", "--model", "site")), slow(("bethe:3", 5))],
)
def test_figures_hold_the_numbers_of_the_invasion(options):
    name, L, *more = options
    told = json.loads(answer("invade", "--lattice", name, "-L", L, *more, "--plot", "one.svg",
                             "--json"))  # fmt: skip
    text = Path("one.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    keys = {"trapping": "--trapping" in more, "model": "site" if "site" in more else "bond"}
    found = invade(name, L, **keys)
    assert sum(told["figure"]["tried"]) == found.tried.size
    assert sum(told["figure"]["accepted"]) == found.accepted.sum()
    _, saturations = found.pressure_curve()
    assert told["figure"]["saturations"] == saturations.tolist()


@pytest.mark.parametrize("stop", ["spanning", "all"])
def test_the_capillary_curve_is_pressure_up_and_ends_where_the_invasion_stopped(stop):
    found = invade("square", 12, stop=stop)
    figure, _ = plot_invasion(found, Curves.of(found), load_lattice("square"))
    axes = next(axes for axes in figure.axes if axes.get_xlabel() == "invaded fraction")
    assert axes.get_ylabel() == "largest weight so far"
    saturation, pressure = axes.lines[0].get_data()
    pressures, saturations = found.pressure_curve()
    assert saturation[0] == found.num_sources / found.num_sites
    assert saturation[1:].tolist() == saturations.tolist()
    assert pressure[1:].tolist() == pressures.tolist()
    assert pressure.max() < 1


def test_weights_of_a_file_and_sites_of_a_graph_file():
    Path("g.csv").write_text("0,1\n1,2\n0,3\n3,4\n2,4\n4,5\n")
    np.save("w.npy", np.array([4.0, 2.0, 6.0, 1.0, 5.0, 3.0]))
    answer("invade", "--graph", "g.csv", "--source", 0, "--target", 5, "--weights", "w.npy",
           "--out", "steps.csv")  # fmt: skip
    with open("steps.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["site"]) for row in rows] == [0, 1, 2, 4, 3, 5]
    Path("w.csv").write_text("0,1,4\n1,2,2\n0,3,6\n3,4,1\n2,4,5\n4,5,3\n")
    answer("invade", "--graph", "w.csv", "--source", 0, "--target", 5, "--weights", "file",
           "--out", "again.csv")  # fmt: skip
    assert Path("again.csv").read_text() == Path("steps.csv").read_text()
    Path("names.csv").write_text("a,b,4\nb,c,2\na,d,6\n")
    answer("invade", "--graph", "names.csv", "--source", "a", "--target", "d", "--weights", "file",
           "--out", "named.csv")  # fmt: skip
    with open("named.csv", encoding="utf-8") as file:
        steps = [(row["site"], row["origin"]) for row in csv.DictReader(file)]
    assert steps == [("a", ""), ("b", "a"), ("c", "b"), ("d", "a")]
    random = np.random.default_rng(1).random((2, 8, 8))
    np.save("l.npy", random)
    told = json.loads(answer("invade", "--lattice", "square", "-L", 8, "--weights", "l.npy",
                             "--json"))  # fmt: skip
    assert told["sizes"][0]["threshold"]["mean"] in random


def test_the_invasion_of_a_graph_file_has_the_threshold_of_the_sweep_with_its_ends():
    pairs = np.unique(np.random.default_rng(7).integers(0, 60, (150, 2)), axis=0)
    np.savetxt("g.csv", pairs[pairs[:, 0] < pairs[:, 1]], fmt="%d", delimiter=",")
    ends = {"source": [40, 3], "target": [17]}
    results = sweep(graph="g.csv", **ends, method="threshold", samples=4, seed=2, device="cpu")
    (item,) = results.tasks.values()
    expected = np.concatenate([item.blocks[n].thresholds for n in sorted(item.blocks)])
    for sample in range(4):
        found = invade(graph="g.csv", **ends, seed=2, sample=sample)
        told = json.loads(answer("invade", "--graph", "g.csv", "--source", "40,3", "--target", 17,
                                 "--seed", 2, "--sample", sample, "--json"))  # fmt: skip
        assert told["sizes"][0]["threshold"]["mean"] == found.threshold
        assert found.threshold_key == expected[sample, 0]


def test_sizes_are_told_once_and_in_order():
    told = json.loads(answer("invade", "--lattice", "square", "-L", "16,8,16", "--json"))
    assert [size["L"] for size in told["sizes"]] == [8, 16]


def prepared():
    Path("g.csv").write_text("0,1\n1,2\n")
    Path("piece.csv").write_text("0,1\n2,3\n")
    Path("bare.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 0\n")
    np.save("nan.npy", np.full((2, 64), np.nan))
    np.save("few.npy", np.ones(3))
    np.save("two.npy", np.ones(2))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "invade: give a lattice and its size L, or a graph"),
        ("--lattice squar -L 8", "unknown lattice 'squar'; did you mean 'square'?"),
        ("--lattice square -L 0", "L = '0', but it must be an integer of at least 1"),
        ("--lattice square -L 8 --source 64", "source: sites '64': site '64', but sites"),
        ("--lattice square -L 8 --source botom", "source 'botom' is not a side; did you mean 'b"),
        ("--lattice square -L 8 --source none.txt", "source: none.txt: no such file"),
        ("--lattice kagome -L 8 --source 9", "source: point 9 of kagome has no site"),
        ("--lattice square -L 8 --source 3 --target 3", "site 3 is both in the source and in the"),
        ("--lattice square -L 8 --source top --target y+", "site 56 is both in the source and in"),
        ("--lattice square -L 8 --source 0", "site 0 is both in the source and in the target"),
        ("--lattice square -L 1", "site 0 is both in the source and in the target"),
        ("--lattice square -L 8 --stop 0", "stop = 0, but it must be an integer of at least 1"),
        ("--lattice square -L 8 --stop -3", "stop = -3, but it must be an integer of at least 1"),
        ("--lattice square -L 8 --stop 5e0", "stop = 5, but the source alone has 8 sites"),
        ("--lattice square -L 8 --stop end", "stop = 'end', but it must be spanning, all or"),
        ("--lattice square -L 8 --boundary periodic", "stop: without a target give all or a"),
        ("--lattice square -L 8 --boundary periodic --source top", "top: axis y is periodic and"),
        ("--lattice square -L 8 --boundary periodic --stop all --trapping", "trapping: give a"),
        ("--lattice square -L 8 --boundary periodic --stop spanning", "stop = spanning needs a t"),
        ("--lattice square -L 8 --model ising", "model 'ising': an invasion takes bonds or sites"),
        ("--lattice square -L 8 --rng philx", "unknown rng 'philx'; did you mean 'philox'?"),
        ("--lattice square -L 8 --multi", "--multi: only a graph has it; leave it out"),
        ("--lattice square -L 8 --weights nan.npy", "weight nan, but a weight is a finite"),
        ("--lattice square -L 8 --weights few.npy", "weights have the shape (3,), but those"),
        ("--lattice square -L 8 --weights no.npy", "no.npy: no such file"),
        ("--lattice square -L 8 --p0 nan", "--p0 nan, but it must be a finite number"),
        ("--lattice square -L 8 --weights file", "--weights file: only a graph's file (--graph)"),
        ("--lattice square -L 8,16 --out a.csv", "--out: an invasion has one size; give one -L"),
        ("--lattice square -L 8 --out a.txt", "a.txt: cannot write an invasion as '.txt'; use"),
        ("--lattice square -L 8 --plot a.gif", "a.gif: cannot write a figure as '.gif'; use"),
        ("--lattice square -L 40000 --stop all", "1600000000 sites need "),
        ("--lattice square -L 99999", "L = 99999: 9999800001 sites, but at most"),
        ("--graph g.csv", "g.csv: give the source"),
        ("--graph g.csv --source 5 --stop all", "source: sites '5': site '5', but sites are"),
        ("--graph g.csv --source 0", "stop: without a target give all or a number of sites"),
        ("--graph g.csv --source 0 --target 0", "site 0 is both in the source and in the target"),
        ("--graph g.csv --source 0 --stop all --trapping", "trapping: give a target"),
        ("--graph g.csv -L 3 --source 0", "-L: a graph has its own"),
        ("--graph g.csv --source 0 --target 2 --weights few.npy", "weights have the shape (3,)"),
        ("--graph bare.mtx --source 0 --stop all --plot a.png", "nothing was invaded but"),
    ],
)  # fmt: skip
def test_what_cannot_be_invaded_is_refused_in_one_line(arguments, told):
    prepared()
    before = sorted(Path().iterdir())
    assert refusal("invade", *arguments.split()).startswith(told)
    assert sorted(Path().iterdir()) == before


def test_a_target_that_cannot_be_reached_is_told():
    prepared()
    result = run("invade", "--graph", "piece.csv", "--source", 0, "--target", 3)
    assert result.exit_code == 0
    assert "invaded 2 of 4 sites" in result.stdout
    assert "the target was not reached" in result.stdout


@pytest.mark.slow
def test_commands_for_studies_say_who_draws_an_invasion():
    answer("invade", "--lattice", "square", "-L", "6", "--out", "steps.h5")
    Path("a.csv").write_text("source,target,weight\n0,1,5\n")
    answer("tree", "--graph", "a.csv", "--weights", "file", "--out", "tree.h5")
    for command in ("status", "export", "report", "fit"):
        told = refusal(command, "steps.h5")
        assert told == (
            "steps.h5: is an HDF5 file, but no results file of a sweep; percolab plot draws the "
            "steps of an invasion"
        )
    assert "it is a minimum spanning tree, which no command reads" in refusal("status", "tree.h5")


def test_a_stored_invasion_is_drawn_again_and_nothing_else_is():
    told = json.loads(
        answer("invade", *SQUARE, "--seed", 5, "--out", "steps.h5", "--plot", "a.png", "--json")
    )
    again = json.loads(answer("plot", "steps.h5", "--json"))
    assert again["kind"] == "invasion"
    before = {key: value for key, value in told["figure"].items() if key != "file"}
    assert again == {"kind": "invasion", **before, "notes": []}
    assert Path("steps.png").read_bytes() == Path("a.png").read_bytes()
    np.save("w.npy", np.random.default_rng(1).random((2, 24, 24)))
    answer("invade", *SQUARE, "--weights", "w.npy", "--out", "given.h5")
    assert "its weights were given" in refusal("plot", "given.h5")
    Path("bare.h5").write_bytes(b"")
    assert "holds no invasion" in refusal("plot", "bare.h5", "--kind", "invasion")
    with h5py.File("steps.h5", "r+") as file:
        file["sites"][5:7] = file["sites"][5:7][::-1]
    assert "damaged" in refusal("plot", "steps.h5")
