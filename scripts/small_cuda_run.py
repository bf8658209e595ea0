"""Run every CUDA kernel once on small lattices, for ``compute-sanitizer python scripts/...``."""

from itertools import product

import numpy as np

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.flows.readers import Backbone, Bridges, Path
from percolab.labelers import LABELERS
from percolab.labelers.forest import Reading
from percolab.lattices.geometry import make_geometry
from percolab.lattices.lattice import load_lattice
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs

GRID = np.array([p_to_threshold(p) for p in (0.64, 0.65, 0.66)], np.uint64)
SAMPLES = np.arange(4, dtype=np.uint64)

# One thread per sample, teams of one and of two warps, tiles in four dimensions, and flows.
for (name, shape), kind, text in product(
    (
        ("square", (16, 16)),
        ("square", (40, 40)),
        ("cubic", (6, 6, 6)),
        ("hypercubic-4d", (9, 8, 8, 8)),
    ),
    ("open", "periodic"),
    ("bond", "site"),
):
    lattice, model = load_lattice(name), Model.parse(text)
    topology = lattice.topology(shape, (*(kind,) * (len(shape) - 1), "open"))
    coupling = new_coupling("tiled", "cuda", topology, model, capacity=3)
    coupling.rows(XORWOW, 1, SAMPLES[:3], GRID)
    coupling.grid_rows(XORWOW, 1, SAMPLES, GRID)
    for reader in (Bridges, Backbone, Path):
        reader(lattice, ()).rows(coupling, XORWOW, 1, SAMPLES[:3], GRID)
print("small lattices, four dimensions, what flows")

for name in [entry.name for entry in LABELERS.values() if "cuda" in entry.classes]:
    for boundary in (("open", "open"), ("periodic", "periodic")):
        computed = load_lattice("honeycomb").topology((130, 100), boundary)
        for topology, model in product(
            (computed, computed.explicit()), (BOND, Model.parse("site"))
        ):
            coupling = new_coupling(name, "cuda", topology, model, capacity=3, tally=True)
            # The first call runs directly, the second is captured, the third is launched.
            for _ in range(3):
                coupling.rows(XORWOW, 1, SAMPLES[:3], GRID)
                coupling.grid_rows(XORWOW, 1, SAMPLES, GRID)
            labeler = coupling.labeler
            items = labeler.batch.fill(XORWOW, 1, SAMPLES[:3], GRID)
            labeler.join(items, Reading.LABELS).labels()
            if topology is computed:
                places = make_geometry(load_lattice("honeycomb"), topology.shape)
                coupling.radii_rows(XORWOW, 1, SAMPLES, GRID, places)
                if name == "tiled":
                    coupling.radii_sums(XORWOW, 1, SampleBlocks(SAMPLES[::2], 2), GRID, places)
            if "open" in boundary and name == "tiled":
                find_thresholds(coupling, XORWOW, 1, SAMPLES, (int(GRID[0]), int(GRID[-1])))
    print(name)

# Slabs: interfaces are joined while the next slab is labeled, on another stream.
SLABS = (("square", (300,), BOND), ("cubic", (20, 16), Model.parse("site")))
for (name, layer, model), boundary in product(SLABS, ("open", "periodic")):
    shape, kinds = (*layer, 60), (boundary,) * (len(layer) + 1)
    whole = Whole(load_lattice(name), shape, kinds, model)
    for tally in (False, True):
        slabs = Slabs(whole, (20, 20, 13, 7), tally=tally, kind="cuda")
        for n in range(2):
            slabs.row(SampleKey(XORWOW, 1, n, p_to_threshold(0.4)))
print("slabs")
print("done")
