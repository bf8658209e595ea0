"""The fuzzer of files runs, damages the same files each time, and notices what it should."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import small_results

from percolab.errors import InputError
from percolab.store.results import encode, read_results

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "scripts" / "fuzz_files.py"
spec = importlib.util.spec_from_file_location("fuzz_files", PROGRAM)
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)


def test_equal_seeds_damage_alike():
    content = (ROOT / "configs" / "quick.toml").read_bytes()
    one, other = (fuzz.damaged(content, random.Random(4), is_text=True) for _ in range(2))
    assert one == other != content


def test_damaged_and_edited_results_are_refused_or_equal(tmp_path):
    content, path = encode(small_results()), tmp_path / "mutant.h5"
    messages = []
    for number in range(40):
        rng = random.Random(number)
        mutant = (
            fuzz.edited(content, rng, sealed=False)
            if number % 2
            else fuzz.damaged(content, rng, is_text=False)
        )
        path.write_bytes(mutant)
        try:
            assert encode(read_results(path)) == content, number
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert not any("\n" in line for line in messages)


@pytest.mark.slow
def test_sealing_anew_lets_a_changed_number_pass_for_a_true_one(tmp_path):
    """So that the checks behind the checksums are reached by mutants at all."""
    content, messages = encode(small_results()), set()
    for number in range(20):
        path = tmp_path / "mutant.h5"
        path.write_bytes(fuzz.edited(content, random.Random(number), sealed=True))
        try:
            read_results(path)
        except InputError as error:
            messages.add("checksum" in str(error))
    assert False in messages


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lattices"])
def test_the_program_counts_and_writes_a_record(family, tmp_path):
    command = [sys.executable, PROGRAM, "--mutants", "30", "--family", family, "--out", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    record = json.loads((tmp_path / "fuzz.json").read_text())
    assert record["mutants"] == 30
    assert record["counts"]["clean"] > 10
    assert record["counts"]["hang"] == record["counts"]["traceback"] == 0
