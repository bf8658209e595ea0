"""Times whole studies in memory, and the kernels in them.

    python results/h200/study_rates.py > results/h200/study-rates.txt

Each line: samples and the host's seconds of a study, and of a thirtieth of its samples; from their
difference sites x p a second; then, of a study of a tenth of the samples, the kernels' ps a site
and p by device events, and what part of the host's seconds that is.
"""

from __future__ import annotations

import time

import percolab
from percolab.benchmark.calls import kernel_events, sum_events
from percolab.benchmark.records import make_grid
from percolab.kernels.device import open_device
from percolab.lattices.lattice import load_lattice

#: Lattice, boundary, size, values of p, samples.
STUDIES = (
    ("square", "open", 16, 1, 1_500_000_000),
    ("square", "open", 16, 9, 384_000_000),
    ("square", "open", 64, 1, 150_000_000),
    ("square", "open", 64, 9, 24_000_000),
    ("square", "periodic", 32, 9, 50_000_000),
    ("square", "open", 96, 9, 4_000_000),
    ("square", "open", 128, 9, 4_000_000),
    ("square", "open", 256, 9, 1_000_000),
    ("cubic", "periodic", 16, 9, 12_000_000),
    ("cubic", "periodic", 32, 9, 1_500_000),
)


def time_study(name: str, boundary: str, size: int, points: int, samples: int) -> str:
    """Return the line of a study."""
    lattice = load_lattice(name)
    topology = lattice.topology((size,) * lattice.dimension)
    grid = make_grid(lattice.threshold("bond").value, topology, points).tolist()
    given = {"L": [size], "p": grid, "boundary": boundary, "device": "cuda"}
    seconds, few = [], samples // 30
    for count in (few, few, samples):  # the first compiles
        begin = time.perf_counter()
        percolab.sweep(lattice, samples=count, **given)
        seconds.append(time.perf_counter() - begin)
    sites = points * topology.num_points
    rate = 1e-9 * sites * (samples - few) / (seconds[2] - seconds[1])
    with kernel_events(open_device("cuda:0")) as events:
        percolab.sweep(lattice, samples=samples // 10, **given)
        kernels = {each: 10 * took for each, took in sum_events(events).items()}
    ps = {each: round(1e12 * took / (sites * samples), 2) for each, took in kernels.items()}
    busy = sum(kernels.values()) / seconds[2]
    return (
        f"{name} {boundary} L={size} {points} p: {samples} samples {seconds[2]:.2f} s, few "
        f"{seconds[1]:.2f} s: {rate:.1f} e9 sites x p a second; kernels "
        f"{sum(ps.values()):.2f} ps, busy {busy:.0%} {ps}"
    )


if __name__ == "__main__":
    for study in STUDIES:
        print(time_study(*study), flush=True)
