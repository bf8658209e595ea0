"""Checks C - C* - V + E on as many samples as the time allows, torus after torus.

    python results/flow/dual_identity.py SECONDS          one core, all planar lattices
    python results/flow/dual_identity.py SECONDS cuda     a GPU: three lattices, and a large sample

The first prints a line for each lattice, shape and labeler: the samples, and in how many of them
the identity does not hold.  C* is counted by scipy.

The second labels tori of square, triangular and kagome lattices and their duals on the GPU, until
there are 1e9 samples, and checks too that the dual winds in the directions that are left.  Then
one large torus is measured in slabs, by raster on the CPU and on the GPU, and its dual as a whole.
"""

import sys
import time

import numpy as np

from percolab.bonds.batch import new_batch
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.labelers import new_labeler
from percolab.lattices.dual import make_dual_topology
from percolab.lattices.lattice import lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs, thicknesses
from percolab.validation.duals import Dual, count_violations

LABELERS = ("raster", "four_step")
#: Cells along each axis.
CELLS = (2, 4, 12)
SAMPLES = 2000
TORUS = ("periodic", "periodic")
#: On a GPU: lattices, cells along each axis, and the samples of each lattice with so many.
ON_GPU = ("square", "triangular", "kagome")
SHARES = {8: 280_000_000, 16: 40_000_000, 32: 14_000_000}
#: The size of the large sample, and its slabs.
LARGE, SLABS = 4096, 8
START = time.perf_counter()


def on_cpu(seconds):
    """Go round the cases with new samples until the time is over."""
    cases = []
    for name in lattice_names():
        lattice = load_lattice(name)
        if not is_drawn_planar(lattice):
            continue
        threshold = lattice.threshold("bond")
        for cells in CELLS:
            topology = lattice.topology(tuple(cells * n for n in lattice.cell), TORUS)
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


def on_gpu(seconds, shares):
    """Check the samples of all cases; a case that the time is over for has fewer, and says so."""
    from small_duals import SmallDuals

    total, all_wrong, cases = 0, 0, []
    for name in ON_GPU:
        lattice = load_lattice(name)
        for cells, share in shares.items():
            topology = lattice.topology(tuple(cells * n for n in lattice.cell), TORUS)
            duals, p = SmallDuals(lattice, topology), lattice.threshold("bond").value
            # Compiles.
            duals.count_violations(1, 0, 100, p)
            cases.append((name, cells, share, duals, p))
    print(f"compiled after {time.perf_counter() - START:.1f} s", flush=True)
    begin = time.perf_counter()
    for name, cells, share, duals, p in cases:
        samples, wrong, start = 0, 0, time.perf_counter()
        while samples < share and time.perf_counter() - begin < seconds:
            count = min(duals.most_samples, share - samples)
            wrong += duals.count_violations(2026, samples, count, p)
            samples += count
        took = time.perf_counter() - start
        print(
            f"{name:12}{cells:3} x {cells} cells {samples:10} samples of {share:10}"
            f" {wrong:3} wrong {1e9 * took / max(samples, 1):8.1f} ns a sample",
            flush=True,
        )
        total, all_wrong = total + samples, all_wrong + wrong
    print(f"{total} samples, {all_wrong} wrong, {time.perf_counter() - begin:.1f} s", flush=True)


def large_sample(size, slabs, kinds):
    """Check one square torus, in slabs on devices of these kinds, with its dual as a whole."""
    lattice, key = load_lattice("square"), (XORWOW, 2026, 1, p_to_threshold(0.5))
    topology = lattice.topology((size, size), TORUS)
    dual = make_dual_topology(lattice, topology)
    batch = new_batch(kinds[-1], topology)
    generator, seed, *one = key
    batch.fill(generator, seed, *(np.array([number], np.uint64) for number in one))
    words = batch.copy_open_words(1).reshape(1, -1)
    bonds = int(np.bitwise_count(words).sum(dtype=np.int64))
    labeler = new_labeler(None, kinds[-1], dual.topology)
    other = labeler.join(labeler.batch.load(dual.open_words(words))).rows()[0]
    whole = Whole(lattice, (size, size), TORUS)
    for kind in kinds:
        own = Slabs(whole, thicknesses(whole, slabs), kind=kind).row(SampleKey(*key)).numbers
        flags = int(own[SPANNING])
        winding = 1 if flags >> TWO_DIRECTIONS & 1 else 0 if flags >> FIRST_WRAPPING & 3 else -1
        found = int(own[CLUSTERS]) - int(other[CLUSTERS]) - size**2 + bonds
        print(
            f"square {size} x {size} in {slabs} slabs, {kind}: C = {own[CLUSTERS]}, C* = "
            f"{other[CLUSTERS]}, E = {bonds}, C - C* - V + E = {found}, by winding {winding}: "
            f"{'OK' if found == winding else 'WRONG'} [{time.perf_counter() - START:.1f} s]",
            flush=True,
        )


def main():
    """Check on the device that is given."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    if sys.argv[2:] == ["cuda"]:
        on_gpu(seconds, SHARES)
        large_sample(LARGE, SLABS, ("cpu", "cuda"))
    else:
        on_cpu(seconds)


if __name__ == "__main__":
    main()
