"""What says something about the package in several places agrees; no kernel is too old."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from percolab.cli import COMMANDS, main

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
    called = set(re.findall(r"^(?:\{ )?make (\S+)", ci, re.MULTILINE)) - {".venv/.developed"}
    assert {"test", "test-blas", "test-slow", "lint"} <= called
    rules = MAKEFILE.read_text(encoding="utf-8")
    assert all(f"\n{target}: $(DEVELOPED)" in rules for target in called)


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


ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
CONTAINER = (ROOT / "packaging" / "Containerfile").read_text()
CITATION = (ROOT / "CITATION.cff").read_text()


def test_version_authors_and_license_are_those_of_the_citation():
    assert f"\nversion: {PROJECT['version']}\n" in CITATION
    assert f"\nlicense: {PROJECT['license']}\n" in CITATION
    cited = re.search(r"^authors:\n((?:  .*\n)+)", CITATION, re.MULTILINE)[1]
    assert re.findall("  - name: (.+)", cited) == [author["name"] for author in PROJECT["authors"]]


def test_the_changelog_begins_with_this_version_and_dates_every_one():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\b.*\)$", text, re.MULTILINE)
    assert len(versions) == text.count("\n## ") >= 2
    assert versions[0][0] == PROJECT["version"]
    assert f"\ndate-released: {versions[0][1]}\n" in CITATION


def test_the_conda_recipe_requires_what_the_package_requires():
    section = re.search(r"\n  run:\n((?:    - .*\n)+)", RECIPE)[1]
    found = dict(re.findall(r"- (\S+) (\S+)", section))
    found["matplotlib"] = found.pop("matplotlib-base")
    expected = dict(re.match(r"([\w-]+)(.+)", text).groups() for text in PROJECT["dependencies"])
    assert found == expected | {"python": PROJECT["requires-python"]}
    assert f'version: "{PROJECT["version"]}"' in RECIPE
    assert f"percolab = {PROJECT['scripts']['percolab']}" in RECIPE
    assert f"license: {PROJECT['license']}" in RECIPE


def test_the_conda_recipe_names_the_extras_with_their_versions():
    section = re.search(r"\n  run_constraints:\n((?:    - .*\n)+)", RECIPE)[1]
    found = {name + version for name, version in re.findall(r"- (\S+) (\S+)", section)}
    extras = {name: texts for name, texts in PROJECT["optional-dependencies"].items()
              if name in {"cuda12", "dask", "graph", "mpi", "tables"}}  # fmt: skip
    expected = {re.sub(r"\[.*\]", "", text) for texts in extras.values() for text in texts}
    # It has constraints of packages that may be missing, none of what is always there.
    assert found == expected - {"numpy<2.5"}


def test_numpy_has_an_upper_bound_only_where_numba_cuda_is_installed():
    bounds = [text for text in PROJECT["dependencies"] if re.search("<|~=|==", text)]
    assert bounds == []
    for name, texts in PROJECT["optional-dependencies"].items():
        has_cuda = any(text.startswith("numba-cuda") for text in texts)
        assert ("numpy<2.5" in texts) == has_cuda == name.startswith("cuda"), name


def test_the_container_copies_what_a_build_needs_and_names_extras_that_there_are():
    copied = {name for line in re.findall(r"^COPY (.+) /source", CONTAINER, re.MULTILINE)
              for name in line.split()}  # fmt: skip
    assert copied == {"pyproject.toml", "setup.py", "README.md", "LICENSE", "percolab", "configs"}
    assert all((ROOT / name).exists() for name in copied)
    named = set(re.findall(r"EXTRA=(\w+)", CONTAINER)) | {"tables"}
    assert named <= PROJECT["optional-dependencies"].keys()
    assert re.search(r"^ARG BASE=nvidia/cuda:12\S+\nFROM \$\{BASE\}$", CONTAINER, re.MULTILINE)
    assert "ARG EXTRA=cuda12\n" in CONTAINER


def completed(monkeypatch, capsys, words):
    """Return the words with which a shell completes the last of these."""
    monkeypatch.setenv("_PERCOLAB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main(prog_name="percolab")
    assert ended.value.code == 0
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("percolab ", list(COMMANDS)),
        ("percolab st", ["studies", "status"]),
        ("percolab --vers", ["--version"]),
        ("percolab sweep komura2016-fig6", ["komura2016-fig6", "komura2016-fig6-small"]),
        ("percolab studies torus/square-", ["torus/square-critical", "torus/square-scaling"]),
        ("percolab sweep own", ["own"]),
        ("percolab export --form", ["--format"]),
        ("percolab export --format n", ["netcdf", "npz"]),
    ],
)  # fmt: skip
def test_shells_complete_commands_options_and_studies(monkeypatch, capsys, words, found):
    assert sorted(completed(monkeypatch, capsys, words)) == sorted(found)


def test_completing_a_command_imports_none(monkeypatch, capsys):
    for name in COMMANDS:
        monkeypatch.delitem(sys.modules, f"percolab.cli.{name}", raising=False)
    completed(monkeypatch, capsys, "percolab ")
    assert not {f"percolab.cli.{name}" for name in COMMANDS} & sys.modules.keys()


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "check_wheel.py", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "works in a clean environment" in done.stdout
