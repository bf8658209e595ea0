"""Run the tests of fits with the arithmetic of processors of two other generations.

    python scripts/blas_kernels.py [--list]

NumPy and SciPy each include an OpenBLAS, which chooses its kernel by the processor.  Kernels differ
in the order of additions, as do NumPy's functions for each set of vector instructions, so last
digits differ between machines.  No test may depend on them.  Kernel and instructions are those of
one generation at a time; those of this processor are tested by `make test`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Tests with results from linear algebra, chosen to cover most of it in a short time.
TESTS = (
    "tests/analysis",
    "tests/cli/test_fit.py",
    "tests/run/test_sampler.py",
    "tests/store/test_kept_results.py",
    "tests/store/test_stored_columns.py::test_columns_in_another_order_are_read_by_name",
    "tests/store/test_stored_columns.py::test_quantities_are_fitted_by_the_names_of_their_columns",
    "tests/test_golden.py::test_fits_of_kept_files_are_what_they_were",
)
#: Files whose slow tests are run, too: fits of every kind, except those that sample for long.
SLOW_TOO = (
    "tests/analysis/test_maxima.py",
    "tests/analysis/test_power_law.py",
    "tests/analysis/test_quantity_fits.py",
    "tests/analysis/test_scaling.py",
    "tests/analysis/test_table_fit.py",
    "tests/analysis/test_thermodynamics.py",
    "tests/analysis/test_threshold.py",
    "tests/analysis/test_wrapping_fit.py",
    "tests/cli/test_fit.py",
)
#: Values of OPENBLAS_CORETYPE, with prefixes of the vector instructions that NumPy has for later
#: processors.  For a kernel unknown to OpenBLAS, it uses the kernel of the processor.
GENERATIONS: dict[str, tuple[str, ...]] = {
    "Nehalem": ("AVX", "F16C", "FMA", "X86_V3", "X86_V4"),
    "Haswell": ("AVX512", "X86_V4"),
    "SkylakeX": (),
    "ARMV8": ("SVE",),
    "NEOVERSEV1": (),
}
#: Time limit in seconds for the tests with one kernel; they take about a minute on two cores.
LIMIT = 300
WORKERS = "auto"

#: A program that uses and prints the kernels; it fails if the processor cannot run one.
USE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
matrix = np.random.default_rng(1).random((100, 100))
for module in (np.linalg, scipy.linalg):
    module.svd(matrix @ module.inv(matrix))
print(*(item["architecture"] for item in threadpool_info() if item["internal_api"] == "openblas"))
"""
#: A program that prints the vector instructions that NumPy uses but can be told not to use.
SIMD = """
import numpy as np
print(*np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
"""


def python(code: str, variables: dict[str, str]) -> str | None:
    """Return the output of code; None if it needs an instruction that the processor lacks."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, stdout=subprocess.PIPE, text=True
    )
    if done.returncode == -signal.SIGILL:
        return None
    done.check_returncode()
    return done.stdout.strip()


def variants() -> Iterator[tuple[str, dict[str, str] | None]]:
    """Yield every generation: its kernels in NumPy and SciPy, and the variables that choose it.

    The variables are None if nothing is to be run.
    """
    own = python(USE, {})
    yield f"{own or 'no OpenBLAS'}: tried by make test", None
    found, features = {own}, (python(SIMD, {}) or "").split()
    for name, later in GENERATIONS.items() if own else ():
        variables = {"OPENBLAS_CORETYPE": name}
        kernels = python(USE, variables)
        if kernels is None:
            yield f"{name}: not on this processor", None
        elif kernels not in found:
            found.add(kernels)
            if without := " ".join(each for each in features if each.startswith(later)):
                variables["NPY_DISABLE_CPU_FEATURES"] = without
            yield f"{kernels}: {variables}", variables


def passes(variables: dict[str, str]) -> bool:
    """Run the tests with these variables; return whether all pass."""
    fast = run("not gpu and not slow", TESTS, variables)
    return run("not gpu and slow", SLOW_TOO, variables) and fast


def run(marked: str, tests: tuple[str, ...], variables: dict[str, str]) -> bool:
    """Run the tests with these marks; print the summary, or the whole output if one failed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", marked, "-p", "no:cacheprovider"]
        + ["-n", WORKERS, "--dist", "worksteal", *tests],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    print(done.stdout if done.returncode else done.stdout.splitlines()[-1], flush=True)
    return done.returncode == 0


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="Name the kernels, run no tests.")
    given = parser.parse_args()
    failed = []
    for text, variables in variants():
        print(text, flush=True)
        if variables and not given.list and not passes(variables):
            failed.append(text)
    if failed:
        sys.exit("\n".join(["tests fail under", *failed]))


if __name__ == "__main__":
    main()
