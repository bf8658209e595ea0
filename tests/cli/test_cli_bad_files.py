"""The command line refuses targets and results files that it cannot use, and leaves nothing."""

import csv
import io
import json
import logging
import re
import resource
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import (
    TINY,
    answer,
    changed,
    left_in,
    put_text,
    refusal,
    replace_dataset,
    run,
    sealed_again,
    stored,
    text_of,
    texts_of,
    without_blocks,
)
from helpers import slow

from percolab.api import sweep
from percolab.cli import COMMANDS
from percolab.cli.terminal import Visible, visible
from percolab.store.results import encode

#: What a command writes.
NAMES = {"plot": "figure", "report": "page", "export": "table"}
SUFFIXES = {"plot": ".png", "report": ".html", "export": ".csv"}
READERS = [name for name in COMMANDS if name in {"status", "fit", "plot", "report", "export"}]


# Bad targets


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
         "--samples", 500, "--quiet", "--out", "new.h5"),
        ("export", "results.h5", "--out", "new.csv"),
        ("merge", "results.h5", "--out", "new.h5"),
        slow(
            ("plot", "results.h5", "--bootstrap", 10, "--out", "new.png")),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_full_disk_leaves_nothing_half_written(file, command):
    before, name = file.read_bytes(), command[-1]
    with full_disk():
        assert refusal(*command) == f"{name}: cannot be written: File too large"
    assert left_in() == [".results.h5.lock", "results.h5"]
    assert file.read_bytes() == before


@pytest.mark.slow
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
    Path("thesis.docx").write_bytes(b"my thesis")
    assert refusal(name, "thesis.docx").startswith("thesis.docx: is no results file of percolab")
    assert left_in() == [".results.h5.lock", "cut.h5", "results.h5", "thesis.docx"]


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
)
def test_a_sweep_refuses_the_file_of_another_study(options, told):
    answer(*TINY, "--quiet")
    before = Path("results.h5").read_bytes()
    refused = refusal(*changed(TINY, *options))
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
        (("--omega", "0"), "'--omega': 0.0 is not in the range 1e-06<=x<=10"),
        (("--omega", "inf"), "'--omega': inf is not in the range"),
        (("--omega", "nan"), "'--omega': nan is not a number"),
        (("--omega", "x"), "'--omega': 'x' is not a number."),
        (("--min-size", "0"), "'--min-size': 0 is not in the range x>=1"),
        (("--min-size", "auto"), "'--min-size': 'auto' is not a valid integer."),
        (("--degree", "9"), "'--degree': 9 is not in the range 1<=x<=8"),
        (("--window", "0.5"), "'--window': '0.5' is not two numbers with a comma between them"),
        (("--window", "nan,0.5"), "'--window': 'nan,0.5': it must be 0 < LOW < HIGH < 1"),
        (("--nu", "0.75"), "'--nu': '0.75' is not one of 'known', 'free'."),
        (("--priors", "0"), "'--priors': 0.0 is not in the range 1e-06<=x<=1000000.0"),
        (("--priors", "nan"), "'--priors': nan is not a number"),
        (("--fits",), "No such option '--fits'"),
        (("--bootstrap", "-1"), "'--bootstrap': -1 is not in the range x>=0"),
        (("--bootstrap", "1.5"), "'--bootstrap': '1.5' is not a valid integer."),
        (("--observable", "spaning_x"), "did you mean 'spanning_x'?"),
        (("--observable", "largest"), "--observable largest: no spanning observable; known: spann"),
    ],
)
def test_bad_fit_options_are_refused(file, name, options, told):
    assert told in refusal(name, file, *options)
    assert left_in() == [".results.h5.lock", "results.h5"]


def test_a_fit_without_enough_sizes_is_refused(file):
    told = refusal("fit", file, "--min-size", 16)
    assert told == "need at least two sizes of L >= 16 to find a threshold, got L = 16"


