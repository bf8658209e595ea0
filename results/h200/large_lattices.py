"""Write a table of large samples, a line a results file: what they are, what was found, how fast.

    percolab sweep --lattice square -L 316228 -p 0.5 --boundary periodic --samples 1 \\
        --slabs auto --device cuda --out torus.h5
    python results/h200/large_lattices.py torus.h5 --out large.txt

Everything is read from the files, so that the table is the same on any machine.  Seconds are those
of the runs that stored samples: tables, sampling and checkpoints, but neither importing nor
compiling; what a run measured before it was killed is not in them.  GB are what slabs on a GPU say
that they take there.  On a torus of the square lattice at p = 1/2 the clusters a site are compared
with (3 sqrt 3 - 5) / 2, R. M. Ziff, S. R. Finch and V. S. Adamchik, Phys. Rev. Lett. 79, 3447
(1997), by the variance of 3000 samples of L = 256, 0.171 a site.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import click
import numpy as np

from percolab.errors import InputError
from percolab.parts.slabs import Slabs, thicknesses
from percolab.run.parts_sampler import make_split_lattice
from percolab.store.results import StoredResults, read_results
from percolab.tasks.blocks import Block
from percolab.tasks.study import Task

#: Clusters a site of the square lattice at p_c, and the variance of their number, a site.
EXACT, VARIANCE = (3 * sqrt(3) - 5) / 2, 0.171
HEAD = (
    "lattice", "L", "boundary", "sites", "p", "generator", "samples", "clusters a site", "z",
    "largest", "spanning", "slabs", "GB", "seconds", "ps a site", "device",
)  # fmt: skip


def lines_of(results: StoredResults) -> list[list[str]]:
    """Return the cells of a file, a line for each p of each size."""
    tasks = results.tasks.values()
    measured = {
        item.task.id: item.task.num_points * len(item.task.p) * item.task.block_size
        for item in tasks
    }
    seconds = sum(run["seconds"] for run in results.runs)
    sites = sum(measured[key] * made for run in results.runs for key, made in run["blocks"].items())
    times = [f"{seconds:.2f}", f"{1e12 * seconds / sites:.2f}", results.runs[-1]["device_name"]]
    found = []
    for item in tasks:
        task, samples = item.task, len(item.blocks) * item.task.block_size
        names = [column.name for column in item.columns]
        slabs = results.runs[-1].get("slabs", {}).get(str(task.size), 1)
        blocks = [block for block in item.blocks.values() if isinstance(block, Block)]
        sums = np.sum([block.sums for block in blocks], axis=0)
        for p, own in zip(task.p, sums.tolist(), strict=True):
            means = {name: number / samples for name, number in zip(names, own)}
            clusters = means["clusters"] / task.num_points
            spanning = [f"{name[-1]}={means[name]:.4g}" for name in names if _is_axis(name)]
            found.append([
                task.structure.name, str(task.size), ",".join(sorted(set(task.boundary))),
                f"{task.num_points:.4e}", f"{p:.9g}", task.rng, str(samples),
                f"{clusters:.11f}", _distance(task, p, clusters, samples),
                f"{means['largest']:.0f}", ",".join(spanning) or "-", str(slabs),
                _gigabytes(task, slabs, results.runs[-1]["device"]), *times,
            ])  # fmt: skip
    return found


def _is_axis(name: str) -> bool:
    """Return whether an observable is that of spanning or wrapping along one axis."""
    kind, _, axis = name.partition("_")
    return kind in ("spanning", "wrapping") and len(axis) == 1


def _distance(task: Task, p: float, clusters: float, samples: int) -> str:
    """Return how many standard deviations the clusters a site are away from the exact number."""
    is_known = task.structure.name == "square" and task.model == "bond" and p == 0.5
    if not is_known or "open" in task.boundary:
        return "-"
    return f"{(clusters - EXACT) / sqrt(VARIANCE / (task.num_points * samples)):+.2f}"


def _gigabytes(task: Task, slabs: int, device: str) -> str:
    """Return what slabs of a sample say that they take on a GPU."""
    if not device.startswith("cuda") or slabs < 2:
        return "-"
    whole = make_split_lattice(task)
    memory = Slabs.memory(whole, thicknesses(whole, slabs), "cuda", max(task.p))
    return f"{memory.device / 1e9:.1f}"


@click.command(help=__doc__)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Text file; default: stdout.")
def main(paths: tuple[Path, ...], out: Path | None) -> None:
    try:
        lines = [line for path in paths for line in lines_of(read_results(path))]
    except InputError as error:
        raise click.ClickException(str(error)) from error
    table = [list(HEAD), *lines]
    widths = [max(map(len, column)) for column in zip(*table)]
    rows = ("  ".join(map(str.rjust, line, widths)).rstrip() for line in table)
    text = "".join(f"{row}\n" for row in rows)
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text)


if __name__ == "__main__":
    main()
