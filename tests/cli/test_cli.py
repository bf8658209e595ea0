"""Every command does what its help says, and bad input gets one line and exit code 2."""

import csv
import io
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from math import hypot
from pathlib import Path

import click
import numpy as np
import pytest
from cli_support import (
    SMALL,
    TINY,
    answer,
    assert_equal_datasets,
    changed,
    refusal,
    run,
    small_results,
    stored,
)
from helpers import slow_but

from percolab.api import sweep
from percolab.cli import COMMANDS, main
from percolab.cli.groups import GroupedCommand
from percolab.cli.progress import ProgressBar
from percolab.cli.terminal import colour, has_colour
from percolab.lattices.lattice import lattice_names
from percolab.store.results import read_results
from percolab.tasks.setting_groups import GROUPS
from percolab.tasks.settings import DEFAULT_LATTICE, DEFAULT_SAMPLES, DEFAULT_SIZES, SETTINGS

SIGNATURES = {".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".svg": b"<?xml"}


# Help


def test_help_lists_every_command_and_what_it_does():
    text = answer("--help")
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", text, re.MULTILINE), name
    assert answer("-h") == text


def sections(text):
    """Return the flags that each section of a help text lists."""
    found, name = {}, None
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            name = line[:-1]
        elif name and (flags := re.match(r"  (-[\w-]+(?:, -[\w-]+)*)", line)):
            found.setdefault(name, []).append(flags[1])
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented_once(name):
    text, command = answer(name, "--help"), main.get_command(None, name)
    assert re.search(r"^  [A-Z]\w+ ", text, re.MULTILINE)
    options = [each for each in command.params if each.param_type_name == "option"]
    for option in options:
        assert option.opts[0] in text
        assert option.help or option.default, option.name
    listed = [flags for each in sections(text).values() for flags in each]
    assert len(set(listed)) == len(listed) == len(options) + 1
    if isinstance(command, GroupedCommand):
        assert len(sections(text)["Options"]) == 1


def test_every_out_is_o_in_short():
    commands = {name: main.get_command(None, name) for name in COMMANDS}
    flags = {name: [tuple(each.opts) for each in c.params] for name, c in commands.items()}
    named = {name for name, given in flags.items() if any("--out" in each for each in given)}
    assert named == {name for name, given in flags.items() if ("-o", "--out") in given}
    assert {"sweep", "tree", "plot", "label"} <= named
    assert "-o, --out PATH" in answer("sweep", "--help")
    assert "results in short.h5" in answer(*TINY, "-o", "short.h5")


def test_the_help_of_sweep_states_the_defaults_in_use():
    text = " ".join(answer("sweep", "--help").split())
    for value in (
        DEFAULT_LATTICE,
        "in 2 dimensions " + ",".join(map(str, DEFAULT_SIZES[2])),
        DEFAULT_SAMPLES,
    ):
        assert f"[default: {value}" in text


def test_no_arguments_are_answered_by_the_help():
    result = run()
    assert result.exit_code == 2
    assert result.output == answer("--help")


# Sweep


def test_a_sweep_stores_what_the_python_interface_computes(tmp_path):
    answer("sweep", "--lattice", "square", "-L", "4,8", "-p", "0.4:0.6:3", "--samples", 50,
           "--seed", 7, "--rng", "philox", "--boundary", "open,periodic", "--labeler", "four_step",
           "--workers", 2, "--device", "cpu", "--out", "cli.h5")  # fmt: skip
    results = sweep("square", L=[4, 8], p=[0.4, 0.5, 0.6], samples=50, seed=7, rng="philox",
                    boundary=["open", "periodic"], device="cpu")  # fmt: skip
    assert_equal_datasets(Path("cli.h5"), stored(tmp_path / "api.h5", results))
    run_record = read_results("cli.h5").runs[0]
    assert run_record["labeler"] == "four_step"
    assert run_record["workers"] == 2


def test_a_sweep_ends_with_the_threshold_on_stdout_and_shows_progress_on_stderr():
    result = run("sweep", "--lattice", "square", "-L", "8,16", "--samples", 200, "--device", "cpu")
    assert result.exit_code == 0
    assert result.stdout.startswith("square: L = 8, 16; results in results.h5\n")
    value, error, *parts = re.search(
        r"^p_c = (0\.\d+)\((\d+)\)  \(statistical (\S+), systematic (\S+), chi2/dof \S+, "
        r"from spanning_y\)",
        result.stdout,
        re.MULTILINE,
    ).groups()
    assert abs(float(value) - 0.5) < 0.1
    whole = int(error) * 10.0 ** -len(value[2:])
    assert hypot(*map(float, parts)) == pytest.approx(whole, rel=0.1)
    assert "pilot: L = 8: 9 p values from 0." in result.stderr
    assert "100%" in result.stderr


def test_a_sweep_without_a_threshold_says_why():
    told = answer("sweep", "--lattice", "square", "-L", 4, "-p", "0.5", "--samples", 10, "--quiet")
    assert "no threshold: need at least two sizes" in told


def test_a_study_file_is_swept_with_options_put_over_it():
    Path("study.toml").write_text(
        'lattice = "square"\nL = [4, 6]\np = [0.5]\nsamples = 10\nout = "mine.h5"\n'
    )
    answer("sweep", "study.toml", "--seed", 9, "--quiet")
    study = read_results("mine.h5").study
    assert (study.structure.name, study.sizes, study.seed) == ("square", (4, 6), 9)


# Reading


@pytest.mark.parametrize("format", [(), ("--json",)], ids=["text", "json"])
def test_status_tells_samples_and_runs(file, format):
    text = answer("status", file, *format)
    results = small_results()
    for key, item in results.tasks.items():
        assert key in text
        assert str(item.num_samples) in text
    assert results.runs[0]["started"] in text
    if format:
        record = json.loads(text)
        assert record["study"] == results.study.description()
        assert record["runs"] == results.runs
        assert {task["task"]: task["samples"] for task in record["tasks"]} == {
            key: item.num_samples for key, item in results.tasks.items()
        }


def test_status_of_merged_files_names_the_seeds_of_all():
    for seed in (1, 2):
        answer(*TINY, "--seed", seed, "-o", f"{seed}.h5")
    answer("merge", "1.h5", "2.h5", "-o", "both.h5")
    assert "\nseed 2, xorwow, p given\n" in answer("status", "2.h5")
    assert "\nseeds 1, 2, xorwow, p given\n" in answer("status", "both.h5")


def test_the_threshold_of_a_small_study_is_right_within_its_error(tmp_path):
    path = tmp_path / "square.h5"
    answer("sweep", "--lattice", "square", "-L", "8,16,32", "--samples", 3000, "--seed", 3,
           "--device", "cpu", "--out", path, "--quiet")  # fmt: skip
    fit = json.loads(answer("fit", path, "--json"))
    assert 0 < fit["threshold_error"] < 0.01
    assert abs(fit["threshold"] - 0.5) < 4 * fit["threshold_error"]
    text = answer("fit", path)
    assert text.splitlines()[0].startswith("p_c ")
    assert "published 0.5  1/2" in text


@pytest.mark.slow
def test_the_fit_options_are_heard(file):
    fits = [
        json.loads(answer("fit", file, "--json", "--bootstrap", 20, *more))
        for more in [
            (), ("--omega", 2), ("--observable", "spanning_x"), ("--min-size", 8), ("--degree", 4),
            ("--window", "0.2,0.8"), ("--nu", "free"), ("--priors", 2),
        ]
    ]  # fmt: skip
    thresholds = [fit["threshold"] for fit in fits]
    assert len(set(thresholds)) == len(fits)
    assert fits[0]["known_y_t"]["value"] == 0.75
    assert fits[6]["known_y_t"] is None
    assert {member["degree"] for member in fits[4]["members"]} == {4}


@pytest.mark.parametrize("suffix", slow_but(SIGNATURES, ".png"))
def test_plot_writes_the_figure_that_its_name_asks_for(file, suffix):
    figure = Path("figure").with_suffix(suffix)
    told = answer("plot", file, "--out", figure, "--bootstrap", 10)
    assert told == f"figure in {figure}\n"
    assert figure.read_bytes().startswith(SIGNATURES[suffix])


@pytest.mark.slow
def test_plot_writes_beside_its_file_and_gives_every_number_as_json(file):
    result = run("plot", file, "--bootstrap", 10, "--json")
    assert result.exit_code == 0
    numbers = json.loads(result.stdout)
    assert result.stderr == f"figure in {file.with_suffix('.png')}\n"
    assert file.with_suffix(".png").exists()
    assert numbers["observable"] == "spanning_y"
    assert numbers["exact"]["threshold"] == 0.5
    assert [curve["L"] for curve in numbers["curves"]] == list(SMALL["L"])
    assert numbers["fit"] == json.loads(answer("fit", file, "--bootstrap", 10, "--json"))


def test_plot_draws_one_size_without_a_fit(tmp_path):
    results = sweep("square", L=[4], p=[0.4, 0.6], samples=10, device="cpu")
    numbers = json.loads(run("plot", stored(tmp_path / "one.h5", results), "--json").stdout)
    assert numbers["fit"] is None


@pytest.mark.parametrize("to_file", [False, True], ids=["stdout", "file"])
def test_exported_means_and_errors_agree_with_the_store(file, to_file):
    text = answer("export", file, *(("--out", "table.csv") if to_file else ()))
    if to_file:
        assert text == f"{len(SMALL['L']) * len(SMALL['p'])} rows in table.csv\n"
        text = Path("table.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(SMALL["L"]) * len(SMALL["p"])
    by_size = {item.task.size: item for item in small_results().tasks.values()}
    for row in rows:
        item = by_size[int(row["L"])]
        point = item.task.p.index(float(row["p"]))
        assert (row["lattice"], int(row["seed"])) == ("square", SMALL["seed"])
        assert int(row["samples"]) == item.num_samples == SMALL["samples"]
        assert int(row["sites"]) == item.task.num_points
        for name in ("clusters", "largest", "sum_squares", "spanning_y", "spanning_any"):
            mean = item.column(name)[:, point].sum() / item.num_samples
            assert float(row[name]) == mean
        fraction, samples = float(row["spanning_x"]), item.num_samples
        binomial = np.sqrt(fraction * (1 - fraction) / (samples - 1))
        assert float(row["spanning_x_error"]) == pytest.approx(binomial, abs=1e-12)


def test_lattices_are_listed_and_described():
    text = answer("lattices")
    records = json.loads(answer("lattices", "--json"))
    assert [record["name"] for record in records] == lattice_names()
    for record in records:
        assert re.search(rf"^{record['name']} ", text, re.MULTILINE)
        assert record["thresholds"][0]["reference"] in text
    rows = text.partition("\n\n")[0].splitlines()
    assert (
        len({re.match(r"\S+ +\S+ +\S+ +(?=\S)", row).end() for row in rows if "p_c" not in row})
        == 1
    )
    assert re.search(r"^bethe:z +- +z +1/\(z - 1\) +1/\(z - 1\) ", text, re.MULTILINE)
    assert "bethe:4" in answer("lattices", "--help")
    assert "a Bethe lattice has no cell" in refusal("lattices", "bethe:4")
    (only,) = json.loads(answer("lattices", "honeycomb", "--json"))
    assert only["coordination_number"] == 3
    assert "[-1, 0]" in answer("lattices", "honeycomb")


def test_info_tells_versions_and_devices():
    record = json.loads(answer("info", "--json"))
    assert {"percolab", "python", "numpy", "numba", "h5py"} <= record["versions"].keys()
    assert record["cuda"] == "no GPU here"
    text = answer("info")
    assert record["versions"]["numba"] in text
    assert all(name in text for name in record["labelers"])
    # What is there for papers comes last, under a heading of its own.
    headings = re.findall(r"^(labeler|of a paper) +(\S+):", text, re.MULTILINE)
    papers = [name for heading, name in headings if heading == "of a paper"]
    assert [name for _, name in headings][-len(papers) :] == papers
    assert {"komura_2015", "label_equivalence", "tiles:self+sewing"} <= set(papers)
    assert not {"raster", "four_step", "tiled", "reference"} & set(papers)


def test_the_version_is_told():
    assert re.fullmatch(r"percolab, version \d+\.\d+\.\d+\n", answer("--version"))


def test_a_tree_of_one_site_has_no_bonds_and_no_warning():
    # Warnings are errors in the tests.
    assert "1  10" in answer("tree", "--lattice", "square", "-L", 1, "--samples", 10)
    assert answer("plot", "tree.h5", "--out", "tree.png") == "figure in tree.png\n"


def test_the_help_of_a_sweep_lists_every_setting_in_its_group():
    found = sections(answer("sweep", "--help"))
    assert list(found) == [*GROUPS, "Options"]
    assert found["Options"] == ["-h, --help"]
    for name, setting in SETTINGS.items():
        flags = (f"--{name.replace('_', '-')}",) if setting.flags is None else setting.flags
        homes = [group for group, listed in found.items() if ", ".join(flags) in listed]
        assert homes == ([setting.group] if flags else []), name


@pytest.mark.parametrize("line", [("-q", *TINY), (*TINY, "-q"), ("-q", *TINY, "--quiet")])
def test_quiet_holds_wherever_it_is_given(line):
    assert run(*line).stderr == ""


@pytest.mark.parametrize("line", [("-v", *TINY), (*TINY, "--verbose")])
def test_verbose_holds_wherever_it_is_given(line):
    logger = logging.getLogger("percolab")
    try:
        assert "saved results.h5" in run(*line, "-q").stderr
    finally:
        logger.handlers, logger.level = [], logging.NOTSET


def test_samples_are_one_number_or_one_for_each_size():
    line = "sweep", "--lattice", "square", "-L", "4,6", "-p", "0.5", "--device", "cpu", "--samples"
    for samples, expected in (("20", [20, 20]), ("30,2e1", [30, 20]), ("40, 50", [40, 50])):
        answer(*line, samples)
        tasks = json.loads(answer("status", "results.h5", "--json"))["tasks"]
        assert [task["samples"] for task in tasks] == expected
    assert refusal(*line, "1,2,3") == "samples: 3 numbers given for 2 sizes L"
    assert refusal(*line, "10,-1") == "Invalid value for '--samples': -1 is not in the range x>=1."
    tree = "tree", "--lattice", "square", "-L", "4,6", "--samples", "20,10", "--out", "tree.h5"
    answer(*tree)
    tasks = json.loads(answer("status", "tree.h5", "--json"))["tasks"]
    assert [task["samples"] for task in tasks] == [20, 10]


def test_a_sweep_says_first_what_it_is_about_to_do():
    first = run(*TINY, "--device", "cpu", "--workers", 1).stderr.splitlines()[0]
    assert first == (
        "square, bond, boundary open; L = 4, 6; p = 0.5; 10 samples of each; on cpu by raster, "
        "1 worker; file results.h5"
    )
    assert run(*TINY, "--device", "cpu").stderr == ""  # nothing is missing
    one = run(*changed(TINY, "--samples", "1", "--out", "one.h5"), "--device", "cpu").stderr
    assert "; 1 sample of each; " in one.splitlines()[0]
    first = run(*changed(TINY, "--samples", "30,20"), "--device", "cpu").stderr.splitlines()[0]
    assert "; p = 0.5; 30, 20 samples; on cpu" in first
    more = "--boundary", "open,periodic", "--out", "b.h5", "--target-error", "0.1"
    line = run("sweep", "--lattice", "square", "-L", "4,6", *more).stderr.splitlines()[0]
    assert "boundary open, periodic; L = 4, 6; p by a pilot; until the error of p_c is 0.1" in line


def test_options_of_settings_have_the_help_that_their_command_gives_them():
    shown = {name: " ".join(answer(name, "--help").split()) for name in COMMANDS}
    assert "[default: tree.h5]" in shown["tree"]
    assert "64:512:4. [default: chosen]" in shown["threshold"]
    assert "shells" not in shown["threshold"]
    assert not [name for name, text in shown.items() if re.search(r"\] +\[default", text)]
    assert "Show the probability at these p, too" in shown["exact"]
    assert "pilot" not in shown["exact"]


RED, GREEN, BOLD, END = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
PLAIN = "p_c = 0.5001(3)\n"
PROGRAM = f"from percolab.cli.terminal import echo; echo({PLAIN.strip()!r})"


def printed_on_a_terminal(*command, **environment):
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm", **os.environ, "NO_COLOR": "", **environment}
    try:
        subprocess.run(
            [sys.executable, *command], stdout=theirs, stderr=theirs, env=variables, check=False
        )
        return os.read(ours, 4096).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_gets_colours_and_nothing_else_does():
    coloured = f"p_c = {GREEN}{BOLD}0.5001(3){END}\n"
    assert printed_on_a_terminal("-c", PROGRAM) == coloured
    assert printed_on_a_terminal("-c", PROGRAM, NO_COLOR="1") == PLAIN
    assert printed_on_a_terminal("-c", PROGRAM, TERM="dumb") == PLAIN
    command = [sys.executable, "-c", PROGRAM]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == PLAIN


def test_an_error_begins_in_red():
    told = printed_on_a_terminal("-m", "percolab", "fitt")
    assert told == f"{RED}{BOLD}percolab: error:{END} {refusal('fitt')}\n"


@pytest.mark.parametrize(
    "text",
    [
        "no p_c: the best fit is rejected (p-value 2e-08, below 0.001)",
        "R(p_c)    0.531(56)",
        '{"p_c": 0.5}',
        "L  p_c  error",
        "a file named percolab: error: x",
    ],
)
def test_nothing_but_values_of_p_c_and_errors_is_coloured(text):
    assert colour(text) == text


def test_the_table_of_a_fit_has_its_p_c_coloured():
    line = "p_c       0.5010(22)     whole error; 1/nu = 3/4"
    assert colour(line) == line.replace("0.5010(22)", f"{GREEN}{BOLD}0.5010(22){END}")


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_is_written_nothing(closed):
    words = " ".join([sys.executable, "-m", "percolab", *TINY, "-o", "a.h5", f"{closed}>&-"])
    done = subprocess.run(words, shell=True, capture_output=True, text=True, timeout=100)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert Path("a.h5").exists()


def test_progress_is_coloured_on_a_terminal(monkeypatch):
    bars = []
    monkeypatch.setattr(ProgressBar, "_new_bar", lambda self, **options: bars.append(options))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        assert has_colour(sys.stderr) == is_terminal
        ProgressBar().started(10, 0)
    assert [bar["colour"] for bar in bars] == ["green", None]


@pytest.mark.parametrize(("given", "threads"), [(None, "1"), ("3", "3")])
def test_a_command_lets_blas_have_one_thread_unless_it_is_given_another_number(
    given, threads, monkeypatch
):
    # Set first, so that what was there comes back in any case.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    if given is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    else:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    answer("studies")
    assert os.environ["OPENBLAS_NUM_THREADS"] == threads


# Options that are given twice, or to the wrong command


def test_a_second_value_of_an_option_is_refused_by_every_command():
    options = [(name, each) for name in COMMANDS for each in main.get_command(None, name).params]
    single = [
        (name, each.opts[0], each.opts[-1], "/".join(each.opts))
        for name, each in options
        if isinstance(each, click.Option) and not (each.is_flag or each.multiple)
    ]
    assert len(single) > 150
    for name, first, last, both in single:
        told = refusal(name, f"{first}=1" if "--" in first else f"{first}1", last, "2")
        assert told.startswith(f"{both} is given twice: give it once"), name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (("label", ""), "INPUT"),
        (("label", "a.png", ""), "INPUT"),
        (("fit", "a.h5", ""), "RESULTS.h5"),
        (("sweep", "--graph", ""), "--graph"),
        (("sweep", "--measure", "sizes", "--measure="), "--measure"),
        (("export", "a.h5", "-o", ""), "-o/--out"),
    ],
)
def test_an_empty_value_is_refused(line, name):
    assert refusal(*line) == f"{name} is empty: give it a value, or leave it out"


def test_flags_and_options_of_many_values_may_be_given_twice():
    told = answer(*TINY, "-q", "--quiet", "--measure", "sizes", "--measure", "gyration")
    assert "results in results.h5" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (("exact", "--graph", "a.csv"), "exact [OPTIONS] GRAPH"),
        (("removals", "--graph=a.csv"), "removals [OPTIONS] GRAPH"),
        (("fit", "a.h5", "-L", "8"), "fit [OPTIONS] RESULTS.h5..."),
        (("--lattice", "square"), "[OPTIONS] COMMAND [ARGS]..."),
        (("sweep", "--error", "1e-3"),
         "(did you mean --target-error?); it is an option of threshold; use "),
        (("fit", "a.h5", "--jsn"), "No such option '--jsn' (did you mean --json?)"),
    ],
)  # fmt: skip
def test_an_option_of_other_commands_is_refused_with_what_to_use(line, told):
    refused = refusal(*line)
    assert told in refused
    assert ("it is an option of " in refused) == ("--jsn" not in line)


def test_an_interrupt_while_the_command_line_is_imported_leaves_no_traceback():
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'percolab.cli.groups': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from percolab.__main__ import run; run()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
