"""Odd input of what people write in Python: one clear line, and no wrong answer."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from cli_support import answer, refusal, run
from PIL import Image

import percolab
from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError
from percolab.lattices.graph import Graph, make_graph
from percolab.tables.flat import mean_table
from percolab.tasks.part import JobPart

pytestmark = pytest.mark.usefixtures("own_directory")

QUICK = {"L": [4], "p": [0.4, 0.6], "samples": 20, "device": "cpu"}
SQUARE = ([[1, 0], [0, 1]], [[0, 0]], [(0, 0, (1, 0)), (0, 0, (0, 1))])


@pytest.fixture(scope="module")
def results():
    """Results of three sizes, enough for a fit and its figures."""
    return percolab.sweep("square", L=[4, 8, 16], samples=60, device="cpu")


def sites_of(graph, source, target):
    """Return the numbers of the terminals."""
    content = make_graph(graph, source=source, target=target).content
    return content.source.tolist(), content.target.tolist()


@pytest.mark.parametrize(("source", "target"), [((0, 0), (2, 2)), ([(0, 0)], [(2, 2)])])
def test_a_node_that_is_a_tuple_is_a_site_and_no_list_of_numbers(source, target):
    assert sites_of(nx.grid_2d_graph(3, 3), source, target) == ([0], [8])


def test_nodes_that_are_numbers_are_named_by_them():
    path = nx.path_graph([1, 2, 3])
    assert sites_of(path, 1, [2]) == ([0], [1])
    with pytest.raises(InputError, match="source: no site is named '0'"):
        sites_of(path, 0, 1)
    # Without such nodes a number is a number.
    assert sites_of(nx.path_graph(["a", "b", "c"]), 0, "c") == ([0], [2])


def test_a_name_with_quotes_in_it_is_found():
    assert sites_of([("a", 'd "q"'), ('d "q"', "c")], "a", 'd "q"') == ([0], [1])


@pytest.mark.parametrize(
    ("graph", "terminals", "told"),
    [
        ([(0, 1)], {"source": [[1, 2], 3], "target": [1]}, "source = [[1, 2], 3]: sites are one"),
        ([(0, 1)], {"source": [[0, 1]], "target": [1]}, "source = [[0, 1]]: sites are one list"),
        (["ab", "bc"], {}, "a list has rows (site, site)"),
        ([None], {}, "a list has rows (site, site)"),
        (np.array([[0, np.nan]]), {}, "site nan, but sites are integers"),
        (nx.path_graph(["a\ud800", "b"]), {}, r"the name 'a\ud800' is no text in UTF-8"),
    ],
)
def test_what_is_no_graph_or_no_site_is_told(graph, terminals, told):
    with pytest.raises(InputError) as error:
        make_graph(graph, **terminals)
    assert str(error.value).startswith(told)


def test_a_graph_has_any_name():
    graph = nx.path_graph(2)
    graph.name = 5
    assert make_graph(graph).name == "5"
    graph.name = "a/b"
    assert make_graph(graph).name == "a/b"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: percolab.sweep(nx.path_graph(3)), "lattice: Graph given, but it is a name"),
        (lambda: percolab.sweep("square", boundary=5), "boundary = 5, but it is a text"),
        (lambda: percolab.label(np.eye(2), boundary=5), "boundary = 5, but it is a text"),
        (lambda: percolab.label([[1, 0], [0, 1]]), "label: a list given: a mask is an array"),
        (lambda: percolab.sweep(observables=[len]), "observables: list given, but they are"),
        (lambda: percolab.Lattice.from_cell(*SQUARE[:2], 5), "lattice lattice: bonds = 5, but"),
        (lambda: percolab.Lattice.from_cell(*SQUARE, thresholds=[5]), "lattice lattice: thresh"),
        (lambda: percolab.Lattice.from_cell(*SQUARE, title="\ud800"), r"lattice: '\ud800' is no"),
    ],
)
def test_wrong_kinds_are_told(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(told)


@pytest.mark.parametrize("factor", [1.7e308, 1e-300])
def test_otsu_of_very_large_and_very_small_values(factor):
    values = np.array([0.01, 0.02, 0.03, 0.9, 1.0, -0.01]) * factor
    assert otsu_threshold(values) == 0.03 * factor


def test_functions_are_in_the_wide_table_under_names_of_their_own():
    results = percolab.sweep("square", observables={"mine": lambda labels: 3.0}, **QUICK)
    header, rows = mean_table(results)
    assert header[-2:] == ["mine", "mine_error"]
    assert [row[-2:] for row in rows] == [[3.0, 0.0]] * 2
    for name in ("L", "samples", "largest_error", "n_s"):
        with pytest.raises(InputError, match=f"observable {name}: "):
            percolab.sweep("square", observables={name: len}, **QUICK)


def test_a_sum_that_overflows_is_told_and_not_stored():
    with pytest.raises(InputError, match="observable x: its sum over a block is inf"):
        percolab.sweep("square", observables={"x": lambda labels: 1.7e308}, **QUICK)


@pytest.mark.parametrize(
    ("method", "options", "told"),
    [
        ("fit", {"degree": -1}, "degree = -1, but it must be an integer from 1 to 8"),
        ("fit", {"degree": 1.5}, "degree = 1.5, but only integers are allowed"),
        ("fit", {"priors": -1}, "priors = -1.0, but it must be above 0"),
        ("fit", {"nu": "fixed"}, "nu = 'fixed', but it must be 'known' or 'free'"),
        ("fit", {"window": (0.5, 0.2)}, "window must satisfy 0 < low < high < 1"),
        ("fit", {"omega": "a"}, "omega = 'a', but it must be a number"),
        ("fit", {"omega": np.nan}, "omega = nan, but it must be above 0"),
        ("fit", {"min_size": "foo"}, "min_size = 'foo', but only integers are allowed"),
        ("fit", {"mixed": True}, "mixed: a fit has no such option"),
        ("estimates", {"bootstrap": -4}, "bootstrap = -4, but it must be an integer"),
        ("plot", {"kind": 5}, "unknown kind 5; known: "),
        ("plot", {"path": "x.txt", "kind": "drift"}, "x.txt: cannot write a figure as '.txt'"),
        ("show", {"L": 8, "p": "a"}, "p = 'a', but it must be a number"),
        ("show", {"L": 8, "seed": 5}, "seed: the study has its own"),
    ],
)
def test_options_of_results_are_checked(results, method, options, told):
    with pytest.raises(InputError) as error:
        getattr(results, method)(**options)
    assert str(error.value).startswith(told)


def test_axes_that_a_figure_cannot_be_drawn_into(results):
    figure = plt.figure()
    with pytest.raises(InputError, match="kind collapse has several panels"):
        results.plot(kind="collapse", ax=figure.add_subplot())
    with pytest.raises(InputError, match="ax has the projection polar"):
        results.plot(kind="curves", ax=figure.add_subplot(projection="polar"))
    # A part of a figure is laid out with the whole.
    part = plt.figure().subfigures(1, 2)[0].subplots()
    results.plot(kind="curves", ax=part)
    assert part.lines


def test_plot_tells_of_its_kind_before_its_file():
    percolab.sweep("square", out="r.h5", **QUICK)
    assert "unknown kind '../x'" in refusal("plot", "r.h5", "--kind", "../x")
    assert "none.h5: no such file" in refusal("plot", "none.h5", "--kind", "invasion")


def test_what_is_no_name_of_a_file_is_told_in_one_line(results):
    told = "but it must be the name of a file"
    for asked in (
        lambda: percolab.open_results(3),
        lambda: percolab.open_results("a\0.h5"),
        lambda: percolab.merge([results, 3]),
        lambda: results.save(None),
        lambda: results.plot(3, kind="curves"),
    ):
        with pytest.raises(InputError, match=told):
            asked()


@pytest.mark.parametrize("key", ["lattice", "graph", "out"])
def test_a_null_byte_in_a_name_of_a_study_file_is_told_in_one_line(key, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(f'{key} = "a\\u0000{".toml" if key == "lattice" else ".h5"}"\n')
    assert "study.toml" in refusal("sweep", study)


@pytest.mark.parametrize("given", ["results.h5", 3])
def test_what_is_no_results_is_told_in_one_line(given):
    told = "open_results makes results" if given == "results.h5" else "int given, but a sweep"
    functions = percolab.fit, percolab.plot, percolab.estimates
    for function in (*functions, percolab.to_pandas, percolab.to_xarray):
        with pytest.raises(InputError, match=told):
            function(given)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": (0.2,)}, r"window = \(0.2,\), but it must be two numbers"),
        ({"window": "x"}, "window = 'x', but it must be two numbers"),
        ({"window": (0.1, "x")}, "window = 'x', but it must be a number"),
        ({"priors": "x"}, "priors = 'x', but it must be a number"),
    ],
    ids=str,
)
def test_options_of_a_fit_of_another_type_are_refused(results, options, told):
    with pytest.raises(InputError, match=told):
        results.fit(**options)


def test_means_at_p_of_exact_thresholds():
    results = percolab.sweep("square", L=[4], samples=40, method="threshold", device="cpu")
    p, mean, error = results.means("spanning_y", p=[0.6, 0.4])
    assert p.tolist() == [0.4, 0.6]
    one = results.means("spanning_y", p=0.6)
    assert [values.tolist() for values in one] == [[0.6], mean[1:].tolist(), error[1:].tolist()]
    for given, told in (
        (2, "p = 2.0, but it must be"),
        ("a", "'a' is not a number"),
        ([], "empty"),
    ):
        with pytest.raises(InputError, match=told):
            results.means("spanning_y", p=given)


CHAIN = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: percolab.invade("square", 4, seed=1.5), "seed = 1.5, but only integers"),
        (lambda: percolab.sweep("square", seed=True), "seed = True, but only integers"),
        (lambda: percolab.sweep("square", L=[True, 4]), r"L = \[True, 4\], but only integers"),
        (lambda: percolab.sweep("square", samples=True), "samples = True, but only integers"),
        (lambda: percolab.sweep("square", p=[0.5, np.True_]), "but only numbers from 0 to 1"),
        (lambda: percolab.sweep("square", target_error=True), "target_error = True, but it must"),
        (lambda: percolab.label("square", 4, True), "p = True, but it must be a number"),
        (lambda: percolab.sweep("square", rng=[]), r"unknown rng \[\]"),
        (lambda: percolab.label("square", 4, rng={}), "unknown rng {}"),
        (lambda: percolab.invade("square", 4, rng=[]), r"unknown rng \[\]"),
        (lambda: percolab.invade("square", 4, stop=10**30), "stop = 10+, but it must be an int"),
        (lambda: percolab.invade("square", 4, stop=2.5), "stop = 2.5, but only integers"),
        (lambda: percolab.label(np.eye(2), on=3), "on = 3, but it is a lattice"),
        (lambda: percolab.tree([(0, 1, 2)], num_sites=np.nan), "num_sites = nan, but only integ"),
        (lambda: percolab.sweep("square", seed=[1]), r"seed = \[1\], but it must be one integer"),
        (
            lambda: percolab.sweep(graph=CHAIN, multi="no"),
            "multi = 'no', but it must",
        ),
        (lambda: percolab.load_graph(5), "graph = 5, but it is the name of a file"),
        (lambda: Graph.of_bonds(2, 5), "bonds = 5, but it is a list or an array"),
        (lambda: Graph.of_bonds(2, CHAIN, name=5), "name = 5, but it is text"),
        (lambda: percolab.merge(5), "merge: give a list of results"),
        (lambda: percolab.label(5), "label: int given, but it is no lattice or mask"),
        (lambda: percolab.label(np.eye(2), seed=5), "seed: a mask is a configuration already"),
        (lambda: percolab.label(np.eye(2), model="site"), "model: a mask is a configuration alr"),
        (lambda: percolab.label("square", 4, serial="no"), "serial = 'no', but it must be True"),
        (lambda: percolab.label("square", 4, labeler=[]), r"labeler = \[\], but it must be a name"),
        (lambda: percolab.tree("square", 4, method=[1]), r"unknown tree method \[1\]"),
        (lambda: percolab.tree("square", 4, boundary=5), "boundary = 5, but it is a text"),
        (lambda: percolab.tree([(0, 1, 2)], seed=5), "seed: these weights have no samples"),
        (lambda: percolab.invade("square", 4, boundary=[5]), "unknown boundary 5"),
        (lambda: percolab.invade("square", 4, trapping="no"), "trapping = 'no', but it must be"),
        (lambda: percolab.invade("square", 4, model=[]), r"model \[\]: an invasion takes"),
        (
            lambda: percolab.sweep("square", model="ising", burn_in=10**30),
            "burn_in = 10+, but",
        ),
        (lambda: percolab.sweep("square", observables=""), "observables: one of the names is em"),
        (
            lambda: percolab.sweep(graph=CHAIN, source=0, target=[2, 0]),
            "site 0 is both in the source and in the target",
        ),
        (
            lambda: percolab.invade(CHAIN, source=0, stop="all", weights=[1, 2], seed=2),
            "seed: weights are given, which have no samples",
        ),
    ],
)
def test_nonsense_is_refused_in_one_line(call, told):
    with pytest.raises(InputError, match=told):
        call()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"min_size": -1}, "min_size = -1, but it must be an integer from 1"),
        ({"min_size": True}, "min_size = True, but only integers"),
        ({"degree": 99}, "degree = 99, but it must be an integer from 1 to 8"),
        ({"omega": 1e9}, "omega = 1000000000.0, but it must be above 0 and at most 10"),
        ({"observable": ""}, "observable = '', but it must be the name"),
        ({"observable": 3}, "observable = 3, but it must be the name"),
    ],
)
def test_a_fit_refuses_options_that_make_no_sense(results, options, told):
    with pytest.raises(InputError, match=told):
        results.fit(**options)


@pytest.mark.parametrize("name", ["samples", "seed", "sample", "rng"])
def test_given_weights_of_an_invasion_have_no_samples(name):
    np.save("w.npy", np.zeros((2, 4, 4)))
    options = ("--lattice", "square", "-L", 4, "--weights", "w.npy")
    value = "xorwow" if name == "rng" else 1
    told = refusal("invade", *options, f"--{name}", value)
    assert told == f"--{name}: given weights (--weights) have no samples; leave it out"


def test_bursts_of_a_sample_begin_within_its_weights():
    told = refusal("invade", "--lattice", "square", "-L", 4, "--p0", 2)
    assert told == "--p0 2.0, but the weights of a sample are from 0 to 1"
    np.save("w.npy", np.zeros((2, 4, 4)))
    options = ("--lattice", "square", "-L", 4, "--weights", "w.npy")
    assert run("invade", *options, "--p0", 2).exit_code == 0


@pytest.mark.parametrize("option", ["fit", "plot"])
def test_an_observable_without_a_name_is_refused(option):
    percolab.sweep("square", out="r.h5", **QUICK)
    assert "observable" in refusal(option, "r.h5", "--observable", "")


def test_values_of_p_that_differ_in_their_last_digit_are_one():
    near = [0.6, 0.1 + 0.2, 0.3, 0.6]
    found = percolab.sweep("square", **QUICK | {"p": near}, out="r.h5")
    (item,) = found.tasks.values()
    assert item.task.p == (0.3, 0.6)
    # What is there already is not sampled again.
    again = percolab.sweep("square", **QUICK | {"p": [0.1 + 0.2]}, out="r.h5")
    assert again.tasks.keys() == found.tasks.keys()
    (alone,) = percolab.sweep("square", **QUICK | {"p": [0.1 + 0.2]}).tasks.values()
    assert alone.task.p == (0.1 + 0.2,)


@pytest.mark.parametrize(
    "options",
    [("-p", "0.5,0.4,0.5"), ("--model", "ising", "-K", "0.45,0.4,0.45", "--burn-in", 5)],
    ids=["p", "K"],
)
def test_points_are_put_in_order_and_taken_once(options):
    answer("sweep", "--lattice", "square", "-L", 4, "--samples", 10, *options)
    (item,) = percolab.open_results("results.h5").tasks.values()
    assert len(item.task.p) == 2
    assert item.task.p == tuple(sorted(item.task.p))


def test_more_samples_than_there_can_be_blocks_are_counted():
    assert JobPart(1, 1).count(2**63) == 2**63
    assert [JobPart(2, 3).count(n) for n in range(9)] == [
        len(JobPart(2, 3).below(n)) for n in range(9)
    ]


@pytest.mark.filterwarnings("error")
def test_site_percolation_of_a_graph_places_its_p():
    found = percolab.sweep(graph=[(0, 1), (1, 2), (2, 3)], model="site", samples=20, device="cpu")
    (item,) = found.tasks.values()
    assert np.isfinite(item.task.p).all()


def test_a_damaged_tiff_is_refused_in_one_line(capfd):
    image = Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64)).astype(np.uint8))
    image.save("a.tif", compression="tiff_deflate")
    data = bytearray(Path("a.tif").read_bytes())
    data[200:400] = bytes(200)
    Path("a.tif").write_bytes(data)
    assert "a.tif: is not a TIFF image" in refusal("label", "a.tif", "--threshold", "otsu")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_output_in_an_encoding_without_some_letters(encoding):
    for command in (("lattices", "maple-leaf"), ("studies",), ("studies", "thresholds/maple-leaf")):
        done = in_process(command, PYTHONIOENCODING=encoding, PYTHONUTF8="0", LC_ALL="C")
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


@pytest.mark.parametrize("threads", ["abc", "0", "-1", ""])
def test_a_number_of_threads_that_is_none_is_told_in_one_line(threads):
    done = in_process(("info",), NUMBA_NUM_THREADS=threads)
    told = f"percolab: error: NUMBA_NUM_THREADS={threads}, but it must be an integer"
    assert done.returncode == 2
    assert done.stderr.decode().startswith(told)
    assert done.stderr.count(b"\n") == 1


def in_process(command, **environment):
    """Run a command as a process of its own, with these variables of the environment."""
    program = [sys.executable, "-m", "percolab", *command]
    root = str(Path(percolab.__file__).parent.parent)
    return subprocess.run(
        program, env=os.environ | {"PYTHONPATH": root} | environment, capture_output=True
    )
