"""A user's own observables: Python functions of labels, and those that packages bring."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from cli_support import refusal, run
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import percolab
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.store.merging import merge
from percolab.tables.flat import long_table
from percolab.tasks.kind import make_sampler

OPTIONS = {"L": [4, 6], "p": [0.4, 0.6], "samples": 30, "block_size": 10, "device": "cpu"}


def clusters(labels):
    """Return how many clusters there are, which is measured anyway."""
    return np.unique(labels[labels >= 0]).size


def corner(labels):
    """Return a negative number and a fraction."""
    return -0.5 * np.count_nonzero(labels == labels.flat[0])


@pytest.mark.parametrize(
    ("lattice", "options"),
    [
        ("kagome", {}),
        ("square", {"model": "site", "boundary": "periodic"}),
        ("bethe:3", {"L": [3, 4]}),
    ],
)
def test_a_function_is_summed_over_the_samples_that_all_else_is_measured_of(lattice, options):
    own = {"my_clusters": clusters, "corner": corner}
    results = percolab.sweep(lattice, observables=own, **OPTIONS | options)
    for item in results.tasks.values():
        np.testing.assert_array_equal(item.extra("my_clusters")[..., 0], item.column("clusters"))
        known = {key: value for key, value in options.items() if key not in ("L",)}
        expected = [
            sum(
                corner(percolab.label(lattice, item.task.size, p, sample=n, **known))
                for n in range(10)
            )
            for p in item.task.p
        ]
        assert item.extra("corner")[0, :, 0].tolist() == expected


def pieces(bonds):
    """Return the connected components of the sites that bonds name."""
    sites, ends = np.unique(bonds, return_inverse=True)
    matrix = coo_array((np.ones(len(bonds)), ends.reshape(-1, 2).T), (sites.size,) * 2)
    return connected_components(matrix, directed=False)[0]


def torn(labels, bonds):
    """Return how many bonds have two labels, or a site that is none."""
    ends = labels.ravel()[bonds]
    return np.count_nonzero((ends[:, 0] != ends[:, 1]) | (ends[:, 0] < 0))


@pytest.mark.parametrize(
    ("lattice", "options"),
    [
        ("kagome", {}),
        ("square", {"model": "site", "boundary": "periodic"}),
        ("triangular", {"model": "bond:d=0.2"}),
    ],
)
def test_a_function_may_read_the_open_bonds_or_both(lattice, options):
    own = {"pieces": pieces, "torn": torn, "my_clusters": clusters}
    results = percolab.sweep(lattice, observables=own, **OPTIONS | options)
    for item in results.tasks.values():
        assert not item.extra("torn").any()
        expected = item.column("clusters") - item.column("isolated")
        np.testing.assert_array_equal(item.extra("pieces")[..., 0], expected)
        np.testing.assert_array_equal(item.extra("my_clusters")[..., 0], item.column("clusters"))


def test_bonds_and_labels_of_a_graph_are_in_its_own_numbers():
    # The hub has the largest number, so inside it has another one.
    edges = [(k, 60) for k in range(60)]
    own = {
        "torn": torn,
        "off": lambda bonds: np.count_nonzero((bonds != 60).all(axis=1)),
        "with_hub": lambda labels: np.count_nonzero(labels == labels[60]),
    }
    given = {"p": [0.5], "samples": 20, "block_size": 20, "device": "cpu"}
    results = percolab.sweep(graph=edges, **given, observables=own)
    (item,) = results.tasks.values()
    assert not item.extra("torn").any()
    assert not item.extra("off").any()
    assert item.extra("with_hub")[0, 0, 0] == item.column("largest")[0, 0]


def test_functions_are_stored_tabulated_and_continued_by_name():
    own = {"corner": corner}
    percolab.sweep("square", out="a.h5", observables=own, **OPTIONS)
    assert "\nobservables of your own: corner\n" in run("status", "a.h5").stdout
    stored = percolab.open_results("a.h5")
    assert stored.tasks.keys() != percolab.sweep("square", **OPTIONS).tasks.keys()
    header, rows = long_table(stored)
    message = [dict(zip(header, row, strict=True)) for row in rows]
    (mean,) = [
        row["mean"] for row in message
        if (row["observable"], row["L"], row["p"]) == ("corner", 4, 0.6)
    ]  # fmt: skip
    (item,) = stored.of_size(4)
    assert mean == pytest.approx(item.extra("corner")[:, 1, 0].sum() / 30)
    # More samples, by the same name, are those of one run.
    more = percolab.sweep("square", out="a.h5", observables=own, **OPTIONS | {"samples": 50})
    whole = percolab.sweep("square", observables=own, **OPTIONS | {"samples": 50})
    for key, item in more.tasks.items():
        np.testing.assert_array_equal(item.extra("corner"), whole.tasks[key].extra("corner"))
    with pytest.raises(
        InputError, match=r"holds another study \(observables is \['corner'\] there"
    ):
        percolab.sweep("square", out="a.h5", **OPTIONS | {"samples": 70})
    assert "observables is ['corner'] there" in refusal(
        "sweep", "-L", "4,6", "-p", "0.4,0.6", "--samples", 70, "--lattice",
        "square", "--out", "a.h5",
    )  # fmt: skip
    other = percolab.sweep("square", observables=own, **OPTIONS | {"seed": 2})
    merged = merge([("one", stored), ("other", other)])
    assert sum(len(item.extra("corner")) for item in merged.tasks.values()) == 12


@pytest.mark.parametrize(
    ("own", "options", "message"),
    [
        ({"clusters": clusters}, {}, "observable clusters: it is measured already; choose another"),
        ({"a b": clusters}, {}, "observable 'a b': a name has letters, digits and underscores"),
        ({"x": 5}, {}, "observable x: 5 is not a function of labels"),
        (
            {"x": lambda labels: np.nan},
            {},
            "observable x: its value in a sample is nan, but it must",
        ),
        ({"x": lambda labels: 1 / 0}, {}, "observable x: ZeroDivisionError: division by zero"),
        ({"x": clusters}, {"method": "threshold", "p": None}, "observables: functions of labels"),
        ({"x": clusters}, {"model": "ising"}, "observables: functions of labels are measured by"),
        ({"x": clusters}, {"executor": "processes"}, "observables: Python functions run in"),
        ({"x": clusters}, {"slabs": 2}, "observables: functions of labels need whole samples"),
    ],
)
def test_what_cannot_be_a_function_of_labels_is_refused(own, options, message):
    with pytest.raises(InputError) as error:
        percolab.sweep("square", observables=own, **OPTIONS | options)
    assert str(error.value).startswith(message)


def test_several_blocks_of_one_call_have_their_own_sums():
    results = percolab.sweep("square", observables={"corner": corner}, **OPTIONS | {"L": [4]})
    (item,) = results.tasks.values()
    blocks = make_sampler(item.task, device=Device("cpu")).sample([0, 2])
    for block in blocks:
        expected = item.blocks[block.number].extras["corner"]
        np.testing.assert_array_equal(block.extras["corner"], expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, 1 << 15), ({"observables": {"x": clusters}}, 1), ({"measure": ["path"]}, 1)],
)
def test_blocks_of_functions_and_measurements_are_made_one_by_one_on_a_cpu(given, expected):
    """Hundreds of a small lattice would be a call of minutes, all lost by Ctrl-C."""
    settings = OPTIONS | {"L": [4], "p": [0.5], "block_size": 1, "samples": 2}
    (item,) = percolab.sweep("square", **settings | given).tasks.values()
    assert make_sampler(item.task, device=Device("cpu")).blocks_per_call == expected


CODE = """
import numpy as np

