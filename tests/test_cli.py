"""Every command does what its help says, and bad input gets one line and exit code 2."""

import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import numpy as np
import psutil
import pytest
from cli_support import (
    SMALL,
    answer,
    assert_equal_datasets,
    refusal,
    run,
    small_results,
    stored,
)

from percolab.api import sweep
from percolab.cli import COMMANDS, main
from percolab.config import DEFAULT_LATTICE, DEFAULT_SAMPLES, DEFAULT_SIZES
from percolab.lattice import Lattice, lattice_names
from percolab.storage import read_results

TINY = ("sweep", "--lattice", "square", "-L", "4,6", "-p", "0.5", "--samples", "10")
READERS = [name for name in COMMANDS if name in {"status", "fit", "plot", "export"}]
CELL = "[cell]\nshape = [1, 1]\n"
SIGNATURES = {".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".svg": b"<?xml"}


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    """Nothing is written outside a test's directory; machines without a GPU and with one agree."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("percolab.device.cuda_problem", lambda: "no GPU here")


@pytest.fixture
def file(tmp_path):
    return stored(tmp_path / "results.h5")


def left_in(folder=Path()):
    return sorted(path.name for path in Path(folder).iterdir())


# Help


def test_help_lists_every_command_and_what_it_does():
    text = answer("--help")
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", text, re.MULTILINE), name
    assert answer("-h") == text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented(name):
    text = answer(name, "--help")
    assert re.search(r"^  [A-Z]\w+ ", text, re.MULTILINE)
    for parameter in main.get_command(None, name).params:
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in text
            assert parameter.help or parameter.default, parameter.name


def test_the_help_of_sweep_states_the_defaults_in_use():
    text = " ".join(answer("sweep", "--help").split())
    for value in (DEFAULT_LATTICE, ",".join(map(str, DEFAULT_SIZES)), DEFAULT_SAMPLES):
        assert f"[default: {value}]" in text


def test_no_arguments_are_answered_by_the_help():
    result = run()
    assert result.exit_code == 2
    assert result.output == answer("--help")


def test_the_program_runs_as_a_module_and_imports_nothing_slow_for_its_help():
    code = (
        "import sys; sys.argv = ['percolab', '--help']\n"
        "try:\n    import percolab.__main__\n"
        "except SystemExit as end: print(end.code)\n"
        "print(sorted({'numba', 'h5py', 'matplotlib', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "Usage: " in output
    assert output.splitlines()[-2:] == ["0", "[]"]


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
    value, error, sigma = re.search(
        r"^p_c = (0\.\d+)\((\d+)\)  \(sigma (\S+), chi2/dof \S+, from spanning_y\)",
        result.stdout,
        re.MULTILINE,
    ).groups()
    assert abs(float(value) - 0.5) < 0.1
    assert float(sigma) == pytest.approx(int(error) * 10.0 ** -len(value[2:]), rel=0.1)
    assert "pilot: L = 8: 9 p values from 0." in result.stderr
    assert "100%" in result.stderr


def test_a_quiet_sweep_writes_nothing_to_stderr():
    result = run(*TINY, "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_sweep_without_a_threshold_says_why():
    told = answer("sweep", "--lattice", "square", "-L", 4, "-p", "0.5", "--samples", 10, "--quiet")
    assert "no threshold: need at least two sizes" in told


def test_a_study_file_is_swept_with_options_put_over_it():
    Path("study.toml").write_text(
        'lattice = "square"\nL = [4, 6]\np = [0.5]\nsamples = 10\nout = "mine.h5"\n'
    )
    answer("sweep", "study.toml", "--seed", 9, "--quiet")
    study = read_results("mine.h5").study
    assert (study.lattice.name, study.sizes, study.seed) == ("square", (4, 6), 9)


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


def test_the_fit_options_are_heard(file):
    fits = [
        json.loads(answer("fit", file, "--json", "--bootstrap", 20, *more))
        for more in [(), ("--omega", 2), ("--observable", "spanning_x"), ("--min-size", 8)]
    ]
    thresholds = [fit["threshold"] for fit in fits]
    assert len(set(thresholds)) == 4
    assert json.loads(answer("fit", file, "--json", "--bootstrap", 0))["error_method"].startswith(
        "curvature"
    )


def test_an_automatic_smallest_size_is_shown_as_a_table_and_taken(tmp_path):
    results = sweep("square", L=[4, 6, 8, 12, 16], samples=300, device="cpu")
    path = stored(tmp_path / "five.h5", results)
    record = json.loads(answer("fit", path, "--json", "--bootstrap", 20, "--min-size", "auto"))
    assert [row["min_size"] for row in record["cutoffs"]] == [4, 6]
    accepted = [row["min_size"] for row in record["cutoffs"] if row["accepted"]]
    assert min(record["sizes"]) == min(accepted, default=6)
    text = answer("fit", path, "--bootstrap", 20, "--min-size", "auto")
    table, rest = text.split("\n\n", 1)
    assert [line.split()[0] for line in table.splitlines()] == ["L_min", "4", "6"]
    assert rest == answer("fit", path, "--bootstrap", 20, "--min-size", min(record["sizes"]))
    answer("plot", path, "--bootstrap", 20, "--min-size", "auto")


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_plot_writes_the_figure_that_its_name_asks_for(file, suffix):
    figure = Path("figure").with_suffix(suffix)
    told = answer("plot", file, "--out", figure, "--bootstrap", 10)
    assert told == f"figure in {figure}\n"
    assert figure.read_bytes().startswith(SIGNATURES[suffix])


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
        assert text == ""
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


def test_merge_puts_seeds_and_sizes_into_one_file_that_every_command_reads(file):
    more = {**SMALL, "seed": 6, "L": (4, 32), "samples": 20}
    stored(Path("more.h5"), sweep("square", device="cpu", **more))
    told = answer("merge", file, "more.h5", "--out", "both.h5")
    assert told == "2 files, 5 tasks, 220 samples in both.h5\n"
    tasks = json.loads(answer("status", "both.h5", "--json"))["tasks"]
    assert [(t["L"], t["seed"]) for t in tasks] == [(4, 5), (4, 6), (8, 5), (16, 5), (32, 6)]
    lines = answer("status", "both.h5").splitlines()[2:8]
    column = lines[0].split().index("seed")
    assert [line.split()[column] for line in lines[1:]] == ["5", "6", "5", "5", "6"]
    assert len(answer("export", "both.h5").splitlines()) == 1 + 5 * len(SMALL["p"])
    assert {c["L"] for c in json.loads(answer("fit", "both.h5", "--json"))["curves"]} == {
        4,
        8,
        16,
        32,
    }
    answer("plot", "both.h5")


def test_lattices_are_listed_and_described():
    text = answer("lattices")
    records = json.loads(answer("lattices", "--json"))
    assert [record["name"] for record in records] == lattice_names()
    for record in records:
        assert re.search(rf"^{record['name']} ", text, re.MULTILINE)
        assert record["thresholds"][0]["reference"] in text
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


def test_the_version_is_told():
    assert re.fullmatch(r"percolab, version \d+\.\d+\.\d+\n", answer("--version"))


# Bad input to sweep

BAD_SWEEPS = [
    (("--lattice", "honycomb"), "unknown lattice 'honycomb'; did you mean 'honeycomb'?"),
    (("--lattice", "nowhere.toml"), "nowhere.toml: cannot be read: No such file or directory"),
    (("-L", "0"), "L = '0', but it must be an integer of at least 1"),
    (("-L", "-3"), "L = '-3', but it must be an integer of at least 1"),
    (("-L", "1.5"), "L = '1.5', but it must be an integer of at least 1"),
    (("-L", "8,,9"), "L = '8,,9', but it must be an integer of at least 1"),
    (("-L", "8,8"), "L = 8, 8: a size is given twice"),
    (("-L", "50000"), "L = 50000: 2500000000 sites, but at most 2147483584 can be labeled"),
    (("-L", "9" * 30), "L = 999999999999999999...: no lattice of that size can be labeled"),
    (("-p", "1.2"), "p = 1.2, but it must be a number from 0 to 1"),
    (("-p", "-0.1"), "p = -0.1, but it must be a number from 0 to 1"),
    (("-p", "nan"), "p = nan, but it must be a number from 0 to 1"),
    (("-p", "0.4,nan"), "p = nan, but it must be a number from 0 to 1"),
    (("-p", "half"), "p = 'half': 'half' is not a number"),
    (("-p", "0.6:0.5:3"), "p = '0.6:0.5:3' is empty: from must be below to"),
    (("-p", "0.5:0.6:0"), "count from 2 to 10000"),
    (("-p", "0.5:0.6"), "a range is from:to:count, as in 0.50:0.55:21"),
    (("-p", ","), "p = ',': the list is empty"),
    (("-p", "0.5,0.4"), "p = 0.5, 0.4: the values must ascend and differ"),
    (("--boundary", "opne"), "unknown boundary 'opne'; did you mean 'open'?"),
    (("--boundary", "open,open,open"), "boundary: 3 given, but square has 2 axes"),
    (("--samples", "0"), "'--samples': 0 is not in the range x>=1"),
    (("--samples", "1.5"), "'--samples': '1.5' is not a valid integer"),
    (("--seed", "-1"), "'--seed': -1 is not in the range 0<=x<=9223372036854775807"),
    (("--seed", str(2**63)), "'--seed': 9223372036854775808 is not in the range"),
    (("--samples", str(2**63)), "samples must be below 2^63 for every size"),
    (("--target-error", "nan"), "target error nan must be above 0"),
    (("--target-error", "-1"), "target error -1.0 must be above 0"),
    (("--target-error", "0"), "target error 0.0 must be above 0"),
    (("--target-error", "0.1", "-L", "8"), "a target error on p_c needs at least two sizes L"),
    (("--rng", "xorwov"), "unknown rng 'xorwov'; did you mean 'xorwow'?"),
    (("--device", "nonsense"), "--device nonsense: must be auto, cpu, cuda or cuda:n"),
    (("--device", "cuda:x"), "--device cuda:x: must be auto, cpu, cuda or cuda:n"),
    (("--device", "cuda"), "--device cuda: no GPU here"),
    (("--labeler", "rastre"), "unknown labeler 'rastre'; did you mean 'raster'?"),
    (("--labeler", "ratser", "--device", "cpu"), "did you mean 'raster'?"),
    (("--workers", "0"), "'--workers': 0 is not in the range x>=1"),
    (("--sampels", "5"), "'--samples'?"),
    (("--out", ""), "is a directory; give the name of a file"),
    (("--out", "."), "is a directory; give the name of a file"),
    (("--out", "nowhere/results.h5"), "nowhere/results.h5: the directory"),
]


@pytest.mark.parametrize(("options", "told"), BAD_SWEEPS, ids=str)
def test_a_sweep_refuses_bad_options_and_leaves_nothing(options, told):
    assert told in refusal(*TINY, *options)
    assert left_in() == []


@pytest.mark.parametrize(("options", "told"), BAD_SWEEPS[:3] + BAD_SWEEPS[-3:], ids=str)
def test_a_sweep_refuses_bad_options_beside_a_study_file(options, told):
    Path("study.toml").write_text('lattice = "square"\nL = 4\np = 0.5\nsamples = 10\n')
    assert told in refusal("sweep", "study.toml", *options)
    assert left_in() == ["study.toml"]


def test_on_a_torus_the_pilot_looks_for_wrapping():
    answer(
        "sweep", "--lattice", "square", "--boundary", "periodic", "-L", "8,16", "--samples", "500"
    )
    for item in read_results("results.h5").tasks.values():
        around = item.column("wrapping_x").sum(axis=0) / item.num_samples
        assert around[0] < 0.2 < 0.8 < around[-1]


def test_a_labeler_that_does_not_run_on_the_device_is_refused(monkeypatch):
    monkeypatch.setattr("percolab.device.cuda_problem", lambda: None)
    monkeypatch.setattr("percolab.device.open_device", lambda name: None)
    told = refusal(*TINY, "--device", "cuda", "--labeler", "raster")
    assert told.startswith("labeler 'raster' does not run on cuda; there: four_step, label_equ")
    assert left_in() == []


def test_a_size_too_large_for_memory_is_refused_before_anything_is_allocated(monkeypatch):
    memory = psutil.virtual_memory()._replace(available=10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(Lattice, "topology", None)
    told = refusal("sweep", "--lattice", "square", "-L", "64,20000", "--device", "cpu")
    assert re.fullmatch(r"L = 20000 needs \d+\.\d GB of memory; 1\.0 GB are free", told)
    assert left_in() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("L = [8", "study.toml: is not valid TOML"),
        ("sampels = 8", "study.toml: unknown key 'sampels'; did you mean 'samples'?"),
        ("L = 1.5", "study.toml: L = 1.5, but it must be an integer of at least 1"),
        ("lattice = 'own.toml'", "own.toml: bonds[0]: bond to a site that does not exist"),
    ],
)
def test_a_bad_study_file_is_refused(text, told):
    Path("study.toml").write_text(text)
    Path("own.toml").write_text(
        'name = "own"\ndimension = 2\n[cell]\nshape = [2, 1]\nvacant = [[1, 0]]\n'
        "[[bonds]]\noffset = [1, 0]\nat = [[0, 0]]\n"
    )
    assert told in refusal("sweep", "study.toml")
    assert left_in() == ["own.toml", "study.toml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("= 3", "own.toml: is not valid TOML"),
        ("dimension = 2\nbnods = 1", "own.toml: unknown key 'bnods'; did you mean 'bonds'?"),
        (f"dimension = 2\n{CELL}[[bonds]]\noffset = [1]", "offset = [1], but"),
        (f"dimension = 2\n{CELL}[[bonds]]\noffset = [0, 0]", "joins a site to itself"),
        (
            f"dimension = 2\n{CELL}[[bonds]]\noffset = [1, 0]\nat = [[0, 1]]",
            "at names [0, 1], which is no point of the cell",
        ),
        (
            "dimension = 1\n[unit_cell]\nsites = 2\nbonds = [{ from = 0, to = 2, cell = [0] }]",
            "to = 2, but it must be an integer from 0 to 1",
        ),
    ],
)
def test_a_bad_lattice_file_is_refused(text, told):
    Path("own.toml").write_text(f'name = "own"\n{text}\n')
    assert told in refusal("sweep", "--lattice", "own.toml")
    assert left_in() == ["own.toml"]


def test_a_lattice_in_place_of_a_study_file_is_told_apart():
    told = refusal("sweep", "honeycomb")
    assert told == "honeycomb: a study file ends in .toml; a lattice goes with --lattice"


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
        (("-L", "4,8"), "L is [4, 6] there, [4, 8] here"),
        (("-p", "0.6"), "p is [0.5] there, [0.6] here"),
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
    assert refused.endswith("choose another --out")
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
        (("--omega", "x"), "'--omega': 'x' is not a valid float"),
        (("--min-size", "0"), "'--min-size': 0 is not in the range x>=1"),
        (("--bootstrap", "-1"), "'--bootstrap': -1 is not in the range x>=0"),
        (("--bootstrap", "1.5"), "'--bootstrap': '1.5' is not a valid integer"),
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
        ("taken.png", "taken.png: cannot be written: Is a directory"),
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
        ("results.h5", "results.h5: is an HDF5 file, which a CSV file must not replace"),
    ],
)
def test_export_refuses_a_table_it_must_not_write(file, target, told):
    before = file.read_bytes()
    assert refusal("export", file, "--out", target) == told
    assert file.read_bytes() == before


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
