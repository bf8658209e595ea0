"""Checks C - C* - V + E on as many samples as the time allows, torus after torus.

`python results/flow/dual_identity.py SECONDS` prints a line for each lattice, shape and labeler:
the samples, and in how many of them the identity does not hold.
"""

import sys
import time

import numpy as np

from percolab.labelers import new_labeler
from percolab.lattices.lattice import lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.validation.duals import Dual, count_violations

LABELERS = ("raster", "four_step")
#: Cells along each axis.
CELLS = (2, 4, 12)
SAMPLES = 2000


def main():
    """Go round the cases with new samples until the time is over."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    cases = []
    for name in lattice_names():
        lattice = load_lattice(name)
        if not is_drawn_planar(lattice):
            continue
        threshold = lattice.threshold("bond")
        for cells in CELLS:
            topology = lattice.topology(tuple(cells * n for n in lattice.cell), ("periodic",) * 2)
            dual = Dual.of_topology(lattice, topology)
            for labeler in LABELERS:
                made = new_labeler(labeler, "cpu", topology)
                p = 0.5 if threshold is None else threshold.value
                cases.append([name, cells, labeler, made, dual, p, 0, 0])
    end, first = time.process_time() + seconds, 0
    while time.process_time() < end:
        samples = np.arange(first, first + SAMPLES, dtype=np.uint64)
        for case in cases:
            *_, made, dual, p, _, _ = case
            if time.process_time() < end:
                case[-1] += count_violations(made, dual, 2026, samples, p)
                case[-2] += SAMPLES
        first += SAMPLES
    for name, cells, labeler, *_, samples, wrong in cases:
        print(
            f"{name:16} {cells:3} x {cells} cells  {labeler:10} {samples:9} samples {wrong:3} wrong"
        )
    total, wrong = (sum(case[n] for case in cases) for n in (-2, -1))
    print(f"{total} samples, {wrong} wrong")


if __name__ == "__main__":
    main()
