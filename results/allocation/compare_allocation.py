"""Compare what `--target-error` spends on every size with equal samples and equal cost.

A sweep with a target error is run first.  Two more with the same total cost in sites, and other
seeds, give every size equally many samples, or an equal part of the cost.  Each is repeated, and
the curvature error of p_c, averaged over the repeats, is printed beside the cost.
"""

from __future__ import annotations

from collections.abc import Mapping

import click
import numpy as np

from percolab.analysis.stored_fits import fit_results
from percolab.api import sweep
from percolab.store.results import StoredResults
from percolab.tasks.values import parse_sizes


def cost_of(results: StoredResults) -> int:
    """Return the sites that were labeled, each sample counted once whatever its grid of p."""
    return sum(item.num_samples * item.task.num_points for item in results.tasks.values())


def equal_samples(sites: Mapping[int, int], cost: float) -> list[int]:
    """Return the same number of samples for every size, at this total cost."""
    return [round(cost / sum(sites.values()))] * len(sites)


def equal_cost(sites: Mapping[int, int], cost: float) -> list[int]:
    """Return samples that give every size the same part of this cost."""
    return [round(cost / len(sites) / n) for n in sites.values()]


@click.command(help=__doc__)
@click.option("--lattice", default="square", show_default=True)
@click.option("--boundary", default="open", show_default=True)
@click.option("-L", "sizes", default="16,32,64,128", show_default=True)
@click.option("--target-error", default=5e-4, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--workers", default=1, show_default=True)
def main(
    lattice: str, boundary: str, sizes: str, target_error: float, repeats: int, workers: int
) -> None:
    found: dict[str, list[tuple[float, float, list[int]]]] = {}
    for repeat in range(repeats):
        options = {"L": parse_sizes(sizes), "boundary": boundary, "device": "cpu"}
        options |= {"workers": workers}
        first = sweep(lattice, target_error=target_error, seed=3 * repeat + 1, **options)
        sites = {item.task.size: item.task.num_points for item in first.tasks.values()}
        sites, cost = dict(sorted(sites.items())), cost_of(first)
        runs = {"--target-error": first}
        for n, (name, divide) in enumerate(
            {"equal samples": equal_samples, "equal cost": equal_cost}.items()
        ):
            counts = divide(sites, cost)
            runs[name] = sweep(lattice, samples=counts, seed=3 * repeat + 2 + n, **options)
        for name, results in runs.items():
            samples = [results.of_size(size)[0].num_samples for size in sites]
            error = fit_results(results).threshold_error
            found.setdefault(name, []).append((cost_of(results), error, samples))
    click.echo(f"{lattice}, {boundary}, L = {sizes}, target {target_error:g}, {repeats} repeats")
    for name, rows in found.items():
        costs, errors, samples = zip(*rows)
        click.echo(
            f"{name:15}  {np.mean(costs):.3e} sites  sigma(p_c) {np.mean(errors):.2e}  "
            f"samples {', '.join(map(str, samples[0]))}"
        )


if __name__ == "__main__":
    main()
