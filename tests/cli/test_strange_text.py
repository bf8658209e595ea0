"""Text of a stranger's file: no terminal obeys it, and no spreadsheet runs it."""

import csv
import io
import logging
from pathlib import Path

import h5py
import pytest
from cli_support import answer, put_text, run, sealed_again, stored

from percolab.cli.terminal import Visible, visible

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
CLI = Path(__file__).parents[2] / "percolab" / "cli"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_control_characters_of_a_file_are_printed_as_words():
    path = stored(Path("results.h5"))
    with h5py.File(path, "r+") as file:
        runs = [text.decode() for text in file.attrs["runs"].tolist()]
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in ESCAPE)
        put_text(file, "runs", [_named(run, escaped) for run in runs])
    said = answer("status", sealed_again(path))
    assert SHOWN in said
    assert visible(said) == said


def _named(run, escaped):
    """Return the record of a run with another name of its device."""
    before, _, after = run.partition('"device_name": "')
    return f'{before}"device_name": "{escaped}{after}'


@pytest.mark.parametrize("command", ["plot", "fit", "status", "label", "tree"])
def test_names_of_files_and_errors_are_printed_as_words(command):
    said = run(command, *(["--graph"] if command in ("label", "tree") else []), f"a{ESCAPE}.h5")
    assert said.exit_code == 2
    assert r"\x1b" in said.output
    assert visible(said.output) == said.output


def test_what_is_logged_is_printed_as_words():
    record = logging.LogRecord("percolab", 20, "", 1, f"a{ESCAPE}", (), None)
    assert Visible().format(record) == f"a{SHOWN}"


def test_every_command_prints_by_one_function():
    own = {path.name for path in CLI.glob("*.py") if "click.echo(" in path.read_text()}
    assert own == {"terminal.py"}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+A1", "'+A1"),
        ("-A1", "'-A1"),
        ("Arya", "Arya"),
    ],
)
def test_a_name_in_a_table_is_no_formula(name, written):
    Path("g.csv").write_text(f"source,target,weight\n{name},b,-2\nb,c,-0.5\n")
    answer("tree", "--graph", "g.csv", "--weights", "file", "--out", "tree.csv")
    rows = list(csv.DictReader(io.StringIO(Path("tree.csv").read_text())))
    assert (written, "-2.0") in {(row["source"], row["weight"]) for row in rows}


def test_a_name_in_an_export_is_no_formula():
    Path("=1+1.csv").write_text("0,1\n1,2\n")
    answer("sweep", "--graph", "=1+1.csv", "-p", 0.5, "--samples", 10, "--out", "r.h5")
    for form in ((), ("--tidy",)):
        rows = list(csv.DictReader(io.StringIO(answer("export", "r.h5", *form))))
        assert {row["lattice"] for row in rows} == {"'=1+1.csv"}
