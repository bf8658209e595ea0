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
from cli_support import answer, refusal, run
from helpers import slow
from PIL import Image

import percolab
from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError
from percolab.lattices.graph import Graph, make_graph
from percolab.tables.flat import mean_table
from percolab.tasks.part import JobPart

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


def test_a_graph_has_any_name():
    graph = nx.path_graph(2)
    graph.name = 5
    assert make_graph(graph).name == "5"
    graph.name = "a/b"
    assert make_graph(graph).name == "a/b"


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


def on_square(function, **options):
    """Return a call of a function for the square lattice with L = 4."""
    return lambda _: function("square", **{"L": 4} | options)


def asked_of(method, *arguments, **options):
    """Return a call of a method of results."""
    return lambda results: getattr(results, method)(*arguments, **options)


def graph_of(graph, **terminals):
    return lambda _: make_graph(graph, **terminals)


sweep, label, tree, invade = (
    partial(on_square, getattr(percolab, name)) for name in ("sweep", "label", "tree", "invade")
)
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
    # What is no lattice.
    (lambda _: percolab.Lattice.from_cell(*SQUARE[:2], 5), "lattice lattice: bonds = 5, but"),
    (lambda _: percolab.Lattice.from_cell(*SQUARE, thresholds=[5]), "lattice lattice: thresh"),
    (lambda _: percolab.Lattice.from_cell(*SQUARE, title="\ud800"), r"lattice: '\ud800' is no"),
    # A sweep.
    (lambda _: percolab.sweep(nx.path_graph(3)), "lattice: Graph given, but it must be a name"),
    (sweep(boundary=5), "boundary = 5, but it must be a text"),
    (sweep(boundary=["open", 3]), "unknown boundary 3; known"),
    (sweep(observables=[len]), "observables: list given, but they are"),
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
    (sweep(device=3), "device 3: must be auto, cpu, cuda or cuda:n"),
    (sweep(model=3), "unknown model '3'"),
    (sweep(model="ising", update=3), "unknown update 3; known"),
    (sweep(model="ising", burn_in=10**30), f"burn_in = {10**30}, but"),
    (sweep(method=3), "unknown method 3; known: grid, "),
    (sweep(measure=3), "measure = 3, but only words are allowed"),
    (sweep(labeler=3), "unknown labeler '3'; known"),
    (lambda _: percolab.sweep(graph=CHAIN, multi="no"), "multi = 'no', but it must"),
    (
        lambda _: percolab.sweep(graph=CHAIN, source=0, target=[2, 0]),
        "site 0 is both in the source and in the target",
    ),
    # Labels.
    (label(L=None), "a sample needs L"),
    (label(L=0), "L = 0, but"),
    (label(L=(4, 8, 2)), "L = "),
    (label(L=[]), "but it must be one integer"),
    (label(p=1.5), "p = 1.5, but"),
    (label(p=float("nan")), "p = nan, but"),
    (label(p=True), "p = [True], but only numbers"),
    (label(rng={}), "unknown rng {}"),
    (label(rng="xorwov"), "did you mean 'xorwow'"),
    (label(labeler="rastre"), "did you mean 'raster'"),
    (label(labeler=[]), "labeler = [], but it must be a name"),
    (label(device="nonsense"), "must be auto, cpu, cuda or cuda:n"),
    (label(serial="no"), "serial = 'no', but it must be True"),
    (label(opened=np.zeros((2, 7), np.uint32)), "opened is uint32 (2, 7), but the bonds of"),
    (lambda _: percolab.label(5, 4), "label: int given, which is no lattice"),
    (lambda _: percolab.label([[1, 0], [0, 1]]), "label: a list given: a mask is an array"),
    (lambda _: percolab.label(EYE, boundary=5), "boundary = 5, but it must be a text"),
    (lambda _: percolab.label(EYE, lattice=3), "lattice = 3, but it must be a lattice"),
    (lambda _: percolab.label(EYE, seed=5), "seed: an image is a configuration already"),
    (lambda _: percolab.label(EYE, model="site"), "model: an image is a configuration al"),
    (lambda _: percolab.label(np.ones(5)), "name its lattice with lattice="),
    (lambda _: percolab.label(np.array([[0.1, 0.2], [0.8, 0.9]])), "threshold 0.2 (Otsu"),
    # Trees and invasions.
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
    (lambda _: percolab.Graph.of_bonds(2, [(0, 1)], names=5), "names = 5, but it must be a list"),
    (lambda _: percolab.label(np.eye(3), phase=1, connectivity="8"), "connectivity = '8', but in"),
    (lambda _: percolab.open_results(3), NO_FILE),
    (lambda _: percolab.open_results("a\0.h5"), NO_FILE),
    (lambda results: percolab.merge([results, 3]), "or the name of a file"),
    (asked_of("save", None), NO_FILE),
    (asked_of("plot", 3, kind="curves"), NO_FILE),
    (asked_of("fit", degree=-1), "degree = -1, but it must be an integer from 1 to 8"),
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
    (asked_of("plot", kind=5), "unknown kind 5; known: "),
    (asked_of("plot", out="x.txt", kind="drift"), "x.txt: cannot write a figure as '.txt'"),
    (asked_of("show", L=8, p="a"), "p = 'a', but it must be a number"),
    (asked_of("show", L=8, seed=5), "seed: the study has its own"),
    (asked_of("show", L=9), "p: give it, as there is no p of L = 9"),
    (asked_of("means", "spanning_y"), "L: give one of 4, 8"),
    (asked_of("means", "spanning_y", 5), "L = 5 is not in these results; there: 4, 8"),
    (asked_of("means", "spaning_y", 4), "observable = 'spaning_y' is not in these results; did"),
    (asked_of("means", "clusters", [4, 8]), "L = [4, 8], but it must be one integer"),
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
        len(list(JobPart(2, 3).below(n))) for n in range(9)
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
    """Run a command as a process of its own, with these variables of the environment."""
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
@pytest.mark.filterwarnings("error")
def test_what_a_mask_hides_is_not_taken_for_what_it_is(name):
    use, array = MASKED[name]
    masked = np.ma.masked_array(array, np.zeros(array.shape, bool))
    with pytest.raises(InputError, match=r"a masked array; say what is under its mask"):
        use(masked)
    use(masked.filled())


