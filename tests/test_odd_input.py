"""Odd input of what people write in Python: one clear line, and no wrong answer."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from cli_support import answer, refusal, run
from helpers import slow
from PIL import Image

import percolab
from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError
from percolab.lattices.graph import Graph, make_graph
from percolab.tables.flat import mean_table
from percolab.tasks.part import JobPart

GRID = {"p": [0.4, 0.6], "samples": 20, "device": "cpu"}
QUICK = {"L": [4], **GRID}
SQUARE = ([[1, 0], [0, 1]], [[0, 0]], [(0, 0, (1, 0)), (0, 0, (0, 1))])


@pytest.fixture(scope="module")
def results():
    """Results of three sizes, enough for a fit and its figures."""
    return percolab.sweep("square", L=[4, 8, 16], samples=60, device="cpu")


@pytest.mark.parametrize(
    ("graph", "source", "target", "expected"),
    [
        (nx.grid_2d_graph(3, 3), (0, 0), (2, 2), ([0], [8])),
        (nx.grid_2d_graph(3, 3), [(0, 0)], [(2, 2)], ([0], [8])),
        (nx.path_graph([1, 2, 3]), 1, [2], ([0], [1])),
        # Without nodes that are numbers a number is a number.
        (nx.path_graph(["a", "b", "c"]), 0, "c", ([0], [2])),
        ([("a", 'd "q"'), ('d "q"', "c")], "a", 'd "q"', ([0], [1])),
    ],
    ids=["tuples", "lists of tuples", "numbers", "no numbers", "quotes"],
)
def test_terminals_are_the_nodes_of_their_names(graph, source, target, expected):
    content = make_graph(graph, source=source, target=target).content
    assert (content.source.tolist(), content.target.tolist()) == expected


@pytest.mark.parametrize("name", [5, "a/b"])
def test_a_graph_has_any_name(name):
    graph = nx.path_graph(2)
    graph.name = name
    assert make_graph(graph).name == str(name)


@pytest.mark.parametrize("factor", [1.7e308, 1e-300])
def test_otsu_of_very_large_and_very_small_values(factor):
    values = np.array([0.01, 0.02, 0.03, 0.9, 1.0, -0.01]) * factor
    assert otsu_threshold(values) == 0.03 * factor


def test_functions_are_in_the_wide_table_under_names_of_their_own():
    results = percolab.sweep("square", observables={"mine": lambda labels: 3.0}, **QUICK)
    header, rows = mean_table(results)
    assert header[-2:] == ["mine", "mine_error"]
    assert [row[-2:] for row in rows] == [[3.0, 0.0]] * 2


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


@pytest.mark.parametrize("key", ["lattice", "graph", "out"])
def test_a_null_byte_in_a_name_of_a_study_file_is_told_in_one_line(key, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(f'{key} = "a\\u0000{".toml" if key == "lattice" else ".h5"}"\n')
    assert "study.toml" in refusal("sweep", study)


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
NO_FILE = "but it must be the name of a file"
EYE = np.eye(2)
RAGGED = [[1, 2], [3]]
KINDS = np.array(["periodic", "open"])


def on_square(function, **options):
    return lambda _: function("square", **{"L": 4} | options)


def asked_of(method, *arguments, **options):
    """Return a call of a method of results."""
    return lambda results: getattr(results, method)(*arguments, **options)


def graph_of(graph, **terminals):
    return lambda _: make_graph(graph, **terminals)


def field(*arguments, **options):
    return lambda _: percolab.gaussian_field((8, 8), *arguments, **options)


sweep, label, tree, invade, show = (
    partial(on_square, getattr(percolab, name))
    for name in ("sweep", "label", "tree", "invade", "show")
)
IMAGE = np.ones((4, 4), bool)
TABLE = {"L": [8, 8, 16, 16], "p": [0.4, 0.6] * 2, "k": [20, 80, 5, 95], "n": [100] * 4}
REFUSED = [
    # What is no graph, or no site of one.
    (graph_of([(0, 1)], source=[[1, 2], 3], target=[1]), "source = [[1, 2], 3]: sites are one"),
    (graph_of([(0, 1)], source=[[0, 1]], target=[1]), "source = [[0, 1]]: sites are one list"),
    (graph_of(["ab", "bc"]), "a list has rows (site, site)"),
    (graph_of([None]), "a list has rows (site, site)"),
    (graph_of(np.array([[0, np.nan]])), "site nan, but sites are integers"),
    (graph_of(nx.path_graph(["a\ud800", "b"])), r"the name 'a\ud800' is no text in UTF-8"),
    (lambda _: percolab.load_graph(5), "a graph is no int: give a file"),
    (lambda _: Graph.of_bonds(2, 5), "bonds = 5, but it must be a list or an array"),
    (lambda _: Graph.of_bonds(2, CHAIN, name=5), "name = 5, but it must be text"),
    (graph_of(nx.path_graph([1, 2, 3]), source=0, target=1), "source: no site is named '0'"),
    (lambda _: Graph.of_bonds(4, RAGGED), "every bond must name two sites"),
    (lambda _: percolab.graph_topology(4, 3), "bonds = 3, but they are pairs of sites"),
    (lambda _: percolab.Ensemble("config", degrees=3), "degrees = 3, but they must be a list"),
    (lambda _: percolab.Ensemble(3), "ensemble 3: give its name"),
    (lambda _: Graph.of_bonds(0, []), "a graph has 1 to"),
    (lambda _: Graph.of_bonds(2, [(0, 2)]), "bond names site 2; sites are 0 to 1"),
    (lambda _: Graph.of_bonds(2, [(0, 1, 1)]), "two sites"),
    (lambda _: Graph.of_bonds(2, [(0.5, 1)]), "bond: sites must be integers"),
    (lambda _: Graph.of_bonds(2, [], source=[0], target=[-1]), "target names site -1"),
    (lambda _: Graph.of_bonds(2, [], source=[0], target=[]), "give both, or none"),
    (lambda _: percolab.label(lattice="er:k=4", L=9, p=0.5), "er:k=4: an ensemble of graphs"),
    (lambda _: percolab.label(lattice=percolab.Ensemble("er:k=4"), L=9), "no lattice"),
    (lambda _: percolab.threshold("er:k=4"), "er:k=4: an ensemble of graphs"),
    (lambda _: percolab.invade("er:k=4"), "er:k=4: an ensemble of graphs"),
    (lambda _: percolab.exact(CHAIN), "give a source and a target"),
    (lambda _: percolab.exact(CHAIN, source=0, target=2, model="ising"), "model"),
    *(
        (graph_of([(0, 1)], columns=columns), f"columns = {columns!r}, but they are")
        for columns in ("a", "a,a", 5)
    ),
    (lambda _: percolab.components("a.mtx"), "give it as a scipy"),
    (lambda _: percolab.components(scipy.sparse.csr_array((2, 3))), "but it must be square"),
    (lambda _: percolab.components(3), "a graph is no int"),
    (lambda _: percolab.components([(0, 1)]).sites("middle"), "one of core, in, out, tubes, tend"),
    # What is no lattice.
    (lambda _: percolab.Lattice.from_cell(*SQUARE[:2], 5), "lattice lattice: bonds = 5, but"),
    (lambda _: percolab.Lattice.from_cell(*SQUARE, thresholds=[5]), "lattice lattice: thresh"),
    (lambda _: percolab.Lattice.from_cell(*SQUARE, title="\ud800"), r"lattice: '\ud800' is no"),
    # A sweep.
    (lambda _: percolab.sweep(nx.path_graph(3)), "lattice: Graph given, but it must be a name"),
    (sweep(boundary=5), "boundary = 5, but it must be a text"),
    (sweep(boundary=["open", 3]), "unknown boundary 3; known"),
    (sweep(observables=[len]), "observables: list given, but they must be"),
    (sweep(observables=""), "observables: one of the names is em"),
    (sweep(seed=True), "seed = True, but only integers"),
    (sweep(seed=[1]), "seed = [1], but it must be one integer"),
    (sweep(L=[True, 4]), "L = [True, 4], but only integers"),
    (sweep(samples=True), "samples = True, but only integers"),
    (sweep(samples=0), "samples must be at least 1"),
    (sweep(samples=0.5), "samples = 0.5, but only integers"),
    (sweep(p=[0.5, np.True_]), "but only numbers from 0 to 1"),
    (sweep(target_error=True), "target_error = True, but it must"),
    (sweep(target_error=0.0), "target error 0.0 must be above 0"),
    (sweep(target_error="small"), "target_error = 'small', but it must be a number"),
    (sweep(rng=[]), "unknown rng []"),
    (sweep(workers=0), "workers 0: must be at least 1"),
    (sweep(workers="many"), "workers = 'many', but only integers"),
    (sweep(out="nowhere/results.h5"), "nowhere does not exist"),
    (sweep(out=3), f"out = 3, {NO_FILE}"),
    (sweep(out="a\0.h5"), f"out = 'a\\x00.h5', {NO_FILE}"),
    (sweep(executor=3), "executor = 3, but it must be threads, processes, mpi or dask:ADDRESS"),
    (sweep(split="lattice", blocks=(2, 2)), "blocks = (2, 2), but it must be text, as 4x4x2"),
    (sweep(device=3), "device 3: must be auto, cpu, cuda or cuda:n"),
    (sweep(model=3), "unknown model '3'"),
    (sweep(model="ising", update=3), "unknown update 3; known"),
    (sweep(model="ising", burn_in=10**30), f"burn_in = {10**30}, but"),
    (sweep(method="threshold", boundary="periodic"), "needs an open axis"),
    (sweep(method=3), "unknown method 3; known: grid, "),
    (sweep(measure=3), "measure = 3, but only words are allowed"),
    (sweep(labeler=3), "unknown labeler '3'; known"),
    (lambda _: percolab.sweep(graph=CHAIN, multi="no"), "multi = 'no', but it must"),
    (
        lambda _: percolab.sweep(graph=CHAIN, source=0, target=[2, 0]),
        "site 0 is both in the source and in the target",
    ),
    *(
        (sweep(observables={name: len}, **GRID), f"observable {name}: ")
        for name in ("L", "samples", "largest_error", "n_s")
    ),
    (
        sweep(observables={"x": lambda labels: 1.7e308}, **GRID),
        "observable x: its sum over a block",
    ),
    (sweep(executor="mpi"), "in Python give an executor of mpi4py.futures"),
    (sweep(part=(1, 4)), "part = (1, 4), but a part is k/n, as in 3/16"),
    (sweep(L=[1], measure="backbone", **GRID), "site 0 is in both terminals"),
    (sweep(measure="sizes", method="threshold"), "method threshold"),
    (sweep(measure="correlation", **GRID), "only chains of spins have one"),
    (
        sweep(measure="correlation", model="ising", K=[0.4]),
        "correlation needs a periodic axis",
    ),
    (sweep(order="degree"), "only a graph has one: give graph"),
    (lambda _: percolab.sweep(graph=CHAIN, order=3), "order = 3, but it must be a name, a file, a"),
    (lambda _: percolab.sweep(graph=CHAIN, order=[3]), "order: 3 is no bond, which is a pair of"),
    (lambda _: percolab.sweep(graph=CHAIN, model="site", order=[9]), "order 9: 9 is no site of g"),
    # Labels.
    (label(L=None), "a sample needs L"),
    (label(L=0), "L = 0, but"),
    (label(L=(4, 8, 2)), "L = "),
    (label(L=[]), "but it must be one integer"),
    (label(p=1.5), "p = 1.5, but"),
    (label(p=float("nan")), "p = nan, but"),
    (label(p=True), "p = [True], but only numbers"),
    (label(rng={}), "unknown rng {}"),
    (label(p=0.5, model="ising"), "spins have no single samples"),
    (label(rng="xorwov"), "did you mean 'xorwow'"),
    (label(labeler="rastre"), "did you mean 'raster'"),
    (label(labeler=[]), "labeler = [], but it must be a name"),
    (label(device="nonsense"), "must be auto, cpu, cuda or cuda:n"),
    (label(serial="no"), "serial = 'no', but it must be True"),
    (label(opened=np.zeros((2, 7), np.uint32)), "opened is uint32 (2, 7), but open bonds of"),
    (lambda _: percolab.label(5, 4), "label: int given, which is no lattice"),
    (lambda _: percolab.label([[1, 0], [0, 1]]), "label: a list is given, but a mask is an array"),
    (lambda _: percolab.label(EYE, boundary=5), "boundary = 5, but it must be a text"),
    (lambda _: percolab.label(EYE, lattice=3), "lattice = 3, but it must be a lattice"),
    (lambda _: percolab.label(EYE, seed=5), "seed: an image is a configuration already"),
    (lambda _: percolab.label(EYE, model="site"), "model: an image is a configuration al"),
    (lambda _: percolab.label(np.array([[0.1, 0.2], [0.8, 0.9]])), "threshold 0.2 (Otsu"),
    (label(boundary=KINDS), "it must be a text, or a list of texts"),
    (lambda _: percolab.label(EYE, boundary=KINDS), "it must be a text, or a list of texts"),
    (lambda _: percolab.label(EYE, connectivity=[4]), "connectivity = [4], but in 2"),
    (lambda _: percolab.label("x" * 5000), "unknown lattice 'xxx"),
    (lambda _: percolab.label_in_slabs([], out="a.npy"), "of files: the list is empty"),
    (
        lambda _: percolab.label_in_slabs(3, out="a.npy"),
        "an image must be an array or a file, not int",
    ),
    (
        lambda _: percolab.label_in_slabs(None, out="a.npy"),
        "must be an array or a file, not NoneType",
    ),
    *(
        (
            lambda _, out=out: percolab.label_in_slabs(EYE, out=out),
            "the labels are int32 of shape (2,",
        )
        for out in (np.zeros((4, 4), np.int32), np.zeros((2, 2), np.int16))
    ),
    (lambda _: percolab.label_in_slabs(EYE, out=None), "out = None, but it must be the name of a"),
    (label(source=[0]), "source: only a graph has it"),
    # Pictures.
    (show(), "a picture of a sample needs p"),
    (show(model="ising"), "a picture of a sample needs T"),
    (show(L=None, p=0.5), "a picture of a sample needs L"),
    (show(p=0.5, tree=True), "p: a tree is of all bonds"),
    (show(p=0.5, weights="w.npy"), "weights: only a tree"),
    (show(p=0.5, T=2.0), "p and T are both given"),
    (show(html="a.png"), "a.png: "),
    (show(html="d.html", tree=True), "tree: a page"),
    (show(L=None, labels=percolab.label(EYE)), "they have their lattice and boundary"),
    (lambda _: percolab.show(p=0.5), "a picture of a sample needs lattice and L"),
    (lambda _: percolab.show(3, L=8, p=0.5), "show: int given, which is no lattice"),
    (lambda _: percolab.show("bethe:3", 3, 0.5, backbone=True), "bethe:3: a backbone is"),
    (
        lambda _: percolab.show(np.ones((4, 4), bool)),
        "show: an array of labels is given as labels=",
    ),
    (lambda _: percolab.show(labels=np.zeros(2)), "labels: holds float64, but labels are integers"),
    (lambda _: percolab.show(labels=3), f"labels = 3, {NO_FILE}"),
    (lambda _: percolab.show(labels="a.h5", p=0.5), "p: labels have none"),
    (lambda _: percolab.show(labels="a.h5", seed=2), "seed: labels have none"),
    (lambda _: percolab.show(graph=CHAIN, L=4, p=0.5), "L: a graph is drawn with its clusters al"),
    # Fields.
    (field(correlation="exp"), "it must be a function of distances"),
    (field(correlation=lambda r: np.ones(3)), "a finite number for each distance"),
    (field(correlation=lambda r: 4 * np.exp(-r)), "it is 4 at distance 0, but it must be 1"),
    (field(np.inf), "exponent = inf"),
    # Trees and invasions.
    (lambda _: percolab.threshold(weights=RAGGED), "weights: setting an array"),
    (lambda _: percolab.threshold(3, weights=EYE), "lattice: int given, but weights"),
    (tree(weights=RAGGED), "weights: setting an array element"),
    (invade(weights=RAGGED), "weights: setting an array element"),
    (lambda _: percolab.tree(nx.path_graph(3)), "the graph: edge 0 - 1: there is no weight"),
    (lambda _: percolab.tree(nx.DiGraph([(0, 1)])), "the graph: is directed"),
    (tree(graph=CHAIN), "lattice: the graph is given as well"),
    (lambda _: percolab.tree(), "tree: give a lattice or a graph"),
    (invade(graph=CHAIN), "lattice: the graph is given as well"),
    (lambda _: percolab.invade(), "invade: give a lattice and its size L"),
    (invade(multi=True), "multi: only a graph has it"),
    (tree(method=[1]), "unknown tree method [1]"),
    (tree(boundary=5), "boundary = 5, but it must be a text"),
    (lambda _: percolab.tree([(0, 1, 2)], num_sites=np.nan), "num_sites = nan, but only integ"),
    (lambda _: percolab.tree([(0, 1, 2)], seed=5), "seed: these weights have no samples"),
    (invade(seed=1.5), "seed = 1.5, but only integers"),
    (invade(rng=[]), "unknown rng []"),
    (invade(stop=10**30), f"stop = {10**30}, but it must be an int"),
    (invade(stop=2.5), "stop = 2.5, but only integers"),
    (invade(boundary=[5]), "unknown boundary 5"),
    (invade(trapping="no"), "trapping = 'no', but it must be"),
    (invade(model=[]), "model []: an invasion takes"),
    (
        lambda _: percolab.invade(CHAIN, source=0, stop="all", weights=[1, 2], seed=2),
        "seed: given weights have no samples",
    ),
    # Results.
    (lambda _: percolab.merge(5), "merge: give a list of results"),
    (lambda _: percolab.merge([]), "at least one file"),
    (lambda _: percolab.Graph.of_bonds(2, [(0, 1)], names=5), "names = 5, but it must be a list"),
    (lambda _: percolab.label(np.eye(3), phase=1, connectivity="8"), "connectivity = '8', but in"),
    (lambda _: percolab.open_results(3), NO_FILE),
    (lambda _: percolab.open_results("a\0.h5"), NO_FILE),
    (lambda results: percolab.merge([results, 3]), "or the name of a file"),
    (asked_of("save", None), NO_FILE),
    (asked_of("plot", 3, kind="curves"), NO_FILE),
    (asked_of("fit", degree=-1), "degree = -1, but it must be an integer from 1 to 8"),
    (asked_of("fit", degree=np.array([[1, 2], [3, 4]])), "degree = array([[1, 2], [3, 4]]), but "),
    (asked_of("fit", degree=99), "degree = 99, but it must be an integer from 1 to 8"),
    (asked_of("fit", degree=1.5), "degree = 1.5, but only integers are allowed"),
    (asked_of("fit", priors=-1), "priors = -1.0, but it must be from 1e-06 to 1e+06"),
    (asked_of("fit", priors=1e-300), "priors = 1e-300, but it must be from 1e-06"),
    (asked_of("fit", priors="x"), "priors = 'x', but it must be a number"),
    (asked_of("fit", nu="fixed"), "nu = 'fixed', but it must be 'known' or 'free'"),
    (asked_of("fit", window=(0.5, 0.2)), "window must satisfy 0 < low < high < 1"),
    (asked_of("fit", window=(0.2,)), "window = (0.2,), but it must be two numbers"),
    (asked_of("fit", window="x"), "window = 'x', but it must be two numbers"),
    (asked_of("fit", window=(0.1, "x")), "window = 'x', but it must be a number"),
    (asked_of("fit", omega="a"), "omega = 'a', but it must be a number"),
    (asked_of("fit", omega=np.nan), "omega = nan, but it must be from 1e-06 to 10"),
    (asked_of("fit", omega=1e9), "omega = 1000000000.0, but it must be from 1e-06"),
    (asked_of("fit", min_size="foo"), "min_size = 'foo', but only integers are allowed"),
    (asked_of("fit", min_size=-1), "min_size = -1, but it must be an integer from 1"),
    (asked_of("fit", min_size=True), "min_size = True, but only integers"),
    (asked_of("fit", observable=""), "observable = '', but it must be the name"),
    (asked_of("fit", observable=3), "observable = 3, but it must be the name"),
    (asked_of("fit", mixed=True), "mixed: a fit has no such option"),
    (asked_of("estimates", bootstrap=-4), "bootstrap = -4, but it must be an integer"),
    (asked_of("fit", "largest"), "observable largest: no spanning observable; "),
    (asked_of("fit", "spaning_y"), "observable spaning_y: no spanning observable; "),
    (asked_of("plot", min_sise=8), "min_sise: a fit has no such option"),
    (asked_of("report", "own.pdf"), "cannot write a page as"),
    (asked_of("export", "a.xyz"), "a.xyz: cannot write a table as '.xyz'"),
    (asked_of("export", "a.csv", format="hdf"), "unknown format 'hdf'"),
    (asked_of("export", "a.csv", tidy=True, sizes=True), "tidy and sizes: each writes a"),
    (asked_of("export", "a.csv", p=0.5), "p: only for method threshold"),
    (asked_of("save", "a.csv"), "ends in .csv, but a results file ends in .h5"),
    (asked_of("export", "a.csv", tidy="no"), "tidy = 'no', but it must be True or False"),
    (asked_of("to_pandas", sizes=1), "sizes = 1, but it must be True or False"),
    *(
        (asked_of(*of, bootstrap=number), f"bootstrap = {number}, but")
        for number in (-5, 10**9)
        for of in (("plot",), ("report", "a.html"))
    ),
    (lambda _: percolab.open_table(TABLE).fit(kappa=1.75), "kappa = 1.75, but it must be True or"),
    (lambda _: percolab.fit({"L": [8]}), "dict given, but they are what a sweep returns, or the"),
    (lambda _: percolab.fit({"L": [8]}), "file (a table: percolab.open_table)"),
    (lambda _: percolab.open_table([1, 2]), "no list"),
    (lambda _: percolab.open_table("a.csv"), "no such file"),
    *(
        (lambda _, given=given: percolab.open_table({"L": [8], "p": [0.1]} | given), message)
        for given, message in (
            ({"p": [0.1, 0.2], "k": [1], "n": [10]}, "one length"),
            ({"p": np.ma.masked_equal([0.1], 0.1), "k": [1], "n": [10]}, "column p: a masked arr"),
            ({"k": [0], "n": [0]}, "no row is left: 1 row with no trials left out"),
            ({"errors": [0]}, "no column for total;"),
        )
    ),
    (lambda _: percolab.open_table({"L": 8, "p": [0.1], "k": [1], "n": [10]}), "column L: 8, but"),
    (lambda _: percolab.open_table("\0.csv"), NO_FILE),
    (asked_of("plot", kind=5), "unknown kind 5; known: "),
    (asked_of("plot", out="x.txt", kind="drift"), "x.txt: cannot write a figure as '.txt'"),
    (asked_of("show", L=8, p="a"), "p = 'a', but it must be a number"),
    (asked_of("show", L=8, seed=5), "seed: the study has its own"),
    (asked_of("show", L=9), "p: give it, as there is no p of L = 9"),
    (asked_of("means", "spanning_y"), "L: give one of 4, 8"),
    (asked_of("means", "spanning_y", 5), "L = 5 is not in these results; there: 4, 8"),
    (asked_of("means", "spaning_y", 4), "observable = 'spaning_y' is not in these results; did"),
    (asked_of("means", "clusters", [4, 8]), "L = [4, 8], but it must be one integer"),
    # What is of another type.
    (sweep(**QUICK, observer=5), "observer: int given, but it must be a percolab.run.request.Obs"),
    (label(L=4, p=0.5, observer=""), "observer: str given, but it must be"),
    (sweep(**QUICK, progress=1), "progress = 1, but it must be True or False"),
    (sweep(**(QUICK | {"L": [4, [[2], 3]]})), "only integers are allowed"),
    (sweep(L=[4], model="ising", T=2.3, method=["grid"]), "unknown method ['grid']"),
    (sweep(L=[4], model="ising", T=2.3, method="gird"), "unknown method 'gird'; did you mean"),
    (tree(L=4, method=""), "unknown tree method ''"),
    (show(L=4, p=0.5, sweeps=np.arange(2)), "sweeps = array([0, 1]), but it must be one integer"),
    (lambda _: percolab.threshold("square", labeler=["raster"]), "unknown labeler ['raster']"),
    (lambda _: percolab.threshold("square", observer=5), "observer: int given"),
    (lambda _: percolab.threshold("square", above=[]), "above = [], but it must be True or False"),
    (lambda _: percolab.threshold("square", universal=np.ones(2)), "unknown universal array"),
    (lambda _: percolab.label(IMAGE, threshold=0.5, below=[]), "below = [], but it must be True"),
    (lambda _: percolab.label(IMAGE, threshold=np.ones(2)), "but it must be a number or"),
    (lambda _: percolab.label(IMAGE, connectivity=np.ones(2)), "in 2 dimensions it is 4, 8"),
    (lambda _: percolab.flow(IMAGE, axis=["x"]), "axis ['x']: no open axis has this name"),
    (lambda _: percolab.flow(IMAGE, voxel=[1, [2]]), "voxel 1,[2]: the sides along x, y must be 2"),
    (lambda _: percolab.flow(IMAGE, source=[0, [1]], target=[2]), "source = [0, [1]], but it"),
    (lambda _: percolab.graph_topology(3, [(0, 1)], source=[0, [1]]), "must be integers"),
    (lambda _: percolab.open_table(TABLE).fit(["a"]), "series ['a'] is not in the table"),
    (asked_of("fit", nu=np.ones(2)), "but it must be 'known' or 'free'"),
    (asked_of("fit", window=[0.1, [0.9]]), "window = [0.9], but it must be a number"),
    (asked_of("means", np.ones(2)), "but it must be the name of an observable"),
    (asked_of("report", "a.html", "spaning_x"), "did you mean 'spanning_x'?"),
    (asked_of("summary", bootstrap="x"), "bootstrap = 'x', but only integers are allowed"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_nonsense_is_refused_in_one_line_and_leaves_no_file(results, call, message):
    with pytest.raises(InputError) as refused:
        call(results)
    told = str(refused.value)
    assert message in told
    assert "\n" not in told
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", ["fit", "plot", "estimates", "to_pandas", "to_xarray"])
def test_what_is_no_results_is_refused(name):
    for given, message in (("none.h5", "no such file"), (3, "int given, but they are")):
        with pytest.raises(InputError, match=message):
            getattr(percolab, name)(given)


@pytest.mark.parametrize(
    ("name", "value"), {"samples": 1, "seed": 2, "sample": 1, "rng": "philox"}.items()
)
def test_given_weights_of_an_invasion_have_no_samples(name, value):
    np.save("w.npy", np.zeros((2, 4, 4)))
    options = ("--lattice", "square", "-L", 4, "--weights", "w.npy")
    told = refusal("invade", *options, f"--{name}", value)
    assert told == f"--{name}: given weights have no samples; leave it out"


def test_bursts_of_a_sample_begin_within_its_weights():
    told = refusal("invade", "--lattice", "square", "-L", 4, "--p0", 2)
    assert told == "--p0 2.0, but the weights of a sample are from 0 to 1"
    np.save("w.npy", np.zeros((2, 4, 4)))
    options = ("--lattice", "square", "-L", 4, "--weights", "w.npy")
    assert run("invade", *options, "--p0", 2).exit_code == 0


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
        sum(map(len, JobPart(2, 3).runs(n))) for n in range(9)
    ]


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


@pytest.mark.parametrize("encoding", [slow("latin-1"), "ascii"])
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
    program = [sys.executable, "-m", "percolab", *command]
    root = str(Path(percolab.__file__).parent.parent)
    return subprocess.run(
        program, env=os.environ | {"PYTHONPATH": root} | environment, capture_output=True
    )


OF_SQUARE = (2, 4, 4)
MASKED = {
    "label": (percolab.label, np.ones((4, 4), bool)),
    "flow": (percolab.flow, np.ones((4, 4), bool)),
    "threshold": (lambda array: percolab.threshold(weights=array), np.ones((4, 4))),
    "opened": (lambda a: percolab.label("square", 4, opened=a), np.zeros(OF_SQUARE, bool)),
    "conductances": (
        lambda array: percolab.flow("square", 4, p=1, conductances=array),
        np.ones(OF_SQUARE),
    ),
    "invade": (lambda array: percolab.invade("square", 4, weights=array), np.ones(OF_SQUARE)),
    "tree": (lambda array: percolab.tree("square", 4, weights=array), np.ones(OF_SQUARE)),
    "edges": (lambda array: percolab.label(graph=array), np.array([[0, 1], [1, 2], [2, 3]])),
    "directed": (percolab.components, np.array([[0, 1], [1, 2], [2, 3]])),
    "bonds": (lambda array: Graph.of_bonds(4, array), np.array([[0, 1], [1, 2], [2, 3]])),
    "weights": (Graph.of_bonds(3, [(0, 1), (1, 2)]).with_weights, np.ones(2)),
    "p": (lambda array: percolab.sweep("square", **QUICK | {"p": array}), np.array([0.4, 0.5])),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_a_mask_hides_is_not_taken_for_what_it_is(name):
    use, array = MASKED[name]
    masked = np.ma.masked_array(array, np.zeros(array.shape, bool))
    with pytest.raises(InputError, match=r"a masked array; say what is under its mask"):
        use(masked)
    use(masked.filled())


@pytest.mark.parametrize("sizes", ["4.0", 4.0, [np.float32(4)], np.array([4.0]), "4e0"], ids=str)
def test_a_size_with_a_point_is_a_whole_number_and_p_may_come_from_a_generator(sizes):
    study = percolab.sweep("square", **QUICK | {"L": sizes, "p": (n / 10 for n in (4, 6))}).study
    assert (study.sizes, study.p) == ((4,), (0.4, 0.6))
    with pytest.raises(InputError, match=r"L = .*4\.5.*, but"):
        percolab.sweep("square", **QUICK | {"L": "4.5"})


def test_results_are_written_to_results_files_alone(results):
    results.save("a.h5")
    message = refusal("merge", "a.h5", "--out", "b.csv")
    assert "b.csv ends in .csv, but a results file ends in .h5 or .hdf5" in message
    assert not list(Path().glob("*.csv"))


def test_the_shape_of_a_block_is_checked():
    square = percolab.load_lattice("square")
    for shape in (4, (4, 4, 4), (4.0, 4), "44", (0, 4)):
        with pytest.raises(InputError, match="2 integers of at least 1, one for each axis"):
            square.topology(shape)
        with pytest.raises(InputError, match="2 integers of at least 1, one for each axis"):
            square.positions(shape)
    for boundary in ("periodic", ("open",), ("open", "x")):
        with pytest.raises(InputError, match="it must be open or periodic, one for each axis"):
            square.topology((4, 4), boundary)


def test_a_series_of_pandas_is_an_order_by_its_index():
    pandas = pytest.importorskip("pandas")
    scores = {4: 1, 0: 3}  # site 0 goes first, and no list of the sites 1 and 3
    ways = {"graph": nx.path_graph(5), "model": "site", "samples": 10, "device": "cpu"}
    by_series, by_mapping, by_list = (
        percolab.sweep(order=order, **ways).means("largest", p=0.8)[1]
        for order in (pandas.Series(scores), scores, [1, 3])
    )
    assert by_series.tolist() == by_mapping.tolist() == [4.0]
    assert by_list.tolist() == [3.0]


def test_weights_of_a_graph_are_given_with_it_or_in_it():
    edges, weights = [("a", "b"), ("b", "c"), ("c", "a")], [3, 1, 2]
    network = nx.Graph()
    network.add_weighted_edges_from((*edge, x) for edge, x in zip(edges, weights, strict=True))
    trees = [percolab.tree((edges, weights)), percolab.tree(edges, weights=weights),
             percolab.tree(tuple(edges), weights=weights), percolab.tree(network)]  # fmt: skip
    assert [tree.weight for tree in trees] == [3, 3, 3, 3]
    with pytest.raises(InputError, match="weights: the graph has weights"):
        percolab.tree((edges, weights), weights=weights)
    ways = {"source": "a", "stop": "all"}
    given = percolab.invade(edges, weights=weights, **ways)
    own = percolab.invade(network, weights="file", **ways)
    assert given.sites.tolist() == own.sites.tolist() == [0, 2, 1]


def test_probabilities_and_ensembles_take_what_numpy_and_generators_give():
    found = percolab.exact([(0, 1)], source=0, target=1)
    assert found.probability(np.float32(0.5)) == 0.5
    assert percolab.Ensemble("config", degrees=(n for n in (1, 1, 2))).degrees == (1, 1, 2)
    topology = percolab.graph_topology(3, [(0, 1)], source=0, target=2)
    assert [layer.tolist() for layer in topology.end_layers[0]] == [[0], [2]]


def test_a_data_frame_is_no_lattice_and_slabs_are_of_any_lattice():
    pandas = pytest.importorskip("pandas")
    image = np.random.default_rng(1).random((6, 6, 6)) < 0.4
    with pytest.raises(InputError, match="label: DataFrame given, which is no lattice"):
        percolab.label(pandas.DataFrame(image[0]))
    found = percolab.label_in_slabs(image, "cubic", slabs=2, out="labels.npy")
    assert np.array_equal(np.asarray(found), percolab.label(image))


def test_weights_may_be_lists_and_data_frames():
    pandas = pytest.importorskip("pandas")
    rows = [[3, 1, 2], [9, 9, 4], [0, 0, 8]]
    expected = percolab.threshold(weights=np.array(rows)).to_dict()
    assert percolab.threshold(weights=rows).to_dict() == expected
    assert percolab.threshold(weights=pandas.DataFrame(rows)).to_dict() == expected


def test_a_moment_of_currents_has_an_integer_power():
    found = percolab.flow(np.ones((3, 3)))
    assert found.current_moment(np.int8(2)) == pytest.approx(found.resistance)
    for power in ("2", 0.5, -1):
        with pytest.raises(InputError, match="it must be an integer of at least 0"):
            found.current_moment(power)


def test_blocks_that_agree_have_an_error_of_zero():
    own = {"three": lambda labels: 0.3}
    found = percolab.sweep("square", observables=own, **QUICK | {"samples": 70})
    assert found.means("three", 4)[2].tolist() == [0.0, 0.0]


def test_quantities_of_a_fit_of_spins_may_be_a_text():
    found = percolab.sweep("square", L=[4, 8], model="ising", T=[2.2, 2.3, 2.4], samples=800,
                           device="cpu")  # fmt: skip
    assert found.fit(names="Q_1, Q_2").to_dict() == found.fit(names=["Q_1", "Q_2"]).to_dict()


def test_numbers_of_numpy_name_the_graph_that_integers_name():
    ensemble = percolab.Ensemble("er:k=4")
    graphs = [
        ensemble.graph(kind(100), seed=kind(1), number=kind(3)).bonds.pairs.tolist()
        for kind in (int, np.int64, np.uint8)
    ]
    assert graphs[0] == graphs[1] == graphs[2]
    for wrong in ({"seed": "a"}, {"number": 1.5}, {"size": 100.0}):
        with pytest.raises(InputError, match="but all are integers"):
            ensemble.graph(**{"size": 100} | wrong)


def test_a_site_may_be_an_array_of_no_axes():
    path = nx.path_graph(3)
    assert percolab.flow(graph=path, source=np.array(0), target=np.array(2)).resistance == 2.0


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
def test_sizes_in_numbers_of_numpy_do_not_overflow(kind):
    square, bonds = percolab.load_lattice("square"), [(n, n + 1) for n in range(99)]
    shape = (kind(100), kind(100))
    expected = percolab.label(square.topology((100, 100)), p=0.5)
    assert np.array_equal(percolab.label(square.topology(shape), p=0.5), expected)
    assert np.array_equal(square.positions(shape), square.positions((100, 100)))
    graph = percolab.graph_topology(kind(100), bonds)
    expected = percolab.label(percolab.graph_topology(100, bonds), p=0.5)
    assert np.array_equal(percolab.label(graph, p=0.5), expected)
    image = np.ones((9, 4, 4), int)
    assert percolab.label_in_slabs(image, out=np.zeros_like(image), slabs=kind(3)).num_clusters == 1


def test_nan_in_a_matrix_is_an_error_as_in_its_file(tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0.0, np.nan], [np.nan, 0.0]]))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    for graph in (matrix, tmp_path / "a.npz"):
        with pytest.raises(InputError, match="a value is NaN, but a weight is a number"):
            percolab.label(graph=graph)
