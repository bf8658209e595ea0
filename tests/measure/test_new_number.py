"""A number of the row needs two files; an edit of the sums leaves no kernel from before."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import percolab
from percolab.measure.sums import NUMBERS

TESTS = Path(__file__).parents[1]
#: Clusters of two sites: what is added to sums.py, each after the line that is there.
TERMS = (
    ("    isolated: Any\n", "    pairs: Any\n"),
    (
        "            number(sums.isolated + number(size == number(1))),\n",
        "            number(sums.pairs + number(size == number(2))),\n",
    ),
    (
        "            number(one.isolated + other.isolated),\n",
        "            number(one.pairs + other.pairs),\n",
    ),
    (
        "            number(sums.isolated - number(number(large == number(1)) + "
        "number(small == number(1)))),\n",
        "            number(number(sums.pairs + number(joined == number(2))) - "
        "number(number(large == number(2)) + number(small == number(2)))),\n",
    ),
    (
        f"            number(numbers[first + {NUMBERS - 1} * step]),\n",
        f"            number(numbers[first + {NUMBERS} * step]),\n",
    ),
)
NONE = f"ClusterSums({', '.join(['none'] * NUMBERS)})"
ISOLATED = '    _row_column("isolated", "n_1", "number of clusters of one site"),\n'
COLUMN = '    _row_column("pairs", "n_2", "clusters of two sites"),\n'


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package, without kernels."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(percolab.__file__).parent, tmp_path / "percolab", ignore=ignored)
    return tmp_path / "percolab"


def edit(path, *changes):
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def run(copied, *arguments, **variables):
    """Run Python with the copied package; return what it printed."""
    given = {"PYTHONPATH": str(copied.parent), "NUMBA_CACHE_DIR": ""} | variables
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
        cwd=copied.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add_pairs(copied):
    terms = [(old, old + new) for old, new in TERMS]
    edit(copied / "measure/sums.py", *terms, (NONE, NONE.replace("none)", "none, none)")))
    edit(copied / "measure/columns.py", (ISOLATED, ISOLATED + COLUMN))


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_new_number_is_measured_by_all_that_measures(device, copied):
    add_pairs(copied)
    # Without compiling, which would take minutes for a copy that has no kernels.
    variables, program = {"NUMBA_DISABLE_JIT": "1"}, [TESTS / "new_number.py", device]
    if device == "cuda":
        variables["NUMBA_ENABLE_CUDASIM"], program = "1", [TESTS / "simulator.py", *program]
    assert run(copied, *program, **variables).splitlines()


def test_a_column_that_nothing_measures_is_an_error_at_import(copied):
    edit(copied / "measure/columns.py", (ISOLATED, ISOLATED + COLUMN))
    with pytest.raises(AssertionError, match="a row has no 'pairs', but clusters, largest"):
        run(copied, "-c", "import percolab.measure.columns", NUMBA_DISABLE_JIT="1")


#: Compiles or loads a kernel on the CPU, and tells by what one of CUDA is cached.
MEASURED = """
import numpy as np
from percolab.measure.rows import ROW_WIDTH, row_from_labels
from percolab.measure.rows_cuda import finish_rows_kernel
row, ends, scratch = np.zeros(ROW_WIDTH, np.int64), np.zeros(0, np.int32), np.zeros(4, np.int32)
# Two clusters of one site, and one of two.
labels = np.array([0, 1, 2, 2], np.int32), np.array([15], np.uint32)
row_from_labels(*labels, ends, ends.view(np.uint32), scratch, scratch.view(np.uint32), row)
finish_rows_kernel.enable_caching()
stamp = finish_rows_kernel._cache._cache_file._source_stamp[1]
print(row[4], sum(row_from_labels.stats.cache_hits.values()), stamp)
"""


@pytest.mark.slow
def test_an_edit_of_the_sums_leaves_no_kernel_from_before(copied):
    pytest.importorskip("numba_cuda")
    isolated, hits, stamp = run(copied, "-c", MEASURED).split()
    assert (isolated, hits) == ("2", "0")
    assert run(copied, "-c", MEASURED).split() == ["2", "1", stamp], "the kernel is cached"
    edit(copied / "measure/sums.py", ("number(size == number(1))", "number(size == number(2))"))
    isolated, hits, other = run(copied, "-c", MEASURED).split()
    assert (isolated, hits) == ("1", "0")
    assert other != stamp
