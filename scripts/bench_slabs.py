"""Time slabs of one large lattice: their fronts, kernel by kernel, and joins, on any device.

    python scripts/bench_slabs.py --device cuda

A lattice of four slabs, each of as many sites, at p_c.  Printed are by the host's clock: the front
of the second slab alone; a slab of a whole row, whose fronts are made and joined one after the
other, while the next slab is labeled; one sample of as many sites as a slab in one piece; and
joining the fronts of the first two slabs.  On a GPU then the kernels of such a front and such a
join, by device events.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import click
import numpy as np
from bench_kernels import picoseconds, time_kernels

from percolab.bonds.words import XORWOW, threshold_of
from percolab.coupled import new_coupling
from percolab.kernels.device import Device, open_device
from percolab.lattices.lattice import load_lattice
from percolab.parts import front as on_host
from percolab.parts.front import Front
from percolab.parts.parts import Whole
from percolab.parts.raster import Draw
from percolab.parts.slabs import Slabs
from percolab.run.engine import device_label

#: Lattice, boundary of all axes, and layers of a slab; the last two are thin ones.
CASES = (
    "square:open:256",
    "square:periodic:256",
    "cubic:open:1024",
    "cubic:periodic:1024",
    "cubic:open:8",
    "cubic:periodic:8",
)
SLABS = 4


class Case:
    """A lattice of four slabs: lattice:boundary:layers of a slab."""

    def __init__(self, case: str, sites: int, kind: str) -> None:
        name, boundary, layers = case.split(":")
        self.lattice, self.boundary, self.kind = load_lattice(name), boundary, kind
        dimension, self.thick = self.lattice.dimension, int(layers)
        face = layer_shape(sites // self.thick, dimension - 1)
        self.shape, kinds = (*face, SLABS * self.thick), (boundary,) * dimension
        self.whole = Whole(self.lattice, self.shape, kinds)
        self.slabs = Slabs(self.whole, (self.thick,) * SLABS, kind=kind)
        known = self.lattice.threshold("bond")
        assert known is not None
        self.threshold = threshold_of(known.value)
        self._samples = count()
        self.join: Callable[[Front, Front], Front] = on_host.join
        if kind == "cuda":
            from percolab.parts.join_cuda import FrontsCuda

            self.join = FrontsCuda().join

    @property
    def sites(self) -> int:
        """Grid points of a slab."""
        return self.whole.num_points // SLABS

    def draw(self) -> Draw:
        """Return a sample that was not drawn before."""
        return Draw(XORWOW, 1, next(self._samples), self.threshold)

    def front(self) -> Front:
        """Return the front of the second slab of a sample."""
        return self.slabs.front(1, self.draw())

    def row(self) -> None:
        """Measure a whole row."""
        self.slabs.row(self.draw())

    def two_fronts(self) -> tuple[Front, Front]:
        """Return the fronts of the first two slabs of a sample."""
        draw = self.draw()
        return self.slabs.front(0, draw), self.slabs.front(1, draw)

    def in_one_piece(self) -> Callable[[], object]:
        """Return what measures one sample of as many sites as a slab."""
        shape, kinds = (*self.shape[:-1], self.thick), (self.boundary,) * len(self.shape)
        coupling = new_coupling(None, self.kind, self.lattice.topology(shape, kinds))
        thresholds = np.array([self.threshold], np.uint64)
        samples = np.zeros(1, np.uint64)
        return lambda: coupling.rows(XORWOW, 1, samples, thresholds)

    def __str__(self) -> str:
        return f"{self.lattice.name} {list(self.shape)} {self.boundary}"


def layer_shape(points: int, axes: int) -> tuple[int, ...]:
    """Return the shape of a layer of about so many points, as even as powers of two allow."""
    if axes == 1:
        return (points,)
    side = 1 << (points.bit_length() - 1) // axes
    return (side, *layer_shape(points // side, axes - 1))


def milliseconds(work: Callable[[], object], repeats: int) -> list[float]:
    """Return the times of calls by the host's clock, ascending, two before them left out."""
    times = []
    for _ in range(2 + repeats):
        begin = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times[2:])


def told(case: Case, repeats: int) -> list[str]:
    """Return the lines of a case."""
    front, row = milliseconds(case.front, repeats), milliseconds(case.row, repeats)
    low, high = case.two_fronts()
    faces = low.high.num_bonds, low.num_clusters, high.num_clusters
    joins = milliseconds(lambda: case.join(low, high), repeats)
    piece = milliseconds(case.in_one_piece(), repeats)
    slab = row[0] / SLABS
    return [
        f"{case}: front {front[0]:.2f} ms, slab of a row {slab:.2f} ms = "
        f"{1e9 * slab / case.sites:.2f} ps a site, one piece {piece[0]:.2f} ms = "
        f"{1e9 * piece[0] / case.sites:.2f}, ratio {slab / piece[0]:.3f}",
        f"    join {joins[0]:.2f} to {joins[-1]:.2f} ms: {faces[0]} open bonds at the face, "
        f"{faces[1]} and {faces[2]} clusters of the fronts",
    ]


@click.command(help=__doc__)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--case", "cases", multiple=True, default=CASES, show_default=True)
@click.option("--sites", default=2**30, show_default=True, help="Of a slab.")
@click.option("--repeats", default=6, show_default=True)
def main(device: str, cases: tuple[str, ...], sites: int, repeats: int) -> None:
    """Time and print."""
    target = Device.parse(device).resolve()
    target.open()
    click.echo(f"{device_label(target)}: the least of {repeats}")
    for text in cases:
        click.echo("\n".join(told(Case(text, sites, target.kind), repeats)))
    if target.kind != "cuda":
        return
    cuda = open_device(str(target))
    time_kernels(cuda)
    click.echo("kernel by kernel, ms")
    for text in cases:
        case = Case(text, sites, target.kind)
        low, high = case.two_fronts()
        works = {"join": lambda: case.join(low, high), "front": case.front}  # noqa: B023
        for name, work in works.items():
            took = picoseconds(cuda, work, repeats, 1)
            shown = "  ".join(f"{kernel} {own / 1e9:.3f}" for kernel, own in took.items())
            click.echo(f"{case}, {name}: {shown}")


if __name__ == "__main__":
    main()
