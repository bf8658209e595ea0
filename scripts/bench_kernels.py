"""Time every kernel that makes a row, or labels, on CUDA: picoseconds a site, by device events.

All samples of a call are made from nothing; what a kernel costs is the sum of its launches.  Prints
a line for each case, median over repeats, and the time of the whole calls by the host's clock.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import ClassVar

import click
import numpy as np
from kernel_report import kernel_modules, kernels_of

from percolab.benchmark import probability_of
from percolab.bonds.words import XORWOW, threshold_of
from percolab.coupled import new_coupling
from percolab.kernels.device import device_name, open_device
from percolab.kernels.launches import Launches
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import load_lattice
from percolab.store.provenance import package_versions

WARM_UP_SECONDS = 0.1


class Timed:
    """Stands for a kernel and records two events around every launch."""

    events: ClassVar[defaultdict[str, list]] = defaultdict(list)

    def __init__(self, cuda, kernel, name: str) -> None:
        self.cuda, self.kernel, self.name = cuda, kernel, name

    def __getitem__(self, configuration):
        """Return a function that launches the kernel with this configuration."""

        stream = configuration[2]

        def launch(*arguments):
            begin, end = self.cuda.event(), self.cuda.event()
            begin.record(stream)
            self.kernel[configuration](*arguments)
            end.record(stream)
            self.events[self.name].append((begin, end))

        return launch


def time_kernels(cuda) -> None:
    """Put a timed stand-in in place of every kernel; nothing is recorded any more."""
    for module in kernel_modules():
        for name, kernel in kernels_of(module).items():
            setattr(module, name, Timed(cuda, kernel, name.removesuffix("_kernel")))
    Launches.call = lambda self, key, work: work()


def picoseconds(cuda, work, repeats: int, sites: int) -> dict[str, float]:
    """Return the time per site of every kernel that ``work`` launches, and of all by the host."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_UP_SECONDS:
        work()
    runs = defaultdict(list)
    for _ in range(repeats):
        Timed.events.clear()
        cuda.synchronize()
        begin = time.perf_counter()
        work()
        cuda.synchronize()
        runs["by the host's clock"].append(1e3 * (time.perf_counter() - begin))
        for name, pairs in Timed.events.items():
            runs[name].append(sum(begin.elapsed_time(end) for begin, end in pairs))
    return {name: 1e9 * float(np.median(times)) / sites for name, times in runs.items()}


@click.command(help=__doc__)
@click.option("--lattice", "lattices", multiple=True, default=("honeycomb", "square", "triangular"))
@click.option("-L", "size", default=4096, show_default=True)
@click.option("--boundary", default="open", show_default=True, help="Of all axes.")
@click.option("--labeler", default="tiled", show_default=True)
@click.option("--sites", default=2**30, show_default=True, help="Sites of all samples of a call.")
@click.option("--repeats", default=11, show_default=True)
@click.option("--out", type=click.Path(), help="Also write JSON here.")
def main(
    lattices: tuple[str, ...],
    size: int,
    boundary: str,
    labeler: str,
    sites: int,
    repeats: int,
    out: str | None,
) -> None:
    """Time and print."""
    cuda = open_device("cuda")
    time_kernels(cuda)
    records = []
    click.echo(f"{device_name(cuda)}, {labeler}, L = {size}, {boundary}, ps a site")
    for name in lattices:
        lattice = load_lattice(name)
        topology = lattice.topology(lattice.shape(size), (boundary,) * lattice.dimension)
        items = max(sites // topology.num_points, 1)
        coupling = new_coupling(labeler, "cuda", topology, capacity=items)
        samples = np.arange(items, dtype=np.uint64)
        for ratio in (0.5, 1.0, 1.5):
            thresholds = np.full(items, threshold_of(probability_of(lattice, ratio)), np.uint64)

            def label(thresholds=thresholds, samples=samples, labeler=coupling.labeler) -> None:
                count = labeler.batch.fill(XORWOW, 1, samples, thresholds)
                labeler.join(count, Reading.LABELS).make_labels()

            def measure(thresholds=thresholds, samples=samples, coupling=coupling) -> None:
                coupling.rows(XORWOW, 1, samples, thresholds)

            for what, work in (("row", measure), ("labels", label)):
                took = picoseconds(cuda, work, repeats, items * topology.num_points)
                records.append({"lattice": name, "ratio": ratio, "what": what, "ps_a_site": took})
                shown = "  ".join(f"{kernel} {value:.2f}" for kernel, value in took.items())
                click.echo(f"{name:<11} {ratio:g} p_c {what:<7} {shown}")
        del coupling
    if out:
        document = {
            "device_name": device_name(cuda),
            "labeler": labeler,
            "L": size,
            "boundary": boundary,
            "versions": package_versions(),
            "records": records,
        }
        with open(out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
