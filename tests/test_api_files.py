"""Python has what the shell has: show, status, export and report give what the commands give."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, small_results, stored
from helpers import slow

import percolab
from percolab import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
    ids=str,
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


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"lattice": "square", "L": 8}, "a picture of a sample needs p"),
        ({"lattice": "square", "L": 8, "model": "ising"}, "a picture of a sample needs T"),
        ({"lattice": "square", "p": 0.5}, "a picture of a sample needs L"),
        ({"p": 0.5}, "a picture of a sample needs lattice and L"),
        ({"lattice": 3, "L": 8, "p": 0.5}, "show: int given, but it is no lattice"),
        ({"lattice": "square", "L": 8, "p": 0.5, "tree": True}, "p: a tree is of all bonds"),
        ({"lattice": "square", "L": 8, "p": 0.5, "weights": "w.npy"}, "weights: only a tree"),
        ({"lattice": "bethe:3", "L": 3, "p": 0.5, "backbone": True}, "bethe:3: the backbone is"),
        ({"labels": "a.h5", "p": 0.5}, "p: labels are a configuration already"),
        ({"labels": "a.h5", "seed": 2}, "seed: labels are a configuration already"),
        ({"lattice": "square", "L": 8, "p": 0.5, "T": 2.0}, "p and T are both given"),
    ],
    ids=str,
)
def test_show_refuses_what_makes_no_picture(given, line):
    with pytest.raises(InputError) as error:
        percolab.show(**given)
    assert str(error.value).startswith(line)


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


def test_export_refuses_what_is_no_table():
    found, _ = results()
    Path("notes.csv").write_text("mine\n")
    for given, line in (
        ({"out": "a.xyz"}, "a.xyz: cannot write a table as '.xyz'"),
        ({"out": "a.csv", "format": "hdf"}, "unknown format 'hdf'"),
        ({"out": "a.csv", "tidy": True, "sizes": True}, "tidy and sizes: each is a table"),
        ({"out": "a.csv", "p": 0.5}, "p: only studies of method threshold"),
        ({"out": "notes.csv"}, "notes.csv: holds something else"),
    ):
        with pytest.raises(InputError) as error:
            found.export(**given)
        assert str(error.value).startswith(line)
    assert Path("notes.csv").read_text() == "mine\n"


@pytest.mark.slow
def test_report_has_the_numbers_of_the_command():
    found = percolab.sweep("square", L=4, p=[0.4, 0.6], samples=20, device="cpu", out="one.h5")
    numbers = found.report("own.html")
    told = json.loads(answer("report", "one.h5", "--json"))
    assert {**numbers, "file": "one.h5"} == told
    assert Path("own.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(InputError, match="cannot write a page as"):
        found.report("own.pdf")
