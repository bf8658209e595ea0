"""Time whole calls on CUDA by the host's clock, from samples and p on the host to rows there.

    python scripts/bench_calls.py

Prints a line of JSON for each call: median and least milliseconds, and the sum over all rows.
"""

from __future__ import annotations

import json
import time

import numpy as np

from percolab.bonds.words import XORWOW, threshold_of
from percolab.coupled import new_coupling
from percolab.kernels.device import open_device
from percolab.lattices.lattice import load_lattice

#: Lattice, L, samples of a call, values of p.
CALLS = (
    ("honeycomb", 4096, 1, 1),
    ("honeycomb", 64, 1024, 1),
    ("honeycomb", 4096, 16, 1),
    ("honeycomb", 4096, 16, 9),
    ("honeycomb", 256, 256, 9),
    ("honeycomb", 64, 4096, 21),
    ("cubic", 128, 64, 1),
)
WARM_UP = 6


def main() -> None:
    """Time and print."""
    open_device("cuda")
    for name, size, count, points in CALLS:
        lattice = load_lattice(name)
        topology = lattice.topology(lattice.shape(size))
        coupling = new_coupling("tiled", "cuda", topology, capacity=count)
        known = lattice.threshold("bond")
        assert known is not None
        reach = 0.3 * size**-0.75 * (points > 1)
        values = known.value + reach * np.linspace(-1, 1, points)
        grid = np.array([threshold_of(p) for p in values], np.uint64)
        samples = np.arange(count, dtype=np.uint64)
        times = []
        for _ in range(WARM_UP + (21 if size > 1000 else 51)):
            begin = time.perf_counter()
            rows = coupling.grid_rows(XORWOW, 1, samples, grid)
            times.append(1e3 * (time.perf_counter() - begin))
        record = {"lattice": name, "L": size, "samples": count, "p": points}
        record |= {"ms": float(np.median(times[WARM_UP:])), "min_ms": min(times[WARM_UP:])}
        print(json.dumps(record | {"sum": int(rows.sum())}), flush=True)


if __name__ == "__main__":
    main()