def corner(labels):
    return -0.5 * np.count_nonzero(labels == labels.flat[0])

def fails(labels):
    raise KeyError("no such thing")
"""
POINTS = """[percolab.observables]
corner = {0}:corner
clusters = {0}:corner
fails = {0}:fails
absent = {0}:absent
"""


def install(folder, name="percolab_mine", version="0.3", points=POINTS, code=CODE):
    """Lay a package into a folder of modules, as pip would: its code, and what it declares."""
    (folder / f"{name}.py").write_text(code)
    message = folder / f"{name}-{version}.dist-info"
    message.mkdir()
    (message / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (message / "entry_points.txt").write_text(points.format(name))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder of modules on the path, with a package installed; its code is loaded anew."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    install(folder)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in ("percolab_mine", "percolab_other"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_an_observable_of_a_package_is_the_function_that_it_declares(package):
    assert run("observables").stdout.rstrip().endswith("from percolab_mine 0.3: fails")
    assert "percolab_mine" not in sys.modules
    run(
        "sweep", "--lattice", "square", "-L", "4,6", "-p", "0.4,0.6", "--samples", 30, "--seed", 2,
        "--observable", "corner", "--out", "a.h5",
    )  # fmt: skip
    from percolab_mine import corner

    found = percolab.sweep("square", observables=["corner"], seed=2, **OPTIONS)
    given = percolab.sweep("square", observables={"corner": corner}, seed=2, **OPTIONS)
    for one, other in zip(found.tasks.values(), given.tasks.values(), strict=True):
        np.testing.assert_array_equal(one.extra("corner"), other.extra("corner"))
    sys.modules.pop("percolab_mine")
    stored = percolab.open_results("a.h5")
    assert "percolab_mine" not in sys.modules
    (item,) = stored.of_size(4)
    assert item.task.functions[0].package == "percolab_mine 0.3"
    assert "from percolab_mine 0.3: corner" in item.task.columns[-1].meaning
    assert item.extra("corner").sum() == found.of_size(4)[0].extra("corner").sum()


def test_another_version_of_a_package_is_another_observable(package):
    percolab.sweep("square", observables="corner", out="a.h5", **OPTIONS)
    (package / "percolab_mine-0.3.dist-info").rename(package / "percolab_mine-0.4.dist-info")
    message = package / "percolab_mine-0.4.dist-info" / "METADATA"
    message.write_text(message.read_text().replace("0.3", "0.4"))
    with pytest.raises(InputError, match=r"\['corner of percolab_mine 0.3'\] there, \['corner of"):
        percolab.sweep("square", observables="corner", out="a.h5", **OPTIONS | {"samples": 50})
    percolab.sweep("square", observables="corner", out="b.h5", seed=2, **OPTIONS)
    message = refusal("merge", "a.h5", "b.h5", "--out", "c.h5")
    assert message == (
        "b.h5: has observable corner of percolab_mine 0.4, not corner of percolab_mine 0.3 like "
        "the others"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clusters", "observable clusters: it is measured already; choose another name"),
        ("fails", "observable fails of package percolab_mine 0.3: KeyError: 'no such thing'"),
        (
            "absent",
            "observable absent of package percolab_mine 0.3: AttributeError: module "
            "'percolab_mine' has no attribute 'absent'",
        ),
        (
            "none",
            "unknown observable 'none'; known: absent (of percolab_mine 0.3), clusters (of "
            "percolab_mine 0.3), corner (of percolab_mine 0.3), fails (of percolab_mine 0.3)",
        ),
    ],
)
def test_an_observable_of_a_package_is_refused_in_one_line(package, name, message):
    with pytest.raises(InputError) as error:
        percolab.sweep("square", observables=name, **OPTIONS)
    assert str(error.value) == message


def test_a_name_that_two_packages_have_is_refused(package):
    install(package, "percolab_other", "1.0")
    with pytest.raises(InputError, match=r"both percolab_mine 0.3 and percolab_other 1.0 have one"):
        percolab.sweep("square", observables="corner", **OPTIONS)


def test_the_package_of_the_documentation_works(package):
    page = (Path(__file__).parents[2] / "docs" / "own-code.md").read_text()
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    project = tomllib.loads(files["pyproject.toml"])["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in declared.items())
        for group, declared in project["entry-points"].items()
    )
    (name,) = {file.removesuffix(".py") for file in files if file.endswith(".py")}
    install(package, name, project["version"], points, files[f"{name}.py"])
    results = percolab.sweep("square", observables=["touching"], **OPTIONS)
    (item,) = results.of_size(4)
    labels = [percolab.label("square", 4, 0.4, sample=n) for n in range(10)]
    expected = sum(np.unique(sample[:, 0]).size for sample in labels)
    assert item.extra("touching")[0, 0, 0] == expected
