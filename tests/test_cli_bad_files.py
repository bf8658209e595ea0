"""The command line refuses targets and results files that it cannot use, and leaves nothing."""

import os
import re
import resource
import subprocess
import sys
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import pytest
from cli_support import (
    TINY,
    answer,
    left_in,
    refusal,
    small_results,
    stored,
)

from percolab.api import sweep
from percolab.cli import COMMANDS

#: What a command writes.
NAMES = {"plot": "figure", "report": "page", "export": "table"}
READERS = [name for name in COMMANDS if name in {"status", "fit", "plot", "export"}]

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


# Bad targets


def test_an_output_directory_that_is_not_writable_is_refused(monkeypatch):
    # os.access is replaced because root may write everywhere.
    monkeypatch.setattr("percolab.storage.os.access", lambda *_: False)
    assert "is not writable" in refusal(*TINY)
    assert left_in() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "is not writable" in refusal(*TINY)


@contextmanager
def full_disk():
    """Let no file of this process grow beyond 2 kB."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize(
    "command",
    [
        ("sweep", "--lattice", "square", "-L", "4,8,16", "-p", "0.3,0.4,0.5,0.6,0.7",
         "--samples", 500, "--out", "new.h5"),
        ("export", "results.h5", "--out", "new.csv"),
        ("merge", "results.h5", "--out", "new.h5"),
        ("plot", "results.h5", "--bootstrap", 10, "--out", "new.png"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_full_disk_leaves_nothing_half_written(file, command):
    before, name = file.read_bytes(), command[-1]
    with full_disk():
        assert refusal(*command) == f"{name}: cannot be written: File too large"
    assert left_in() == [".results.h5.lock", "results.h5"]
    assert file.read_bytes() == before


def test_a_full_disk_behind_stdout_is_told(file):
    code = "from percolab.cli import main; main()"
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-c", code, "status", str(file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert result.returncode == 2
    assert result.stderr == "percolab: error: output: No space left on device\n"


def test_a_reader_that_stops_listening_is_no_error(file):
    code = "from percolab.cli import main; main()"
    arguments = [sys.executable, "-c", code, "status", str(file), "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# Bad results files


@pytest.mark.parametrize("name", READERS)
def test_a_missing_or_unreadable_file_is_refused_by_every_reader(name, file):
    assert refusal(name, "nowhere.h5") == "nowhere.h5: no such file"
    assert refusal(name, ".") == ".: is a directory, not a results file"
    Path("cut.h5").write_bytes(file.read_bytes()[:3000])
    told = refusal(name, "cut.h5")
    assert told == "cut.h5: is not a readable HDF5 file (truncated, or another format)"
    assert left_in() == [".results.h5.lock", "cut.h5", "results.h5"]


@pytest.mark.parametrize("content", [b"", b"my thesis", b"\x89HDF\r\n\x1a\n"], ids=repr)
def test_a_sweep_never_overwrites_what_it_cannot_read(content):
    Path("results.h5").write_bytes(content)
    assert "results.h5: is not a readable HDF5 file" in refusal(*TINY)
    assert Path("results.h5").read_bytes() == content


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lattice", "triangular"), "lattice is square there, triangular here"),
        (("--seed", "2"), "seed is 1 there, 2 here"),
        (("--boundary", "open,periodic"), "boundary is ['open', 'open'] there"),
        (("--rng", "philox"), "rng is xorwow there, philox here"),
    ],
    ids=str,
)
def test_a_sweep_refuses_the_file_of_another_study(options, told):
    answer(*TINY, "--quiet")
    before = Path("results.h5").read_bytes()
    refused = refusal(*TINY, *options)
    assert refused.startswith("results.h5: holds another study (")
    assert told in refused
    assert "; choose another --out" in refused
    # Files of other seeds and generators are independent of this one.
    merged = options[0] in ("--seed", "--rng")
    assert refused.endswith("and join the files with percolab merge") == merged
    assert Path("results.h5").read_bytes() == before


@pytest.mark.parametrize("name", ["fit", "plot"])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--omega", "0"), "'--omega': 0.0 is not in the range 0<x<=10"),
        (("--omega", "-1"), "'--omega': -1.0 is not in the range"),
        (("--omega", "500"), "'--omega': 500.0 is not in the range"),
        (("--omega", "inf"), "'--omega': inf is not in the range"),
        (("--omega", "nan"), "omega must be positive, got nan"),
        (("--omega", "nan", "--min-size", "auto"), "omega must be positive, got nan"),
        (("--omega", "x"), "'--omega': 'x' is not a valid float."),
        (("--min-size", "0"), "'--min-size': 0 is not in the range x>=1"),
        (("--min-size", "automatic"), "'--min-size': 'automatic' is not a valid integer or auto."),
        (("--bootstrap", "-1"), "'--bootstrap': -1 is not in the range x>=0"),
        (("--bootstrap", "1.5"), "'--bootstrap': '1.5' is not a valid integer."),
        (("--observable", "spaning_x"), "did you mean 'spanning_x'?"),
        (("--observable", "spanning_z"), "--observable spanning_z: no spanning observable"),
        (("--observable", "largest"), "--observable largest: no spanning observable; known: spann"),
    ],
    ids=str,
)
def test_bad_fit_options_are_refused(file, name, options, told):
    assert told in refusal(name, file, *options)
    assert left_in() == [".results.h5.lock", "results.h5"]


def test_a_fit_without_enough_sizes_is_refused(file):
    told = refusal("fit", file, "--min-size", 16)
    assert told == "need at least two sizes of L >= 16 to find a threshold, got L = 16"


@pytest.mark.parametrize("name", ["fit", "plot"])
def test_on_a_torus_p_c_is_read_off_wrapping(tmp_path, name):
    options = {"p": [0.4, 0.45, 0.5, 0.55, 0.6], "samples": 300, "device": "cpu"}
    results = sweep("square", L=[4, 6, 8], boundary="periodic", **options)
    path = stored(tmp_path / "periodic.h5", results)
    assert "spanning_x: no spanning observable" in refusal(name, path, "--observable", "spanning_x")
    told = answer(name, path, *(("--json", "--out", "w.svg") if name == "plot" else ()))
    assert ('"observable": "wrapping_y"' if name == "plot" else "p_c") in told


@pytest.mark.parametrize("name", READERS)
def test_a_file_without_blocks_is_answered(tmp_path, name):
    empty = deepcopy(small_results())
    for item in empty.tasks.values():
        item.blocks.clear()
    path = stored(tmp_path / "empty.h5", empty)
    if name in ("fit", "plot"):
        assert "got none" in refusal("fit", path)
    else:
        answer(name, path)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("figure.gif", "cannot write a figure as '.gif'; use .png, .pdf, .svg"),
        ("figure", "cannot write a figure as 'no suffix'"),
        ("nowhere/figure.png", "nowhere/figure.png: cannot be written: No such file or directory"),
        ("taken.png", "taken.png: is a directory; give the name of a file"),
    ],
)
def test_plot_refuses_a_figure_it_cannot_write(file, target, told):
    Path("taken.png").mkdir()
    assert told in refusal("plot", file, "--bootstrap", 0, "--out", target)
    assert left_in() == [".results.h5.lock", "results.h5", "taken.png"]
    assert left_in("taken.png") == []


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nowhere/table.csv", "nowhere/table.csv: cannot be written: No such file or directory"),
        (".", ".: is a directory; give the name of a file"),
        ("results.h5", "results.h5: cannot write a table as '.h5'; use .csv, .txt, .parquet"),
        ("table.xlsx", "table.xlsx: cannot write a table as '.xlsx'; use .csv, .txt, .parquet"),
        ("copy.csv", "copy.csv: is an HDF5 file, which a table must not replace"),
    ],
)
def test_export_refuses_a_table_it_must_not_write(file, target, told):
    before = file.read_bytes()
    Path("copy.csv").write_bytes(before)
    assert refusal("export", file, "--out", target) == told
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["plot", "report", "export"])
@pytest.mark.parametrize("target", ["a.gif", "nowhere/a{}", "file/a{}", "locked/a{}"])
def test_a_target_is_refused_before_anything_is_computed(file, monkeypatch, name, target):
    def computed(*_, **__):
        raise AssertionError("computed before the target was looked at")

    monkeypatch.setattr("percolab.spanning.fit_threshold", computed)
    monkeypatch.setattr("percolab.tables.mean_table", computed)
    # Whoever runs the tests may be allowed to write everywhere.
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != "locked")
    Path("file").touch()
    Path("locked").mkdir()
    suffix = {"plot": ".png", "report": ".html", "export": ".csv"}[name]
    told = {
        "a.gif": f"a.gif: cannot write a {NAMES[name]} as '.gif'; use {suffix}, ",
        "nowhere/a{}": "cannot be written: No such file or directory",
        "file/a{}": "cannot be written: Not a directory",
        "locked/a{}": "cannot be written: Permission denied",
    }[target]
    assert told in refusal(name, file, "--out", target.format(suffix))
    assert left_in("locked") == []


def test_merge_refuses_what_would_lose_or_double_samples(file):
    stored(Path("again.h5"))
    triangular = sweep("triangular", L=[4], p=[0.4], samples=10, device="cpu")
    stored(Path("triangular.h5"), triangular)
    before = left_in()
    told = refusal("merge", file, "again.h5", "--out", "new.h5")
    assert re.search(r"both hold samples 0 to 9 of L = \d+, seed 5", told)
    told = refusal("merge", file, "triangular.h5", "--out", "new.h5")
    assert "holds lattice triangular, not square" in told
    assert refusal("merge", "nowhere.h5", "--out", "new.h5") == "nowhere.h5: no such file"
    told = refusal("merge", file, "--out", "again.h5")
    assert told == "again.h5: exists already; merge writes a new file"
    assert "Missing argument 'PART.h5...'" in refusal("merge", "--out", "new.h5")
    assert "Missing option '--out'" in refusal("merge", file)
    assert left_in() == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("swep",), "unknown command 'swep'; did you mean 'sweep'?"),
        (("frobnicate",), "unknown command 'frobnicate'; known: bench, "),
        (("fit",), "Missing argument 'RESULTS.h5'"),
        (("sweep", "-L"), "Option '-L' requires an argument"),
        (("sweep", "a.toml", "b.toml"), "unexpected extra argument (b.toml)"),
        (("lattices", "honycomb"), "did you mean 'honeycomb'?"),
        (("fit", "results.h5", "--jsno"), "Did you mean '--json'?"),
        (("--verison",), "Did you mean '--version'?"),
    ],
    ids=str,
)
def test_what_is_not_a_command_or_option_is_told_with_the_nearest(given, told):
    assert told in refusal(*given)
