"""A notebook can do what the command line does."""

import importlib
import inspect
import json
import pickle
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, refusal, small_results, stored
from helpers import slow

import percolab
from percolab.api import estimates, fit, open_results, plot, sweep
from percolab.configurations.label import label
from percolab.errors import AnalysisError, InputError
from percolab.lattices.graph import Graph, graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.run.request import Observer

OPTIONS = {"L": [4, 8], "p": [0.4, 0.6], "samples": 30, "block_size": 10, "device": "cpu"}


def test_every_public_name_is_there():
    for name in percolab.__all__:
        assert getattr(percolab, name).__doc__
    assert dir(percolab) == sorted(percolab.__all__)


def returned():
    """Return what public functions return, by the name of its type."""
    chain = Graph.of_bonds(3, [(0, 1), (1, 2)])
    spins = {"L": [4, 8, 16], "samples": 400, "model": "ising", "device": "cpu", "burn_in": 20}
    spins["p"] = [0.5, 0.55, 0.6, 0.65]
    made = {
        "Results": lambda: small_results(),
        "ThresholdFit": lambda: fit(small_results()),
        "SizeEstimates": lambda: estimates(sweep(graph=chain, samples=40, device="cpu"))[0],
        "SpinFit": lambda: fit(sweep("square", **spins)),
        "Invasion": lambda: percolab.invade("square", 6),
        "SpanningTree": lambda: percolab.tree("square", 6),
        "Lattice": lambda: load_lattice("kagome"),
        "Graph": lambda: chain,
    }
    return [pytest.param(name, make, id=name) for name, make in made.items()]


