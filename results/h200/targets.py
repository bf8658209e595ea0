"""Times what an engine was asked to do, beside the targets and what it took before.

    python results/h200/targets.py [--gpus N] [--small] [SECTION ...] > results/h200/targets.txt

A section is a process with a GPU of its own (CUDA_VISIBLE_DEVICES); as many run at the same time as
there are GPUs.  Lines: what is timed, its unit, the time before (one H200, or one core, of the
commits that the targets were set for), the target, the time now, and now over target.  --small is a
rehearsal with few samples, on the CPU or in the simulator too.

Sums of blocks are whole calls by the host's clock, the last of three; rows and labels are batches,
as ``percolab bench`` times them, whose records the other sections read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import click
import numpy as np

from percolab.benchmark.records import make_grid
from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.lattices.geometry import make_geometry
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_columns
from percolab.tasks.blocks import pick_observables, pick_squared

SEED = 3
PS, MS, NS = "ps a site", "ms", "ns a site"


class Line(NamedTuple):
    """What is timed, its unit, the time before and the target, None where there was none, and now.

    is_rate: whether more is better.
    """

    what: str
    unit: str
    before: float | None
    target: float | None
    now: float
    is_rate: bool = False

    def show(self) -> str:
        """Return the line of the table."""
        before, target = ("" if x is None else f"{x:g}" for x in (self.before, self.target))
        verdict = ""
        if self.target is not None:
            over = self.target / self.now if self.is_rate else self.now / self.target
            verdict = "met" if over <= 1.0 else f"missed, {over:.2f}"
        return f"{self.what:52}{self.unit:24}{before:>8}{target:>9}{self.now:>10.4g}  {verdict}"


class Run(NamedTuple):
    """How a section is run: device, and whether it is a rehearsal."""

    device: str
    small: bool

    def bench(self, options: str) -> list[dict[str, Any]]:
        """Return the records of a call of ``percolab bench``."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "bench.json"
            command = [sys.executable, "-m", "percolab", "bench", "--device", self.device]
            command += [*options.split(), "--json", str(out)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            records: list[dict[str, Any]] = json.loads(out.read_text())["records"]
        return records

    def sums_ps(
        self, name: str, model: str, kind: str, size: int, points: int = 1, *words: str
    ) -> float:
        """Return the ps a site and p of sums of blocks of small lattices."""
        length, labelings = (64, 2**14) if self.small else (16384, 2**32)
        given = name, model, kind, size, points, length, labelings
        work, sites = make_block_sums(*given, measure=words)
        return 1e12 * last_seconds(work) / sites

    def radii_ps(self, name: str, kind: str, size: int) -> float:
        """Return the ps a site of rows with radii of gyration, summed in blocks."""
        lattice = load_lattice(name)
        shape = lattice.shape(size)
        topology = lattice.topology(shape, (kind,) * lattice.dimension)
        limits = np.array([p_to_threshold(lattice.threshold("bond").value)], np.uint64)
        count = max((2**12 if self.small else 2**26) // topology.num_sites, 1)
        bond = Model.parse("bond")
        coupling: Any = new_coupling("tiled", self.device, topology, bond, capacity=count)
        geometry, length = make_geometry(lattice, shape), min(count, 1024)
        starts = np.arange(0, count - count % length, length, dtype=np.uint64)
        blocks = SampleBlocks(starts, length)
        work = lambda: coupling.radii_sums(XORWOW, SEED, blocks, limits, geometry)  # noqa: E731
        return 1e12 * last_seconds(work) / (starts.size * length * topology.num_sites)


def make_block_sums(
    name: str,
    model: str,
    kind: str,
    size: int,
    points: int,
    length: int,
    labelings: int,
    *,
    measure: Sequence[str] = (),
) -> tuple[Callable[[], object], int]:
    """Return what sums blocks of so many samples of a small lattice, and the sites that it labels.

    kind: of the boundary.  labelings: about how many grid points are to be labeled.  measure: what
    is measured, as ``sweep --measure`` has it.
    """
    lattice, draw = load_lattice(name), Model.parse(model)
    boundary = (kind,) * lattice.dimension
    topology = lattice.topology(lattice.shape(size), boundary)
    grid = make_grid(lattice.threshold(model).value, topology, points)
    limits = np.array([p_to_threshold(p) for p in grid], np.uint64)
    own = [column for column in list_columns(boundary, measure) if column.is_observable]
    picks = pick_observables(own), pick_squared(own)
    reads = {"openings": "openings" in measure, "wraps_alone": "wrapping" in measure}
    coupling: Any = new_coupling("tiled", "cuda", topology, draw, capacity=64, **reads)
    count = max(labelings // (topology.num_points * points * length), 1)
    blocks = SampleBlocks(np.arange(count, dtype=np.uint64) * np.uint64(length), length)
    sites = count * length * points * topology.num_sites
    return lambda: coupling.block_sums(XORWOW, SEED, blocks, limits, *picks), sites


def last_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of the last of three calls; the first compiles."""
    for _ in range(3):
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
    return seconds


# Sections


def small_planar(run: Run) -> Iterator[Line]:
    """Yield small square and honeycomb lattices."""
    targets = {"open": (8, 6, 5, 5), "periodic": (9, 7, 6, 6)}
    before = {8: None, 16: 136, 32: 37, 64: 13.3}
    for name in ("square", "honeycomb"):
        for kind, values in targets.items():
            for size, target in zip(before, values, strict=True):
                now = run.sums_ps(name, "bond", kind, size)
                old = before[size] if (name, kind) == ("square", "open") else None
                yield Line(f"{name} {kind} L={size}, 1 p", PS, old, target, now)
    for size, target, old in ((16, 4, 85), (32, 3.5, 19), (64, 3, 6.9)):
        now = run.sums_ps("square", "bond", "open", size, 9)
        yield Line(f"square open L={size}, 9 p", f"{PS} and p", old, target, now)
    one, many = (run.sums_ps("square", "bond", "open", 64, points) for points in (1, 21))
    yield Line("square open L=64, 21 p over 1 p", "ratio", 29, 5, 21 * many / one)


def wrapping_alone(run: Run) -> Iterator[Line]:
    """Yield what a search for a threshold reads: what wraps, and the openings."""
    for name in ("square", "honeycomb"):
        for size, target in ((8, 5), (16, 4), (32, 4), (64, 4)):
            now = run.sums_ps(name, "bond", "periodic", size, 1, "openings", "wrapping")
            yield Line(f"{name} torus L={size}, wrapping alone", PS, None, target, now)


def small_others(run: Run) -> Iterator[Line]:
    """Yield other small lattices; triangular, kagome and sites in proportion to their bonds."""
    square = {size: run.sums_ps("square", "bond", "periodic", size) for size in (16, 64)}
    for name, bonds in (("triangular", 3 / 2), ("kagome", 1.0)):
        for size, target in ((16, 7), (64, 6)):
            now = run.sums_ps(name, "bond", "periodic", size)
            yield Line(f"{name} torus L={size}, 1 p", PS, None, bonds * target, now)
    for size, ps in square.items():
        now = run.sums_ps("square", "site", "periodic", size) / ps
        yield Line(f"square torus L={size}, sites over bonds", "ratio", None, 1.3, now)
    for size, target, old in ((8, 14, None), (16, 11, 29), (32, 9, 12.7)):
        if size < 32:
            now = run.sums_ps("cubic", "bond", "periodic", size)
        else:
            now = row_ps(run, "cubic", size, "periodic")
        yield Line(f"cubic torus L={size}, 1 p", PS, old, target, now)


def row_ps(
    run: Run, name: str, size: int, kind: str, stage: str = "grid", points: int = 1
) -> float:
    """Return the ps a site of rows at so many p."""
    size = min(size, 8) if run.small else size
    sites = " --sites 4096 --runs 1" if run.small else " --runs 3"
    options = f"--stage {stage} --lattice {name} -L {size} --boundary {kind}"
    records = run.bench(f"{options} --points {points}{sites}")
    return float(1e3 * records[0]["nanoseconds_per_site"])


def large(run: Run) -> Iterator[Line]:
    """Yield large lattices, and more dimensions."""
    site_ps = 2**24 / 1e9
    for name, old, target in (
        ("honeycomb", 0.110, 0.060), ("square", 0.120, 0.070), ("triangular", 0.179, 0.105),
    ):  # fmt: skip
        now = row_ps(run, name, 4096, "open") * site_ps
        yield Line(f"{name} 2^24 sites, row", MS, old, target, now)
    sites = "--runs 1 -L 16" if run.small else "--runs 3 -L 4096"
    options = f"--stage labels --lattice honeycomb --ratio 1 --no-peers {sites}"
    labels = [one for one in run.bench(options) if one["stage"] == "labels"]
    now = labels[0]["nanoseconds_per_site"] * 1e3 * site_ps
    yield Line("honeycomb 2^24 sites, labels", MS, 0.174, 0.110, now)
    for name, degree in (("cubic", 6), ("bcc", 8), ("fcc", 12), ("diamond", 4)):
        now = row_ps(run, name, 128 if degree < 8 else 64, "periodic")
        target = round(10 * degree / 6, 1)
        old = 12.8 if name == "cubic" else None
        yield Line(f"{name} torus, row", PS, old, target, now)
    for name, size in (("hypercubic-4d", 32), ("hypercubic-5d", 16)):
        yield Line(f"{name} torus, row", PS, None, None, row_ps(run, name, size, "periodic"))
    one, many = (row_ps(run, "square", 256, "open", points=points) for points in (1, 21))
    yield Line("square open L=256, 21 p over 1 p", "ratio", 6, 4, many / one)


def radii(run: Run) -> Iterator[Line]:
    """Yield radii of gyration."""
    for name, kind, sizes, old, target in (
        ("square", "open", (64, 256, 1024), 310, 60), ("cubic", "periodic", (64, 128), 900, 80),
    ):  # fmt: skip
        for size in sizes:
            now = run.radii_ps(name, kind, min(size, 16) if run.small else size)
            yield Line(f"{name} {kind} L={size}, radii", PS, old, target, now)


def spins_and_trees(run: Run) -> Iterator[Line]:
    """Yield whole sweeps of spins, and minimum spanning trees."""
    few = "--runs 1" if run.small else "--runs 5"
    for what, options, old, target in (
        ("Ising, 1000 chains of L=64", "-L 64 --chains 1000 --lattice square", 12.1, 10),
        ("Ising, 16 chains of L=4096", "-L 4096 --chains 16 --lattice square", 12, 9),
        ("Ising, 16 chains of 256^3", "-L 256 --chains 16 --lattice cubic", 19.6, 18),
    ):
        own = "-L 16 --chains 2 --lattice square" if run.small else options
        record = run.bench(f"--model ising --no-peers {few} {own}")[0]
        yield Line(what, PS, old, target, 1e3 * record["nanoseconds_per_site"])
    for name, size, old, target in (
        ("square", 4096, 1.72, 1.0), ("triangular", 4096, 2.4, 1.6), ("cubic", 256, 3.6, 2.5),
    ):  # fmt: skip
        sites = "-L 16 --sites 512" if run.small else f"-L {size} --sites {2**24}"
        own = f"--lattice {name} {sites}"
        records = run.bench(f"--stage trees {few} {own}")
        now = next(one for one in records if one["part"] == "build")["seconds_per_sample"]
        yield Line(f"{name} 2^24 sites, minimum spanning tree", MS, old, target, 1e3 * now)


def studies(run: Run) -> Iterator[Line]:
    """Yield whole studies once they run, and the part of their time in which the GPU computes."""
    size, samples = (16, 300) if run.small else (64, 30_000_000)
    options = f"--stage study --lattice square -L {size} --points 9 --samples {samples}"
    for one in run.bench(options):
        if one["part"] == "grid":
            rate = 9e-9 * one["num_sites"] / one["seconds_per_sample"]
            yield Line("sweep of 9 p, L=64", "1e9 sites x p a second", 75, 350, rate, True)
            share = one["note"].rpartition("computes ")[2].rstrip("%")
            if share.isdigit():
                yield Line("the same: the GPU computes", "%", 35, 85, float(share), True)
        else:
            rate = 1e-6 / one["seconds_per_sample"]
            yield Line("thresholds T, L=64", "1e6 samples a second", 0.9, 3, rate, True)


def first_second(run: Run) -> Iterator[Line]:
    """Yield the default study from the shell, for the first time and again."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        for what, old, target in (("first", 17, 8), ("again", 4.2, 1.5)):
            command = [sys.executable, "-m", "percolab", "sweep", "--device", run.device, "--quiet"]
            command += ["--lattice", "honeycomb", "--out", f"{folder}/{what}.h5"]
            command += ["-L", "8", "-p", "0.6,0.7", "--samples", "9"] if run.small else []
            begin = time.perf_counter()
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            now = time.perf_counter() - begin
            yield Line(f"default study of honeycomb, {what}", "s", old, target, now)


def one_core(run: Run) -> Iterator[Line]:
    """Yield rows on one core of the host, whatever the device."""
    core = run._replace(device="cpu")
    rows = {}
    for name, size, old, target in (
        ("honeycomb", 1024, 4.6, 3.5), ("square", 1024, 6.3, 4.8), ("triangular", 1024, 10.1, 7.5),
        ("cubic", 128, 9.1, 6.5),
    ):  # fmt: skip
        now = row_ps(core, name, size, "open") / 1e3
        yield Line(f"{name} row, one core", NS, old, target, now)
    for size in (8, 16, 32, 256):
        rows[size] = row_ps(core, "square", size, "open")
    for size in (8, 16, 32):
        what = f"square row, one core, L={size} over 256"
        yield Line(what, "ratio", None, 1.5, rows[size] / rows[256])
    torus = row_ps(core, "square", 256, "periodic") / rows[256]
    yield Line("square row, one core, torus over open", "ratio", None, 1.15, torus)


SECTIONS: dict[str, Callable[[Run], Iterator[Line]]] = {
    "small_planar": small_planar, "large": large, "wrapping_alone": wrapping_alone,
    "small_others": small_others, "radii": radii, "spins_and_trees": spins_and_trees,
    "studies": studies, "first_second": first_second, "one_core": one_core,
}  # fmt: skip


@click.command()
@click.option("--gpus", default=1, show_default=True, help="Sections at the same time.")
@click.option("--device", default="cuda", show_default=True)
@click.option("--small", is_flag=True, help="A rehearsal.")
@click.option("--here", is_flag=True, hidden=True)
@click.argument("names", nargs=-1, type=click.Choice(list(SECTIONS)))
def main(gpus: int, device: str, small: bool, here: bool, names: tuple[str, ...]) -> None:
    """Print the table."""
    if here:
        for name in names:
            for line in SECTIONS[name](Run(device, small)):
                click.echo(json.dumps(line))
        return
    options = ["--device", device, "--here", *(["--small"] if small else [])]
    free: Queue[int] = Queue()
    for gpu in range(gpus):
        free.put(gpu)

    def run_section(name: str) -> str:
        gpu = free.get()
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu)}
        command = [sys.executable, __file__, *options, name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        free.put(gpu)
        lines = [Line(*json.loads(line)).show() for line in done.stdout.splitlines()]
        failed = [] if done.returncode == 0 else [f"FAILED: {done.stderr[-500:]}"]
        return "\n".join([f"{name}:", *lines, *failed])

    header = f"{'':52}{'':24}{'before':>8}{'target':>9}{'now':>10}"
    click.echo(header)
    with ThreadPoolExecutor(gpus) as pool:
        for text in pool.map(run_section, names or SECTIONS):
            click.echo(text)


if __name__ == "__main__":
    main()
