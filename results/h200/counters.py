"""Labels samples of a few lattices once, for the counters of a profiler, and shows these.

    ncu --csv --metrics METRICS python results/h200/counters.py > ncu.csv
    python results/h200/counters.py ncu.csv

METRICS: those of :data:`COLUMNS`, with commas between.  Kernels of 20 us and more are shown.
"""

from __future__ import annotations

import csv
import sys
from typing import Any

import numpy as np
from targets import SEED, make_block_sums

from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.lattices.lattice import load_lattice

#: Lattice, boundary, size and values of p of small lattices; lattice, boundary and size of others.
SMALL = (
    ("square", "periodic", 16, 1),
    ("square", "periodic", 64, 1),
    ("square", "open", 32, 1),
    ("square", "open", 64, 1),
    ("square", "open", 64, 9),
)
LARGE = (("honeycomb", "open", 4096), ("square", "open", 4096), ("cubic", "periodic", 128))
#: Grid points of all samples of a case, and samples of a block.
LABELINGS, LARGE_LABELINGS, LENGTH = 2**27, 2**26, 2**14
COLUMNS = {
    "us": "gpu__time_duration.sum",
    "issue %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "alu %": "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "warps %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "shared %": "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
    "memory %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "registers": "launch__registers_per_thread",
}
#: Kernels that begin a case.
FIRST = ("open_small", "open_words")


def label_all() -> None:
    """Label the samples of all cases."""
    for name, kind, size, points in SMALL:
        make_block_sums(name, "bond", kind, size, points, LENGTH, LABELINGS)[0]()
    for name, kind, size in LARGE:
        lattice = load_lattice(name)
        topology = lattice.topology(lattice.shape(size), (kind,) * lattice.dimension)
        count = LARGE_LABELINGS // topology.num_points
        coupling: Any = new_coupling("tiled", "cuda", topology, BOND, capacity=count)
        limits = np.array([p_to_threshold(lattice.threshold("bond").value)], np.uint64)
        coupling.grid_rows(XORWOW, SEED, np.arange(count, dtype=np.uint64), limits)


def show(path: str) -> None:
    """Print the table of a profiler's lines."""
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    kernels: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv.DictReader(lines):
        name = row["Kernel Name"].split("[")[0].split("::")[-1].removesuffix("_kernel")
        value = float(row["Metric Value"].replace(",", ""))
        kernels.setdefault((row["ID"], name), {})[row["Metric Name"]] = value
    cases = iter([f"{n} {k} L={s} {p} p" for n, k, s, p in (*SMALL, *((*c, 1) for c in LARGE))])
    print(f"{'case':26}{'kernel':20}" + "".join(f"{name:>10}" for name in COLUMNS))
    case = ""
    for (_, name), values in kernels.items():
        case = next(cases) if name in FIRST else case
        values[COLUMNS["us"]] /= 1e3
        if values[COLUMNS["us"]] >= 20:
            shown = "".join(f"{values[metric]:10.1f}" for metric in COLUMNS.values())
            print(f"{case:26}{name:20}{shown}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        show(sys.argv[1])
    else:
        label_all()
