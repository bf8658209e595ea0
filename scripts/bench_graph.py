"""Time a lattice that computes its neighbours against the same lattice supplied as a graph.

The graph is the explicit neighbour list of the lattice (Komura 2016, section 3): the same bonds in
the same order, so the same samples and the same labels.  Prints milliseconds a sample, the least
bytes that a sample must move, and the ratios of graph to lattice.  Device events on CUDA, one
thread on the CPU; medians over runs.
"""

from __future__ import annotations

import click

from percolab.benchmark import StageTime, places_of, time_topology
from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.run.engine import device_label

STAGES = {"labels": "labels", "measure": "row"}


def line(record: StageTime, kind: str) -> str:
    """Return a record as a row of the table."""
    moved = record.bytes_moved_per_sample
    return (
        f"{STAGES[record.stage]:<8}{kind:<9}{record.samples_per_run:>8}"
        f"{1e3 * record.seconds_per_sample:>12.4f}{1e3 * record.nanoseconds_per_site:>11.1f}"
        f"{moved / 2**20:>10.1f}{moved / record.num_sites:>9.2f}"
        f"{moved / record.seconds_per_sample / 1e9:>9.1f}"
    )


@click.command(help=__doc__)
@click.option("--lattice", "name", default="honeycomb", show_default=True)
@click.option("-L", "size", default=4096, show_default=True)
@click.option("--ratio", default=1.0, show_default=True, help="p in units of p_c.")
@click.option("--labeler", default="four_step", show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--runs", type=click.IntRange(min=1), default=11, show_default=True)
def main(name: str, size: int, ratio: float, labeler: str, device: str, runs: int) -> None:
    """Time both and print."""
    target = Device.parse(device).resolve()
    lattice = load_lattice(name)
    places = places_of(lattice, (ratio,), None)
    lattice.check_size(size, ("open",) * lattice.dimension)
    computed = lattice.topology(lattice.shape(size))
    found: dict[str, list[StageTime]] = {}
    for kind in ("lattice", "graph"):
        topology = computed if kind == "lattice" else computed.explicit()
        found[kind] = time_topology(
            topology,
            places,
            name=name,
            size=size,
            device=target,
            labeler=labeler,
            stages=tuple(STAGES),
            runs=runs,
        )
    click.echo(
        f"{device_label(target)}: {name}, L = {size}, N = {computed.num_sites}, "
        f"p = {places[0].p:.6f} ({ratio:g} p_c), {labeler}"
    )
    click.echo(
        f"{'stage':<8}{'as':<9}{'samples':>8}{'ms/sample':>12}{'ps/site':>11}"
        f"{'MiB moved':>10}{'B/site':>9}{'GB/s':>9}"
    )
    for one, other in zip(found["lattice"], found["graph"], strict=True):
        click.echo(line(one, "lattice"))
        click.echo(line(other, "graph"))
        click.echo(
            f"{STAGES[one.stage]:<8}graph / lattice: time "
            f"{other.seconds_per_sample / one.seconds_per_sample:.3f}, least bytes "
            f"{other.bytes_moved_per_sample / one.bytes_moved_per_sample:.3f}"
        )


if __name__ == "__main__":
    main()
