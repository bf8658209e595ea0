"""Run every CUDA kernel once on small lattices, for ``compute-sanitizer python scripts/...``."""

import numpy as np

from percolab.kernels.open_bonds import XORWOW, threshold_of
from percolab.labelers.four_step_cuda import FourStepCuda
from percolab.lattice import load_lattice

GRID = np.array([threshold_of(p) for p in (0.6, 0.65, 0.7)], np.uint64)
SAMPLES = np.arange(4, dtype=np.uint64)

for boundary in (("open", "open"), ("periodic", "periodic")):
    computed = load_lattice("honeycomb").topology((66, 40), boundary)
    for topology in (computed, computed.explicit()):
        batch = FourStepCuda(topology, capacity=3)
        batch.rows(XORWOW, 1, np.repeat(SAMPLES, GRID.size), np.tile(GRID, SAMPLES.size))
print("done")