def assert_same(one, other):
    """Fail unless two objects hold the same, attribute by attribute."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            assert_same(value, other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other):
            assert_same(first, second)
    elif hasattr(one, "__dict__") and not callable(one):
        assert_same(vars(one), vars(other))
    else:
        assert one == other or one != one


@pytest.mark.parametrize(("name", "make"), returned())
def test_what_functions_return_is_public_and_can_be_pickled(name, make):
    found = make()
    assert isinstance(found, getattr(percolab, name))
    assert_same(found, pickle.loads(pickle.dumps(found)))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'sweeep'"):
        percolab.sweeep  # noqa: B018


def test_a_sweep_into_a_file_is_the_sweep_in_memory_of_a_lattice_object(tmp_path):
    memory = sweep(load_lattice("square"), **OPTIONS)
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "results.h5"
    written = sweep("square", out=path, **OPTIONS)
    assert_equal_datasets(path, stored(tmp_path / "memory.h5", memory))
    assert open_results(path).tasks.keys() == written.tasks.keys() == memory.tasks.keys()


def test_an_observer_gets_every_block():
    told_of = []

    class Listener(Observer):
        def placed(self, size, p):
            told_of.append(("placed", size))

        def started(self, sites, done):
            told_of.append(("started", done))

        def advanced(self, results, item, blocks):
            told_of.extend(("block", item.task.size, block.number) for block in blocks)

        def finished(self):
            told_of.append(("finished",))

    sweep("square", observer=Listener(), **{**OPTIONS, "p": None})
    assert told_of[:3] == [("placed", 4), ("placed", 8), ("started", 0)]
    assert sorted(told_of[3:-1]) == [("block", size, n) for size in (4, 8) for n in range(3)]
    assert told_of[-1] == ("finished",)


def test_plot_is_the_plot_of_the_command_line(tmp_path):
    path = stored(tmp_path / "results.h5")
    numbers = plot(small_results(), tmp_path / "api.png").numbers
    message = answer("plot", path, "--json", "--out", tmp_path / "cli.png")
    assert json.loads(json.dumps(numbers)) == json.loads(message)
    assert (tmp_path / "api.png").read_bytes() == (tmp_path / "cli.png").read_bytes()


def test_means_are_those_of_the_stored_sums():
    results = sweep("square", **OPTIONS)
    (item,) = results.of_size(8)
    for name in ("spanning_y", "largest"):
        p, mean, error = results.means(name, 8)
        assert p.tolist() == [0.4, 0.6]
        place = [column.name for column in item.observables].index(name)
        np.testing.assert_allclose(mean, item.sums()[..., place].sum(axis=0) / 30)
        assert (error > 0).all()
    n = 30
    _, mean, error = results.means("spanning_y", 8)
    np.testing.assert_allclose(error, np.sqrt(mean * (1 - mean) / (n - 1)))


def test_means_of_thresholds_are_taken_at_any_p():
    options = {**OPTIONS, "p": None, "L": [8]}
    results = sweep("square", method="threshold", **options)
    p, mean, _ = results.means("spanning_x", p=[0.4, 0.6])
    assert p.tolist() == [0.4, 0.6]
    np.testing.assert_array_equal(
        mean, sweep("square", **{**options, "p": [0.4, 0.6]}).means("spanning_x")[1]
    )


def test_results_are_saved_and_merged_as_by_the_command_line(tmp_path):
    one, other = (sweep("square", seed=seed, **OPTIONS) for seed in (1, 2))
    one.save(tmp_path / "one.h5")
    assert_equal_datasets(tmp_path / "one.h5", stored(tmp_path / "again.h5", one))
    with pytest.raises(InputError, match="exists already; save writes a new file"):
        other.save(tmp_path / "one.h5")
    merged = percolab.merge([tmp_path / "one.h5", other], out=tmp_path / "both.h5")
    other.save(tmp_path / "two.h5")
    answer("merge", tmp_path / "one.h5", tmp_path / "two.h5", "--out", tmp_path / "cli.h5")
    assert_equal_datasets(tmp_path / "both.h5", tmp_path / "cli.h5")
    with pytest.raises(InputError, match="seed: give one of 1, 2"):
        merged.means("spanning_y", 8)
    larger = percolab.merge([one, sweep("square", seed=2, **OPTIONS | {"L": [8, 24]})])
    assert repr(larger).startswith("<Results of square, L = 4, 8, 24: ")
    assert "1, 2" in larger._repr_html_()
    mean = merged.means("spanning_y", 8, seed=2)[1]
    np.testing.assert_array_equal(mean, other.means("spanning_y", 8)[1])
    with pytest.raises(InputError, match="part 2 and part 1 both hold samples"):
        percolab.merge([one, one])


def test_a_mask_may_be_a_file(tmp_path):
    mask = np.random.default_rng(1).random((5, 7)) < 0.6
    np.save(tmp_path / "mask.npy", mask)
    np.testing.assert_array_equal(label(tmp_path / "mask.npy"), label(mask))
    with pytest.raises(InputError, match=r"mask\.png: no such file"):
        label(str(tmp_path / "mask.png"))


def test_labels_follow_sample_seed_and_generator():
    base = label("square", 16, p=0.5)
    np.testing.assert_array_equal(base, label("square", 16, p=0.5))
    for change in ({"sample": 1}, {"seed": 2}, {"rng": "philox"}, {"p": 0.51}):
        assert (label("square", 16, **{"p": 0.5, **change}) != base).any(), change


def test_given_bonds_take_the_place_of_random_ones():
    topology = load_lattice("square").topology((4, 4))
    closed = np.zeros_like(topology.exists)
    assert label("square", 4, opened=closed).ravel().tolist() == list(range(16))
    one = label("square", 4, opened=topology.exists)
    assert (one.shape, one.dtype, one.any()) == ((4, 4), np.int32, False)
    along_x = closed.copy()
    along_x[0] = topology.exists[0]
    assert label("square", 4, opened=along_x).tolist() == [[4 * y] * 4 for y in range(4)]


def test_a_graph_is_labeled_as_a_flat_array():
    topology = graph_topology(5, [(0, 1), (3, 4)])
    assert label(topology, p=1.0).tolist() == [0, 0, 2, 3, 3]


@pytest.mark.parametrize("model", ["bond", "site"])
def test_labels_of_a_sample_are_those_that_its_sweep_counts(model):
    given = {"model": model, "seed": 4}
    results = sweep("triangular", L=[9], p=[0.5], samples=10, block_size=1, device="cpu", **given)
    (item,) = results.tasks.values()
    for sample in range(10):
        labels = label("triangular", 9, 0.5, sample=sample, **given)
        sizes = np.unique(labels[labels >= 0], return_counts=True)[1]
        assert item.column("clusters")[sample, 0] == sizes.size
        assert item.column("largest")[sample, 0] == sizes.max()
    serial = label("triangular", 9, 0.5, sample=9, serial=True, **given)
    np.testing.assert_array_equal(serial < 0, labels < 0)
    assert set(serial[serial >= 0].tolist()) == set(range(sizes.size))


def test_the_version_is_known_without_installation(monkeypatch):
    from importlib import metadata

    from percolab.store import provenance

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(provenance, "version", missing)
    assert percolab.__version__ == version("percolab")


def test_what_a_notebook_shows_is_short_and_escaped():
    results = small_results()
    item = next(iter(results.tasks.values()))
    graph = Graph.of_bonds(3, [(0, 1)], name="<b>&")
    shown = [
        results, results.study, item, item.task, fit(results), item.blocks[0],
        load_lattice("kagome"), load_lattice("kagome").topology((8, 8)), graph,
        estimates(results, bootstrap=0)[0], percolab.tree("square", 8),
        percolab.invade("square", 8),
    ]  # fmt: skip
    for each in shown:
        assert repr(each).startswith(f"<{type(each).__name__}")
        assert len(repr(each)) < 300
        assert len(each._repr_html_()) < 2000
    assert "&lt;b&gt;&amp;" in graph._repr_html_()
    assert len(repr(results.tasks)) < 1000
    assert repr(results) == "<Results of square, L = 4, 8, 16: 180 samples in 3 tasks>"


def test_results_answer_in_a_notebook():
    results = small_results()
    assert results.fit().to_dict() == fit(results).to_dict()
    assert results.summary().startswith("p_c ")
    figure = results.plot(kind="clusters")
    assert figure._repr_png_().startswith(b"\x89PNG")
    drawn = results.show(8, 0.5, sample=np.int64(1), out="sample.png").numbers
    assert Path("sample.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="seed: the study has its own; show takes L, p"):
        results.show(8, seed=2)
    assert drawn["title"] == "square, $L = 8$, $p = 0.5$, seed 5, sample 1"


def test_the_library_prints_nothing_and_logs_what_it_does(capfd, caplog):
    with caplog.at_level("DEBUG", logger="percolab"):
        sweep("square", **{**OPTIONS, "p": None})
    assert capfd.readouterr() == ("", "")
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("pilot: L = 4: ") for line in lines)
    assert "L = 4, 8; p by a pilot; 30 samples of each; on cpu by raster" in lines[0]
    assert {record.name for record in caplog.records} == {"percolab"}


def test_progress_draws_a_bar(capfd):
    sweep("square", progress=True, **OPTIONS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err


def test_numbers_of_numpy_and_paths_are_taken_everywhere(tmp_path):
    one = np.int64(1)
    results = sweep(
        "square", L=np.array([4, 8]), p=np.float32(0.5), samples=np.int32(20), seed=one,
        block_size=np.uint8(10), workers=one, out=tmp_path / "a.h5", device="cpu",
    )  # fmt: skip
    again = sweep("square", L=[4, 8], p=0.5, samples=20, block_size=10, device="cpu")
    assert results.tasks.keys() == again.tasks.keys()
    sample = label("square", np.int64(4), np.float64(0.5), sample=one, seed=one)
    np.testing.assert_array_equal(sample, label("square", 4, 0.5, sample=1))
    assert percolab.tree("square", np.int32(4), sample=one, seed=one).parts == 1
    assert percolab.invade("square", np.int16(8), source="left", sample=one).num_sites == 64
    assert Graph.of_bonds(np.int64(3), [(0, 1)]).num_sites == 3
    figure = results.plot(tmp_path / "a.png", kind="clusters")
    assert (tmp_path / "a.png").stat().st_size > 0
    assert figure.numbers["kind"] == "clusters"


def test_a_message_names_arguments_in_python_and_options_in_a_shell():
    for _ in range(2):
        with pytest.raises(InputError, match=r"^device x: must be auto"):
            sweep(device="x")
        with pytest.raises(AnalysisError, match=r"\(sweep with measure sizes\)"):
            raise AnalysisError("no S_4 (sweep with --measure sizes)")
        assert refusal("sweep", "--device", "x").startswith("--device x: must be auto")


#: Options that name what Python has in another way, or has not: each with the reason.
_SHELL_ALONE = {
    "json": "functions return values",
    "quiet": "nothing is printed",
    "verbose": "nothing is printed",
    "bethe": "the lattice is bethe:3",
    "shells": "L of a Bethe lattice",
    "numbering": "the lattice is bethe:3:random",
    "study": "a file of settings",
    "plan": "a question of the command",
    "prepare": "a question of the command",
    "observable": "of the fit that the command prints",
}
_OF_COMMAND = {
    "label": {
        *("configuration", "out", "sizes", "slabs", "tortuosity", "voxel"),
        *("T", "K", "beta", "sweeps", "update"),
    },
    "tree": {"samples", "workers", "executor", "part", "out"},
    "plot": {"results", "columns", "kappa", "series"},
    "invade": {"samples", "plot", "p0", "out"},
    "field": {"out"},
}
_FIT = {"degree", "min_size", "nu", "omega", "priors", "window"}


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("label", percolab.label),
        ("show", percolab.show),
        ("tree", percolab.tree),
        ("invade", percolab.invade),
        ("plot", percolab.plot),
        ("field", percolab.gaussian_field),
        ("threshold", percolab.threshold),
        ("sweep", percolab.sweep),
    ],
)
def test_arguments_have_the_names_of_the_options(command, function):
    options = importlib.import_module(f"percolab.cli.{command}").command.params
    arguments = inspect.signature(function).parameters
    known = {*arguments, *_SHELL_ALONE, *_OF_COMMAND.get(command, ())}
    known |= _FIT if "options" in arguments else set()
    for option in options:
        assert known & {name.lstrip("-").replace("-", "_") for name in option.opts}, option.opts


def test_a_page_with_a_slider_and_a_graph_are_shown_as_in_the_shell():
    assert percolab.show("square", 8, 0.5, seed=3, html="a.html") == Path("a.html")
    answer("show", "--lattice", "square", "-L", 8, "-p", 0.5, "--seed", 3, "--html", "b.html")
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    Path("c.html").write_text("mine")
    with pytest.raises(InputError, match=r"c\.html: holds something else"):
        percolab.show("square", 8, html="c.html")
    Path("g.csv").write_text("a,b\nb,c\nc,d\n")
    numbers = json.loads(answer("show", "--graph", "g.csv", "-p", 0.7, "--seed", 2, "--json"))
    shown = percolab.show(graph="g.csv", p=0.7, seed=2).numbers
    assert shown == {key: value for key, value in numbers.items() if key != "figure"}


def test_graphs_are_given_by_the_same_name_everywhere(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("a,b,3\na,b,1\nb,c,2\nc,d,9\ne,f,1\n")
    found = percolab.label(graph=path, source=["a"], target=["d"])
    assert found.spanning["source-target"].tolist() == [0]
    assert (
        percolab.label(graph=path, source=["a"], target=["f"]).spanning["source-target"].size == 0
    )
    assert (percolab.label(lattice="square", L=4, p=0.3) == percolab.label("square", 4, 0.3)).all()
    assert percolab.tree(graph=path).weight == percolab.tree(path).weight == 13
    assert percolab.tree(graph=path, multi=True).weight == 13
    assert percolab.invade(graph=path, source=["a"], stop="all").num_invaded == 4


@pytest.mark.slow
def test_a_figure_takes_the_options_of_a_fit():
    results = small_results()
    usual = plot(results, kind="collapse").numbers
    assert plot(results, kind="collapse", min_size=8).numbers != usual


def results():
    """Return the small results as a notebook has them, and their file."""
    path = stored(Path("results.h5"), small_results())
    return percolab.open_results(path), path


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"p": 0.5, "sample": 3}, ("-p", "0.5", "--sample", "3")),
        slow(
            {"p": 0.5, "boundary": ["open", "periodic"]},
            ("-p", "0.5", "--boundary", "open,periodic"),
        ),
        slow({"p": 0.5, "model": "site"}, ("-p", "0.5", "--model", "site")),
        slow({"p": 0.6, "backbone": True}, ("-p", "0.6", "--backbone")),
        slow({"tree": True, "seed": 4}, ("--tree", "--seed", "4")),
        slow({"model": "ising", "T": 2.2}, ("--model", "ising", "-T", "2.2")),
    ],
)
def test_show_draws_what_the_command_draws(given, options):
    figure = percolab.show("square", 8, **given, out="own.svg")
    told = json.loads(
        answer("show", "--lattice", "square", "-L", 8, *options, "--out", "b.svg", "--json")
    )
    assert figure.numbers == {key: told[key] for key in figure.numbers}
    assert set(told) - set(figure.numbers) == {"figure"}
    assert Path("own.svg").stat().st_size > 1000


def test_show_draws_labels_and_given_weights():
    answer("label", "--lattice", "square", "-L", 6, "-p", "0.5", "--out", "labels.h5")
    told = percolab.show(labels="labels.h5").numbers
    assert told["title"] == percolab.show("square", 6, 0.5).numbers["title"]
    weights = np.arange(32.0).reshape(2, 4, 4)
    np.save("weights.npy", weights)
    drawn = percolab.show("square", tree=True, weights=weights).numbers
    assert drawn == percolab.show("square", tree=True, weights="weights.npy").numbers


@pytest.mark.parametrize("p", [50, [40, 50.0], "40,50"])
def test_percentages_are_told_as_what_they_are(p):
    with pytest.raises(InputError, match=r"from 0 to 1 \([45]0\.?0? % is 0\.[45]0?\)"):
        percolab.sweep("square", L=[4], p=p, samples=10, device="cpu")


@pytest.mark.parametrize("serial", [False, True])
def test_show_draws_what_label_returned_as_its_sample(serial):
    sample = percolab.show("honeycomb", 8, 0.65).numbers
    labels = percolab.label("honeycomb", 8, 0.65, serial=serial)
    assert percolab.show(labels=labels).numbers == sample
    of_array = percolab.show("honeycomb", labels=labels.array).numbers
    assert of_array == sample | {"title": "labels", "drawn": "cells"}


def test_show_draws_labels_of_images_and_graphs_with_their_phases_and_boundary():
    image = np.array([[1, 1, 2], [2, 2, 2], [1, 1, 1]])
    drawn = percolab.show(labels=percolab.label(image, phase="1,2", boundary="periodic")).numbers
    assert drawn["title"] == "labels, phases 1, 2, periodic along x and y"
    assert [(each["size"], each["phase"]) for each in drawn["prominent"]] == [(5, "1"), (4, "2")]
    friends = percolab.label(graph=[("a", "b"), ("b", "c"), ("d", "e")])
    assert percolab.show(labels=friends).numbers["largest"] == 3


def test_status_is_that_of_the_command():
    found, path = results()
    assert found.status() == json.loads(answer("status", path, "--json"))


@pytest.mark.parametrize("given", [{}, {"tidy": True}])
@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_export_writes_what_the_command_writes(given, name):
    found, path = results()
    found.export(f"own-{name}", **given)
    answer("export", path, *(f"--{key}" for key in given), "--out", name)
    assert Path(f"own-{name}").read_bytes() == Path(name).read_bytes()


def test_export_replaces_no_file_of_others():
    Path("notes.csv").write_text("mine\n")
    with pytest.raises(InputError, match=r"notes\.csv: holds something else"):
        small_results().export("notes.csv")
    assert Path("notes.csv").read_text() == "mine\n"


@pytest.mark.slow
def test_report_has_the_numbers_of_the_command():
    found = percolab.sweep("square", L=4, p=[0.4, 0.6], samples=20, device="cpu", out="one.h5")
    numbers = found.report("own.html")
    told = json.loads(answer("report", "one.h5", "--json"))
    assert {**numbers, "file": "one.h5"} == told
    assert Path("own.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_a_users_program_passes_strict_type_checks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import percolab\n"
        "results = percolab.sweep('square', L=[8, 16], samples=100)\n"
        "estimate = results.fit()\n"
        "low: float = estimate.threshold - estimate.threshold_error\n"
        "p, mean, error = results.means('spanning_y', 16)\n"
        "half: float = float(mean[0]) + low\n"
        "labels = percolab.label('square', 8, p=0.5)\n"
        "many: int = labels.num_clusters\n"
        "wrong: str = labels.num_clusters\n"
    )
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}", str(program)]
    words = [sys.executable, "-m", "mypy", *options]
    root = Path(percolab.__file__).parents[1]
    told = subprocess.run(words, capture_output=True, text=True, cwd=root, timeout=600).stdout
    assert re.findall(r":(\d+): error: (\w+ \w+)", told) == [("9", "Incompatible types")], told
