"""Build the source distribution and, from it, the wheel; test the wheel in a clean environment.

    python scripts/check_wheel.py [--contents] [--out dist]

What is in both is compared with the files of the repository.  Then, without --contents, the wheel
is installed into a new virtual environment with nothing but what it asks for, and used from an
empty directory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Suffixes of the files of records in the source distribution, which has no pictures.
READ = {".cu", ".h5", ".json", ".md", ".npz", ".py", ".txt"}
#: Files not in the source distribution: those of the repository and its hosts only.
OF_GIT = (".git", ".pre-commit-config.yaml", ".readthedocs.yaml")

_IMPORTS = """
import importlib, sys
import percolab
from percolab.cli import COMMANDS
assert percolab.__file__.startswith(sys.prefix), percolab.__file__
for name in percolab.__all__:
    getattr(percolab, name)
for name in COMMANDS:
    importlib.import_module(f"percolab.cli.{name}").command
"""


def files_of_sdist(tracked: list[str]) -> set[str]:
    """Return the files of the repository that the source distribution must contain."""
    return {
        name
        for name in tracked
        if not name.startswith(OF_GIT)
        and (not name.startswith("results/") or Path(name).suffix in READ)
    }


def files_of_wheel(tracked: list[str]) -> set[str]:
    """Return the names of files that the wheel must contain in addition to its metadata."""
    package = {name for name in tracked if name.startswith("percolab/")}
    studies = {f"percolab/{name}" for name in tracked
               if name.startswith("configs/") and name.endswith(".toml")}  # fmt: skip
    return package | studies


def check_equal(what: str, found: set[str], expected: set[str]) -> None:
    """Exit with a message if files are missing or unexpected."""
    if found != expected:
        lacks, extra = sorted(expected - found), sorted(found - expected)
        raise SystemExit(f"{what} lacks {lacks[:10]}, and has {extra[:10]} too much")
    print(f"{what}: {len(found)} files, as it should be")


def new_environment(folder: Path) -> Path:
    """Make a virtual environment, and return the folder of its programs."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def run(*command: object, cwd: Path) -> str:
    """Run a command that must succeed, and return its stdout."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}")
    return done.stdout


def check_contents(out: Path, version: str, tracked: list[str]) -> Path:
    """Compare the built files with the repository and return the wheel."""
    base = f"percolab-{version}"
    with tarfile.open(out / f"{base}.tar.gz") as file:
        held = {item.name.partition("/")[2] for item in file if item.isfile()}
    made = {name for name in held if "egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    check_equal("source distribution", held - made, files_of_sdist(tracked))
    wheel = out / f"{base}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if not name.startswith(f"{base}.dist-info/")}
    check_equal("wheel", held, files_of_wheel(tracked))
    return wheel


def check_use(bin: Path, folder: Path, version: str) -> None:
    """Use the installed package from an empty directory."""
    percolab = bin / "percolab"
    run(bin / "python", "-c", _IMPORTS, cwd=folder)
    printed = run(percolab, "--version", cwd=folder).strip()
    assert printed.endswith(version), printed
    listed = {line.split()[0] for line in run(percolab, "studies", cwd=folder).splitlines()[1:]}
    configs = ROOT / "configs"
    kept = {
        path.relative_to(configs).with_suffix("").as_posix() for path in configs.rglob("*.toml")
    }
    check_equal("percolab studies", listed, kept)
    tiny = ("-L", "4,6,8", "-p", "0.6:0.7:5", "--samples", "400", "--device", "cpu")
    print(run(percolab, "sweep", "quick", *tiny, "--quiet", cwd=folder), end="")
    print(run(percolab, "export", "quick.h5", "--format", "npz", cwd=folder), end="")


def main() -> None:
    """Build, compare, install, use."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--contents", action="store_true", help="Do not install the wheel.")
    given = parser.parse_args()
    out = given.out.resolve()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Build a copy, since a build writes files next to the sources and removes them again.
        tracked = run("git", "ls-files", cwd=ROOT).splitlines()
        for file in tracked:
            (folder / "source" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, folder / "source" / file)
        run(sys.executable, "-m", "build", "--outdir", out, folder / "source", cwd=folder)
        wheel = check_contents(out, version, tracked)
        if given.contents:
            return
        clean = new_environment(folder / "clean")
        run(clean / "pip", "install", "--quiet", "--no-compile", wheel, cwd=folder)
        (folder / "empty").mkdir()
        check_use(clean, folder / "empty", version)
    print(f"{wheel.name} works in a clean environment")


if __name__ == "__main__":
    main()
