"""Odd input of what people write in Python: one clear line, and no wrong answer."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from cli_support import refusal

import percolab
from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError
from percolab.lattices.graph import graph_of
from percolab.tables.flat import mean_table

pytestmark = pytest.mark.usefixtures("own_directory")

QUICK = {"L": [4], "p": [0.4, 0.6], "samples": 20, "device": "cpu"}
SQUARE = ([[1, 0], [0, 1]], [[0, 0]], [(0, 0, (1, 0)), (0, 0, (0, 1))])


@pytest.fixture(scope="module")
def results():
    """Results of three sizes, enough for a fit and its figures."""
    return percolab.sweep("square", L=[4, 8, 16], samples=60, device="cpu")


def sites_of(graph, source, target):
    """Return the numbers of the terminals."""
    content = graph_of(graph, source=source, target=target).content
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
        graph_of(graph, **terminals)
    assert str(error.value).startswith(told)


def test_a_graph_has_any_name():
    graph = nx.path_graph(2)
    graph.name = 5
    assert graph_of(graph).name == "5"
    graph.name = "a/b"
    assert graph_of(graph).name == "a/b"


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
        ("fit", {"degree": -1}, "degree must be from 1 to 8, got -1"),
        ("fit", {"degree": 1.5}, "degree = 1.5, but only integers are allowed"),
        ("fit", {"priors": -1}, "priors must be a positive factor, got -1"),
        ("fit", {"nu": "fixed"}, "nu = 'fixed', but it must be 'known' or 'free'"),
        ("fit", {"window": (0.5, 0.2)}, "window must satisfy 0 < low < high < 1"),
        ("fit", {"omega": "a"}, "omega = 'a', but it must be a number"),
        ("fit", {"omega": np.nan}, "omega must be positive, got nan"),
        ("fit", {"min_size": "foo"}, "min_size = 'foo', but only integers are allowed"),
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
