"""What interfaces of one lattice cost on their way: from GPU to GPU, and through the host by MPI.

    mpiexec -n 4 python results/h100-x4/transport.py
    mpiexec -n 4 python results/h100-x4/transport.py --through host

Each rank of ``mpiexec`` drives a GPU of its own.  Rank 0 prints, for each lattice, what a row took
by its clock, the bytes that all ranks sent for it, and the seconds of transport and of joining.
The first row, which also makes tables and loads kernels, is not counted.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from percolab.api import sweep
from percolab.parts import ranks
from percolab.run.mpi import mpi_ranks
from percolab.run.request import Observer

#: Lattice, p and sites of a sample.
LATTICES = (("square", 0.5, 10**11), ("cubic", 0.24881185, 10**11))
NAMES = ("rows", "bytes", "local_seconds", "transport_seconds")


@dataclass
class Rows(Observer):
    """The time at which every row is there, and what ranks had reported by then."""

    times: list[float] = field(default_factory=list)
    sums: list[dict[str, Any]] = field(default_factory=list)

    def advanced(self, results: Any, result: Any, blocks: Any) -> None:
        """Take a finished row."""
        self.times.append(time.perf_counter())
        split = results.runs[-1]["split"]
        joining = sum(stage["join_seconds"] for stage in split["stages"])
        self.sums.append({name: split[name] for name in NAMES} | {"join_seconds": joining})


def main() -> None:
    """Measure on rank 0; serve it on the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--through", choices=["gpus", "host"], default="gpus")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--sites", type=float, help="Of a sample.")
    options = parser.parse_args()
    if options.through == "host":
        ranks.find_peers = lambda transport, device: (None, None)
    with mpi_ranks() as executor:
        if executor is None:
            return
        for lattice, p, sites in LATTICES:
            dimension = {"square": 2, "cubic": 3}[lattice]
            size = round((options.sites or sites) ** (1 / dimension))
            for boundary in ("open", "periodic"):
                seen = Rows()
                settings: dict[str, Any] = {
                    "L": [size], "p": [p], "boundary": boundary, "samples": options.rows,
                    "block_size": 1, "seed": 7, "split": "lattice", "device": options.device,
                }  # fmt: skip
                sweep(lattice, observer=seen, executor=executor, **settings)
                first, last = seen.sums[0], seen.sums[-1]
                rows = last["rows"] - first["rows"]
                mean = {name: (last[name] - first[name]) / rows for name in last}
                print(
                    f"{lattice} L = {size} {boundary}, through the {options.through}: a row"
                    f" {1e3 * np.median(np.diff(seen.times)):.1f} ms,"
                    f" slabs {1e3 * mean['local_seconds']:.1f} ms,"
                    f" {mean['bytes'] / 1e6:.2f} MB sent in"
                    f" {1e3 * mean['transport_seconds']:.2f} ms,"
                    f" joined in {1e3 * mean['join_seconds']:.2f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
