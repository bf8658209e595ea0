"""The command line refuses a bad sweep in one line that says what is allowed; it leaves nothing."""

import re
from pathlib import Path

import psutil
import pytest
from cli_support import (
    TINY,
    answer,
    left_in,
    refusal,
)

from percolab.lattices.lattice import Lattice
from percolab.store.results import read_results

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


BAD_SWEEPS = [
    (("--lattice", "honycomb"), "unknown lattice 'honycomb'; did you mean 'honeycomb'?"),
    (("--lattice", "nowhere.toml"), "nowhere.toml: no such file"),
    (("-L", "0"), "L = '0', but it must be an integer of at least 1"),
    (("-L", "8,8"), "L = 8, 8: a size is given twice"),
    (("-L", "50000"), "L = 50000: 2500000000 sites, but at most 2147483584 can be labeled"),
    (("-L", "9" * 30), "L = 999999999999999999...: no lattice of that size can be labeled"),
    (("-p", "nan"), "p = nan, but it must be a number from 0 to 1"),
    (("--boundary", "opne"), "unknown boundary 'opne'; did you mean 'open'?"),
    (("--boundary", "open,open,open"), "boundary: 3 given, but square has 2 axes"),
    (("--samples", "0"), "'--samples': 0 is not in the range x>=1"),
    (("--samples", "1.5"), "'--samples': '1.5' is not a valid integer"),
    (("--seed", "-1"), "'--seed': -1 is not in the range 0<=x<=9223372036854775807"),
    (("--seed", str(2**63)), "'--seed': 9223372036854775808 is not in the range"),
    (("--samples", str(2**63)), "samples must be below 2^63 for every size"),
    (("--target-error", "nan"), "target error nan must be above 0"),
    (("--target-error", "0.1", "-L", "8"), "a target error on p_c needs at least two sizes L"),
    (("--rng", "xorwov"), "unknown rng 'xorwov'; did you mean 'xorwow'?"),
    (("--device", "nonsense"), "--device nonsense: must be auto, cpu, cuda or cuda:n"),
    (("--device", "cuda"), "--device cuda: no GPU here"),
    (("--labeler", "rastre"), "unknown labeler 'rastre'; did you mean 'raster'?"),
    (("--workers", "0"), "'--workers': 0 is not in the range x>=1"),
    (("--sampels", "5"), "--samples"),
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
    monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda: None)
    monkeypatch.setattr("percolab.kernels.device.open_device", lambda name: None)
    monkeypatch.setattr("percolab.kernels.device.gpu_count", lambda name: 1)
    told = refusal(*TINY, "--device", "cuda", "--labeler", "raster")
    assert told.startswith("labeler 'raster' does not run on cuda; there: four_step, label_equ")
    assert left_in() == []


def test_a_size_too_large_for_memory_is_refused_before_anything_is_allocated(monkeypatch):
    memory = psutil.virtual_memory()._replace(available=10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(Lattice, "topology", None)
    told = refusal("sweep", "--lattice", "square", "-L", "64,20000", "--device", "cpu")
    assert re.fullmatch(r"L = 20000 needs \d+\.\d GB of memory; 1\.0 GB are free; --slabs .*", told)
    assert left_in() == []


def test_a_lattice_in_place_of_a_study_file_is_told_apart():
    told = refusal("sweep", "honeycomb")
    assert told.startswith("honeycomb: no such file, and no study of this name; ")
    assert told.endswith(" (a lattice goes with --lattice)")
