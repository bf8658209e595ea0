"""Time every stage of a four-step sample on CUDA: bonds, the four steps, the stages of the row.

Each stage is timed by device events on a batch prepared by the stages before it, so labels are what
that stage finds in use.  Prints microseconds a sample, median over repeats.
"""

from __future__ import annotations

import json

import click
import numpy as np

from percolab.benchmark import probability_of
from percolab.device import device_name, open_device
from percolab.kernels.cuda_sampling import THREADS
from percolab.kernels.open_bonds import XORWOW, threshold_of
from percolab.labelers import four_step_cuda as steps
from percolab.lattice import load_lattice
from percolab.provenance import package_versions


def stages_of(batch, items: int, p: float) -> dict:
    """Return the stages of one batch, in order, as functions that run them once."""
    top = batch.topology
    points, words = np.uint32(top.num_points), np.uint32(top.num_words)
    bonds = (batch.opened, batch.seam, words, batch.ends)
    samples = np.arange(items, dtype=np.uint64)
    thresholds = np.full(items, threshold_of(p), np.uint64)
    cuda = open_device("cuda")
    keys = cuda.to_device(samples), cuda.to_device(thresholds)
    sites, by_word = batch.grid(top.num_points, items), batch.grid(top.num_words, items, THREADS)
    return {
        "bonds": lambda: batch.open_bonds(XORWOW, 1, *keys),
        "initialization": lambda: steps.initialization_kernel[sites, THREADS](
            batch.labels, points, *bonds
        ),
        "analysis": lambda: steps.analysis_kernel[sites, THREADS](batch.labels, points),
        "label reduction": lambda: steps.word_reduction_kernel[by_word, THREADS](
            batch.labels, points, *bonds
        ),
        "second analysis": lambda: steps.analysis_kernel[sites, THREADS](batch.labels, points),
        "row": lambda: batch.measure_items(items),
    }


def milliseconds(cuda, work) -> float:
    """Return the time between two events around ``work``."""
    begin, end = cuda.event(), cuda.event()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


@click.command(help=__doc__)
@click.option("-L", "size", default=4096, show_default=True)
@click.option("--items", default=16, show_default=True, help="Samples a launch.")
@click.option("--repeats", default=11, show_default=True)
@click.option("--out", type=click.Path(), help="Also write JSON here.")
def main(size: int, items: int, repeats: int, out: str | None) -> None:
    """Time and print."""
    cuda = open_device("cuda")
    records = []
    click.echo(f"{device_name(cuda)}, L = {size}, {items} samples a launch, us a sample")
    for name in ("honeycomb", "square", "triangular"):
        lattice = load_lattice(name)
        batch = steps.FourStepCuda(lattice.topology(lattice.shape(size)), capacity=items)
        for ratio in (0.5, 1.0, 1.5):
            stages = stages_of(batch, items, probability_of(lattice, ratio))
            times = {stage: [] for stage in stages}
            for repeat in range(repeats + 3):
                for stage, work in stages.items():
                    elapsed = milliseconds(cuda, work)
                    if repeat >= 3:
                        times[stage].append(elapsed)
            row = {stage: 1e3 * float(np.median(t)) / items for stage, t in times.items()}
            records.append({"lattice": name, "ratio": ratio} | row)
            shown = "  ".join(f"{stage} {value:.1f}" for stage, value in row.items())
            click.echo(f"{name:<11} {ratio:g} p_c: {shown}")
        del batch
    if out:
        document = {
            "device_name": device_name(cuda),
            "L": size,
            "items": items,
            "versions": package_versions(),
            "records": records,
        }
        with open(out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