@pytest.mark.parametrize("sizes", ["4.0", 4.0, [np.float32(4)], np.array([4.0]), "4e0"], ids=str)
def test_a_size_with_a_point_is_a_whole_number(sizes):
    assert percolab.sweep("square", **QUICK | {"L": sizes}).study.sizes == (4,)
    with pytest.raises(InputError, match=r"L = .*4\.5.*, but"):
        percolab.sweep("square", **QUICK | {"L": "4.5"})


def test_p_may_come_from_a_generator():
    assert percolab.sweep("square", **QUICK | {"p": (n / 10 for n in (4, 6))}).study.p == (0.4, 0.6)


def test_a_message_is_one_line_whatever_is_given():
    with pytest.raises(InputError, match=r"^degree = array\(\[\[1, 2\], \[3, 4\]\]\), but .*$"):
        percolab.fit(percolab.sweep("square", **QUICK), degree=np.array([[1, 2], [3, 4]]))


def test_results_are_written_to_results_files_alone(results, tmp_path):
    with pytest.raises(InputError, match=r"ends in \.csv, but a results file ends in \.h5"):
        results.save(tmp_path / "a.csv")
    results.save(tmp_path / "a.h5")
    message = refusal("merge", str(tmp_path / "a.h5"), "--out", str(tmp_path / "b.csv"))
    assert "b.csv ends in .csv, but a results file ends in .h5 or .hdf5" in message
    assert not list(tmp_path.glob("*.csv"))


def test_flags_and_numbers_of_replicas_are_checked(results, tmp_path):
    with pytest.raises(InputError, match="tidy = 'no', but it must be True or False"):
        results.export(tmp_path / "a.csv", tidy="no")
    with pytest.raises(InputError, match="sizes = 1, but it must be True or False"):
        results.to_pandas(sizes=1)
    for number in (-5, 10**9):
        with pytest.raises(InputError, match=f"bootstrap = {number}, but"):
            results.plot(bootstrap=number)
        with pytest.raises(InputError, match=f"bootstrap = {number}, but"):
            results.report(tmp_path / "a.html", bootstrap=number)


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


