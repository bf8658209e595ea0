"""Labels samples of a few lattices once, for the counters of a profiler.

    ncu --csv --metrics METRICS python results/h100-x4/counters.py

METRICS: see the head of counters.txt.  A line says which case the kernels after it belong to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.benchmark.records import make_grid
from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_columns
from percolab.tasks.blocks import pick_observables, pick_squared

#: Lattice, boundary, size and values of p; the first ones are small.
SMALL = (
    ("square", "periodic", 16, 1),
    ("square", "periodic", 64, 1),
    ("square", "open", 32, 1),
    ("square", "open", 64, 1),
    ("square", "open", 64, 9),
)
LARGE = (("honeycomb", "open", 4096, 1), ("square", "open", 4096, 1), ("cubic", "periodic", 128, 1))
#: Site labelings of a case, and samples of a block.
LABELINGS, LENGTH = 2**27, 2**14


def label(name: str, kind: str, size: int, points: int, *, in_blocks: bool) -> None:
    """Label the samples of a case."""
    lattice = load_lattice(name)
    boundary = (kind,) * lattice.dimension
    topology = lattice.topology(lattice.shape(size), boundary)
    grid = make_grid(lattice.threshold("bond").value, topology, points)
    limits = np.array([p_to_threshold(p) for p in grid], np.uint64)
    count = LABELINGS // (topology.num_points * points)
    print(f"CASE {name} {kind} L={size} {points} p", flush=True)
    if in_blocks:
        coupling: Any = new_coupling("tiled", "cuda", topology, BOND, capacity=64)
        own = [column for column in list_columns(boundary) if column.is_observable]
        starts = np.arange(max(count // LENGTH, 1), dtype=np.uint64) * np.uint64(LENGTH)
        blocks, picks = SampleBlocks(starts, LENGTH), (pick_observables(own), pick_squared(own))
        coupling.block_sums(XORWOW, 3, blocks, limits, *picks)
    else:
        coupling = new_coupling("tiled", "cuda", topology, BOND, capacity=count)
        coupling.grid_rows(XORWOW, 3, np.arange(count, dtype=np.uint64), limits)


def main() -> None:
    """Label all cases."""
    for case in SMALL:
        label(*case, in_blocks=True)
    for case in LARGE:
        label(*case, in_blocks=False)


if __name__ == "__main__":
    main()