@pytest.mark.parametrize("name", ["fit", slow("plot")])
def test_on_a_torus_p_c_is_read_off_wrapping(tmp_path, name):
    options = {"p": [0.4, 0.45, 0.5, 0.55, 0.6], "samples": 300, "device": "cpu"}
    results = sweep("square", L=[4, 6, 8], boundary="periodic", **options)
    path = stored(tmp_path / "periodic.h5", results)
    assert "spanning_x: no spanning observable" in refusal(name, path, "--observable", "spanning_x")
    asked = ("--json", "--out", "w.svg") if name == "plot" else ()
    told = answer(name, path, "--bootstrap", 0, *asked)
    assert ('"observable": "wrapping_y"' if name == "plot" else "p_c") in told


@pytest.mark.parametrize("name", READERS)
def test_a_file_without_blocks_is_answered(tmp_path, name):
    path = stored(tmp_path / "empty.h5", without_blocks())
    if name in ("fit", "plot"):
        assert "got none" in refusal("fit", path)
    else:
        answer(name, path)


TARGETS = {
    "a.gif": "a.gif: cannot write a {kind} as '.gif'; use {suffix}, ",
    "a": "a: cannot write a {kind} as 'no suffix'; use {suffix}, ",
    "results.h5": "results.h5: cannot write a {kind} as '.h5'; use {suffix}, ",
    "nowhere/a{suffix}": "the directory nowhere does not exist",
    "file/a{suffix}": "the directory file does not exist",
    "locked/a{suffix}": "the directory locked is not writable",
    "taken{suffix}": "taken{suffix}: is a directory; give the name of a file",
    "copy{suffix}": "copy{suffix}: holds something else than a {kind} of percolab's; give another",
}


@pytest.mark.parametrize("name", ["plot", "report", "export"])
@pytest.mark.parametrize(("target", "told"), TARGETS.items())
def test_a_target_is_refused_before_anything_is_computed(file, monkeypatch, name, target, told):
    def computed(*_, **__):
        raise AssertionError("computed before the target was looked at")

    monkeypatch.setattr("percolab.analysis.stored_fits.fit_threshold", computed)
    monkeypatch.setattr("percolab.tables.flat.mean_table", computed)
    # Whoever runs the tests may be allowed to write everywhere.
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != "locked")
    words = {"kind": NAMES[name], "suffix": SUFFIXES[name]}
    Path("file").touch()
    Path("locked").mkdir()
    Path("taken{suffix}".format(**words)).mkdir()
    before, copy = file.read_bytes(), Path("copy{suffix}".format(**words))
    copy.write_bytes(before)
    assert told.format(**words) in refusal(name, file, "--out", target.format(**words))
    assert file.read_bytes() == copy.read_bytes() == before
    assert [*left_in("locked"), *left_in("taken{suffix}".format(**words))] == []


def test_merge_refuses_what_would_lose_or_double_samples(file):
    stored(Path("again.h5"))
    triangular = sweep("triangular", L=[4], p=[0.4], samples=10, device="cpu")
    stored(Path("triangular.h5"), triangular)
    stored(Path("tree.h5"), sweep("bethe:3", L=[4], p=[0.4], samples=10, device="cpu"))
    before = left_in()
    told = refusal("merge", file, "again.h5", "--out", "new.h5")
    assert re.search(r"both hold samples 0 to 9 of L = \d+, seed 5", told)
    told = refusal("merge", file, "triangular.h5", "--out", "new.h5")
    assert told.startswith("triangular.h5: holds lattice triangular, not square")
    told = refusal("merge", file, "tree.h5", "--out", "new.h5")
    assert told.startswith("tree.h5: holds lattice bethe:3, not square")
    assert refusal("merge", "nowhere.h5", "--out", "new.h5") == "nowhere.h5: no such file"
    told = refusal("merge", file, "--out", "again.h5")
    assert told == "again.h5: exists already; merge writes a new file"
    assert "Missing argument 'PART.h5...'" in refusal("merge", "--out", "new.h5")
    assert "Missing option '-o' / '--out'" in refusal("merge", file)
    assert left_in() == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("swep",), "unknown command 'swep'; did you mean 'sweep'?"),
        (("frobnicate",), "unknown command 'frobnicate'; known: bench, "),
        (("fit",), "Missing argument 'RESULTS.h5...'"),
        (("sweep", "-L"), "Option '-L' requires an argument"),
        (("sweep", "a.toml", "b.toml"), "unexpected extra argument (b.toml)"),
        (("lattices", "honycomb"), "did you mean 'honeycomb'?"),
        (("fit", "results.h5", "--jsno"), "--json"),
        (("--verison",), "--version"),
        (("validate", "--device", "gpu"), "must be auto, cpu, cuda or cuda:n"),
        (("lattices", "kagome", "--plot", "x.gif"), "cannot write a figure as '.gif'"),
        (("lattices", "kagome", "--plot", "no/x.png"), "does not exist"),
        (("lattices", "--plot"), "name the lattice to draw"),
        (("threshold",), "name a LATTICE"),
        (("threshold", "square", "--above"), "--above: only given weights"),
        (("threshold", "square", "--boundary", "open"), "--boundary: only given weights"),
        (("threshold", "--weights", "file"), "--weights file: only a graph's file"),
    ],
)
def test_what_is_no_command_option_or_value_is_told(given, told):
    assert told in refusal(*given)