@pytest.mark.parametrize(
    ("correlation", "problem"),
    [
        ("exp", "it must be a function of distances"),
        (lambda r: np.ones(3), "a finite number for each distance"),
        (lambda r: r * np.nan, "a finite number for each distance"),
        (lambda r: 4 * np.exp(-r), "it is 4 at distance 0, but it must be 1"),
    ],
    ids=["text", "shape", "nan", "variance"],
)
def test_a_correlation_that_is_none_is_refused(correlation, problem):
    with pytest.raises(InputError, match=problem):
        percolab.gaussian_field((8, 8), correlation=correlation)
    with pytest.raises(InputError, match="exponent = inf"):
        percolab.gaussian_field((8, 8), np.inf)


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
    with pytest.raises(InputError, match="ensemble 3: give its name"):
        percolab.Ensemble(3)
    topology = percolab.graph_topology(3, [(0, 1)], source=0, target=2)
    assert [layer.tolist() for layer in topology.end_layers[0]] == [[0], [2]]


def test_what_is_no_image_lattice_or_array_to_write_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    image, out = np.random.default_rng(1).random((6, 6, 6)) < 0.4, tmp_path / "labels.npy"
    for given, name in ((3, "int"), (None, "NoneType")):
        with pytest.raises(InputError, match=f"an image is an array or a file, no {name}"):
            percolab.label_in_slabs(given, out=out)
    with pytest.raises(InputError, match="out = None, but it must be the name of a file"):
        percolab.label_in_slabs(image, out=None)
    with pytest.raises(InputError, match="label: DataFrame given, which is no lattice"):
        percolab.label(pandas.DataFrame(image[0]))
    found = percolab.label_in_slabs(image, "cubic", slabs=2, out=out)
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


RAGGED = [[1, 2], [3]]
NONSENSE = {
    "weights": lambda: percolab.threshold(weights=RAGGED),
    "tree": lambda: percolab.tree("square", 4, weights=RAGGED),
    "invade": lambda: percolab.invade("square", 4, weights=RAGGED),
    "bonds": lambda: Graph.of_bonds(4, RAGGED),
    "no bonds": lambda: percolab.graph_topology(4, 3),
    "no degrees": lambda: percolab.Ensemble("config", degrees=3),
    "lattice": lambda: percolab.threshold(3, weights=np.ones((3, 3))),
    "no slices": lambda: percolab.label_in_slabs([], out="labels.npy"),
    "a number": lambda: percolab.open_table({"L": 8, "p": [0.1], "k": [1], "n": [10]}),
    "a name": lambda: percolab.open_table("\0.csv"),
    "neighbours": lambda: percolab.label(np.ones((3, 3)), connectivity=[4]),
    "a long name": lambda: percolab.label("x" * 5000),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_makes_no_sense_is_refused_in_a_line(name):
    with pytest.raises(InputError) as refused:
        NONSENSE[name]()
    assert "\n" not in str(refused.value)


def test_boundaries_are_no_array_and_a_site_may_be_one_of_no_axes():
    kinds = np.array(["periodic", "open"])
    for of in ({"configuration": np.ones((2, 3))}, {"configuration": "square", "L": 4}):
        with pytest.raises(InputError, match="it must be a text, or a list of texts"):
            percolab.label(**of, boundary=kinds)
    path = nx.path_graph(3)
    assert percolab.flow(graph=path, source=np.array(0), target=np.array(2)).resistance == 2.0


def test_kappa_of_a_table_is_yes_or_no():
    rows = {"L": [8, 8, 16, 16], "p": [0.4, 0.6] * 2, "mean": [1, 2, 1, 3], "error": [0.1] * 4}
    with pytest.raises(InputError, match=r"kappa = 1\.75, but it must be True or False"):
        percolab.open_table(rows).fit(kappa=1.75)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
@pytest.mark.filterwarnings("error")
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
    import scipy.sparse

    matrix = scipy.sparse.csr_array(np.array([[0.0, np.nan], [np.nan, 0.0]]))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    for graph in (matrix, tmp_path / "a.npz"):
        with pytest.raises(InputError, match="a value is NaN, but a weight is a number"):
            percolab.label(graph=graph)
