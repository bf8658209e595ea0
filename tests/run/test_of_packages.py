"""Observables of other packages, found by their entry points."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from cli_support import refusal, run

import percolab
from percolab.errors import InputError

OPTIONS = {"L": [4, 6], "p": [0.4, 0.6], "samples": 30, "block_size": 10, "device": "cpu"}

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
    monkeypatch.chdir(tmp_path)
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
        ("clusters", "observable clusters: is measured already; choose another name"),
        (
            "fails",
            "observable fails of package percolab_mine 0.3: KeyError: 'no such thing'",
        ),
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
