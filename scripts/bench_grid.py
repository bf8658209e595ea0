"""Time the rows of a sample at a grid of p against those at one p, on any device.

A sample is labeled once and grown from p to p.  The window shrinks with L as a sweep's does.
Prints milliseconds a sample (host clock around whole calls, median over repeats).
"""

from __future__ import annotations

import time

import click
import numpy as np

from percolab.bonds.words import XORWOW, threshold_of
from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.run.engine import device_label
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.tasks.values import parse_sizes

# Half the window of p is the first times L to the power of minus the second: the scaling region.
WINDOWS = {2: (0.6656, 0.75), 3: (0.3, 1.141)}


def milliseconds(coupling, grid: np.ndarray, samples: int, repeats: int) -> float:
    """Return the median time of a sample's rows at every p of a grid."""
    numbers = np.repeat(np.arange(samples, dtype=np.uint64), grid.size)
    thresholds = np.tile(np.array([threshold_of(p) for p in grid], np.uint64), samples)
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        coupling.rows(XORWOW, 1, numbers, thresholds)
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times[1:])) / samples


@click.command(help=__doc__)
@click.option("--device", default="auto", show_default=True)
@click.option("--sites", default=2**30, show_default=True, help="Sites of all samples of a call.")
@click.option("--repeats", default=5, show_default=True)
@click.option("--model", default="bond", show_default=True, help="bond or site.")
@click.option("--lattice", "names", multiple=True, default=("honeycomb", "square", "triangular"))
@click.option("--boundary", default="open", show_default=True, help="Of all axes.")
@click.option("--points", default="1,9,21", show_default=True, help="Numbers of p.")
@click.option("-L", "sizes", default="64,256,1024,4096", show_default=True)
def main(
    device: str,
    sites: int,
    repeats: int,
    model: str,
    names: tuple[str, ...],
    boundary: str,
    points: str,
    sizes: str,
) -> None:
    """Time and print."""
    target = Device.parse(device).resolve()
    click.echo(f"{device_label(target)}, {model}: ms a sample, ratio to one p, ps a site and p")
    for name in names:
        lattice = load_lattice(name)
        known = lattice.threshold(model)
        assert known is not None
        width, shrinks = WINDOWS[lattice.dimension]
        for size in parse_sizes(sizes):
            kinds = (boundary,) * lattice.dimension
            task = Task(lattice, size, kinds, (0.5,), seed=1, model=model)
            coupling = make_sampler(task, device=target).coupling
            one = 0.0
            for count in map(int, points.split(",")):
                reach = width * size**-shrinks * (count > 1)
                grid = known.value + reach * np.linspace(-1, 1, count)
                took = milliseconds(coupling, grid, max(sites // task.num_points, 1), repeats)
                one = one or took
                click.echo(
                    f"{name:<11}{size:>5} {count:>3} p {took:>9.4f} {took / one:>6.2f} "
                    f"{1e9 * took / task.num_points / count:>8.1f}"
                )
            del coupling


if __name__ == "__main__":
    main()
