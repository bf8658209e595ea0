"""Run the tests of fits as processors of two other generations do.

    python scripts/blas_kernels.py [--list]

NumPy and SciPy bring an OpenBLAS each, which chooses its kernel by the processor; each kernel adds
in an order of its own, as do NumPy's functions for each set of vector instructions, so last digits
differ from machine to machine.  No test may depend on them.  Kernel and instructions are those of
one generation at a time; that of this processor is tried by `make test`.
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
#: Tests whose numbers come out of matrices, and of these the most in the least time.
TESTS = (
    "tests/analysis",
    "tests/cli/test_fit.py",
    "tests/run/test_sampler.py",
    "tests/store/test_kept_results.py",
    "tests/store/test_stored_columns.py::test_columns_in_another_order_are_read_by_name",
    "tests/store/test_stored_columns.py::test_quantities_are_fitted_by_the_names_of_their_columns",
    "tests/test_golden.py::test_fits_of_kept_files_are_what_they_were",
)
#: Files whose slow tests are run as well: fits of every kind, without those that sample for long.
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
#: Values of OPENBLAS_CORETYPE, with the beginnings of the names of vector instructions that NumPy
#: has for later processors.  A kernel that OpenBLAS does not know means that of the processor.
GENERATIONS: dict[str, tuple[str, ...]] = {
    "Nehalem": ("AVX", "F16C", "FMA", "X86_V3", "X86_V4"),
    "Haswell": ("AVX512", "X86_V4"),
    "SkylakeX": (),
    "ARMV8": ("SVE",),
    "NEOVERSEV1": (),
}
#: Seconds for the tests under one kernel; they take about a minute on two cores.
LIMIT = 300
WORKERS = "auto"

#: Prints the kernels after use, so that one which the processor cannot run ends here.
USE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
matrix = np.random.default_rng(1).random((100, 100))
for module in (np.linalg, scipy.linalg):
    module.svd(matrix @ module.inv(matrix))
print(*(item["architecture"] for item in threadpool_info() if item["internal_api"] == "openblas"))
"""
#: Prints the vector instructions that NumPy uses and can do without.
SIMD = """
import numpy as np
print(*np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
"""


def python(code: str, variables: dict[str, str]) -> str | None:
    """Return what code prints; None where it needs an instruction that the processor lacks."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, stdout=subprocess.PIPE, text=True
    )
    if done.returncode == -signal.SIGILL:
        return None
    done.check_returncode()
    return done.stdout.strip()


def variants() -> Iterator[tuple[str, dict[str, str] | None]]:
    """Yield every generation, by its kernels in NumPy and SciPy, with the variables that choose it.

    None stands in place of variables where nothing is to be run.
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
    """Run those of the tests that are marked so; print how it ended, and all where one failed."""
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