# Damaged files: a line each, by whatever command

DAMAGED = Path(__file__).parents[1] / "data" / "damaged"


@cache
def grid() -> bytes:
    options = {"L": (4, 6, 8), "p": (0.4, 0.5, 0.6), "samples": 30, "block_size": 10, "seed": 7}
    return encode(sweep("square", device="cpu", workers=1, **options))


def edited(name, change):
    """Write a changed results file with checksums of what it holds now, as a forger would."""
    path = Path(name)
    path.write_bytes(grid())
    with h5py.File(path, "r+") as opened:
        change(opened, next(iter(opened["tasks"].values())))
    # Of text that is not UTF-8 there is no checksum.
    with suppress(ValueError):
        sealed_again(path)
    return path


def edit(name, change):
    """Return what puts changed numbers in the place of a dataset of the first task."""
    return lambda _, group: replace_dataset(group, name, lambda found: change(found[...]))


def with_runs(opened, **changes):
    put_text(opened, "runs", [json.dumps(json.loads(texts_of(opened, "runs")[0]) | changes)])


def with_text(opened, name, old, new):
    put_text(opened, name, text_of(opened, name).replace(old, new, 1))


def without_a_task(opened, group):
    del opened["tasks"][group.name.rpartition("/")[2]]


VERSION_1 = "has samples of version 1; this percolab reads version 2"


def with_study_of_version_1(opened, group):
    del opened["tasks"]
    put_text(opened, "runs", ["{}"])
    with_text(opened, "study", '"sample_version": 2, ', "")


def with_bytes(opened):
    """Write an attribute that is not UTF-8."""
    kind = h5py.string_dtype("utf-8", 20)
    opened.attrs.create("study", np.bytes_(b'{"lattice": "\xc3\x28"}'), dtype=kind)


