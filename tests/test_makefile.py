"""The Makefile runs no kernel from a cache that is older than its source."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
#: Targets whose commands run kernels.
RUN_KERNELS = [
    *("test", "test-slow", "test-blas", "test-gpu"),
    *("sweep", "reproduce-figures", "bench", "records"),
]

CACHES = {".nbi", ".nbc"}


@pytest.mark.parametrize("target", RUN_KERNELS)
def test_targets_that_run_kernels_remove_stale_ones_first(target):
    rule = re.search(rf"^{target}:([^#\n]*)", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rule
    assert "stale-kernels" in rule[1].split()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_every_cache_older_than_the_newest_source_is_removed(tmp_path):
    """Whichever cache is looked at first, and whichever source was changed."""
    ages = {
        "percolab/lattice.py": 300,
        "percolab/kernels/new source.py": 200,
        "percolab/kernels/__pycache__/before.nbi": 250,
        "percolab/kernels/__pycache__/before.1.nbc": 400,
        "percolab/labelers/__pycache__/a.nbi": 350,
        "percolab/labelers/__pycache__/b.nbi": 100,
        "percolab/labelers/__pycache__/b.1.nbc": 100,
        "percolab/labelers/__pycache__/b.cpython-311.pyc": 400,
    }
    for name, age in ages.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1_700_000_000 - age,) * 2)
    # So many that those who list them are still at it when the first name is read.
    for n in range(12_000):
        path = tmp_path / "percolab" / "many" / f"a_module_with_a_long_name_{n:05}.py"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (1_699_990_000,) * 2)
    command = ["make", "-s", "-f", str(MAKEFILE), "stale-kernels"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
    files = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    left = {str(path) for path in files if path.parent.name != "many"}
    stale = {name for name, age in ages.items() if age > 200 and Path(name).suffix in CACHES}
    assert len(stale) == 3
    assert left == ages.keys() - stale


def test_what_ci_calls_is_there():
    ci = (MAKEFILE.parent / ".ci" / "run").read_text(encoding="utf-8")
    called = re.findall(r"^(?:\{ )?make (\S+)(?: TESTS=\"(.+)\")?", ci, re.MULTILINE)
    assert {"test", "test-blas", "test-slow", "lint"} <= {target for target, _ in called}
    rules = MAKEFILE.read_text(encoding="utf-8")
    for target, tests in called:
        assert target == ".venv/.developed" or f"\n{target}: $(DEVELOPED)" in rules, target
        paths, _, _ = tests.partition(" -k ")
        assert all((MAKEFILE.parent / path).exists() for path in paths.split()), tests


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_commands_keep_the_bytecode_of_what_they_import(tmp_path):
    probe = tmp_path / "probe.mk"
    probe.write_text(
        f"probe:\n\t@{sys.executable} -c 'import sys; print(sys.dont_write_bytecode)'\n"
    )
    command = ["make", "-s", "-f", str(MAKEFILE), "-f", str(probe), "probe"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