EDITED = {
    "a task gone": (without_a_task, "task [0-9a-f]+: its runs made 3 blocks, but the file has 0"),
    "blocks gone": (
        lambda o, g: [edit(n, lambda x: x[:0])(o, g) for n in [*g] if n != "p"],
        "its runs made 3 blocks, but the file has 0; it is neither read nor overwritten",
    ),
    "bytes in study": (lambda o, g: with_bytes(o), "holds text that is not UTF-8"),
    "run of numbers": (lambda o, g: with_runs(o, started=5), "a run's record has started = 5"),
    "run of texts": (lambda o, g: with_runs(o, seconds="3"), "a run's record has seconds = '3'"),
    "run counted in texts": (
        lambda o, g: with_runs(o, blocks={"a": "1"}),
        "a run's record has invalid numbers of blocks",
    ),
    "no versions": (lambda o, g: with_runs(o, versions=None), "has versions = None"),
    "sums as text": (edit("sums", lambda x: x.astype("S8")), "holds .S8, not"),
    "sums as floats": (edit("sums", lambda x: x.astype(float)), "sums holds float64, not int64"),
    "sums too large": (
        edit("sums", lambda x: x + 2**40),
        "sums holds more than its samples can have",
    ),
    "sums below zero": (edit("sums", lambda x: -x), "holds a negative number"),
    "squares not a number": (
        edit("squares", lambda x: x * np.nan),
        "squares holds a value that is no finite number",
    ),
    "L in study": (
        lambda o, g: with_text(o, "study", "[4, 6, 8]", "[4, 7]"),
        "it has no task for L = 7, seed 7, xorwow, bond of its study",
    ),
    "seed in study": (
        lambda o, g: with_text(o, "study", '"seed": 7', '"seed": 8'),
        "it has no task for L = 4, seed 8, xorwow, bond of its study",
    ),
    "shorter sums": (edit("sums", lambda x: x[:, :, :-1]), "do not fit together"),
    "a block twice": (lambda o, g: g["block"].__setitem__(1, 0), "are negative or not ascending"),
    "run is a number": (lambda o, g: put_text(o, "runs", ["1"]), "a run's record has no table"),
    "blocks of a number": (
        lambda o, g: put_text(o, "runs", ['{"blocks": 3}']),
        "a run's record has no table",
    ),
    "text of several lines": (lambda o, g: put_text(g, "model", "bond\n\nor not"), "bond"),
    "task of version 1": (lambda o, g: g.attrs.modify("sample_version", 1), VERSION_1),
    "study of version 1": (with_study_of_version_1, VERSION_1),
    "threshold of 7": (
        lambda o, g: with_text(o, "lattice", "value = 0.5", "value = 7.0"),
        "value = 7.0, but it must be a number from 0 to 1",
    ),
}
TASK = ("sweep", "--lattice", "square", "-L", "4,6,8", "-p", "0.4,0.5,0.6", "--seed", 7)


def assert_refused_by_every_command(path, told):
    before = path.read_bytes()
    for command in (
        ("status", path),
        ("report", path),
        ("fit", path),
        ("plot", path),
        ("export", path),
        ("merge", path, "--out", "merged.h5"),
        (*TASK, "--samples", 30, "--out", path),
    ):
        assert re.search(told, refusal(*command)), command
    assert path.read_bytes() == before


@pytest.mark.parametrize(("change", "told"), EDITED.values(), ids=EDITED)
def test_an_edited_file_is_refused_by_every_command(change, told):
    path = edited("edited.h5", change)
    if change is without_a_task or "neither" in told:
        assert_refused_by_every_command(path, told)
    else:
        assert re.search(told, refusal("status", path))


def test_tasks_behind_a_damaged_byte_are_refused_not_replaced():
    path, content = Path("gone.h5"), bytearray(grid())
    # The second object of the file, after the root.
    content[content.index(b"OHDR", content.index(b"OHDR") + 4) + 20] ^= 1
    path.write_bytes(content)
    assert_refused_by_every_command(path, "incorrect metadata checksum")


def test_a_file_in_which_the_library_would_loop_for_ever_is_refused_unread():
    """By its version: it is of an earlier one, with text of variable length, which is damaged."""
    path = Path("endless.h5")
    path.write_bytes((DAMAGED / "endless.h5").read_bytes())
    told = "endless.h5: has schema version 2; this percolab reads versions 5 and 6"
    assert refusal("status", path) == told


# Foreign files in the place of what is written


def test_what_percolab_wrote_is_written_again_with_its_mode(file):
    for command, name in (
        (("export", file), "table.csv"),
        (("lattices", "square"), "lattice.svg"),
        (("label", "--lattice", "square", "-L", 4, "-p", 0.5), "labels.h5"),
        (("label", "--lattice", "square", "-L", 4, "-p", 0.5), "labels.npy"),
    ):
        option = "--plot" if command[0] == "lattices" else "--out"
        answer(*command, option, name)
        Path(name).chmod(0o600)
        answer(*command, option, name)
        assert Path(name).stat().st_mode & 0o777 == 0o600
        Path(name).chmod(0o400)
        assert "is not writable" in refusal(*command, option, name)


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
CLI = Path(__file__).parents[2] / "percolab" / "cli"


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
