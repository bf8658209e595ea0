"""How often errors hold that `--universal known` gives: many searches of cubic bonds and sites.

    python results/thresholds/universal.py sample MODEL FIRST END ERROR    # lines of JSON
    python results/thresholds/universal.py count                           # their table

A line has p_c and its error of a search with the published wrapping probabilities at p_c as priors
(known), and of the fit of the same samples without them (free).  Pull: p_c minus the published
value (X. Xu et al., Front. Phys. 9, 113 (2014)), over the error.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import click
import numpy as np

DATA = Path(__file__).with_suffix(".jsonl")
PUBLISHED = {"bond": 0.24881185, "site": 0.31160768}


@click.group(help=__doc__)
def main() -> None:
    """Sample or count."""


@main.command()
@click.argument("model", type=click.Choice(list(PUBLISHED)))
@click.argument("first", type=int)
@click.argument("end", type=int)
@click.argument("error", type=float)
def sample(model: str, first: int, end: int, error: float) -> None:
    """Search with every seed, on one core."""
    import percolab
    from percolab.analysis.wrapping_fit import fit_wrapping
    from percolab.errors import AnalysisError

    for seed in range(first, end):
        found = percolab.threshold(
            "cubic", model=model, error=error, universal="known", seed=seed, device="cpu", workers=1
        )
        fits = {"known": found.fit.p_c}
        with suppress(AnalysisError):  # Without the values some samples have no answer.
            fits["free"] = fit_wrapping(found.results, "free").p_c
        values = {name: [float(f"{x:.8g}") for x in (p.value, p.error)] for name, p in fits.items()}
        click.echo(json.dumps({"model": model, "seed": seed, "target": error} | values))


@main.command()
def count() -> None:
    """Print a Markdown table: a row for each model, target and fit."""
    pulls = defaultdict(list)
    for line in map(json.loads, DATA.read_text(encoding="utf-8").splitlines()):
        for name in {"known", "free"} & line.keys():
            value, error = line[name]
            pull = (value - PUBLISHED[line["model"]]) / error
            pulls[line["model"], line["target"], name].append(pull)
    click.echo("| cubic | target | fit | searches | mean | width | within 1 | 2 |")
    click.echo("|---|---|---|---|---|---|---|---|")
    for (model, target, name), own in sorted(pulls.items()):
        x, n = np.array(own), len(own)
        within = " | ".join(f"{np.mean(np.abs(x) <= k):.1%}" for k in (1, 2))
        width = f"{np.sqrt(np.mean(x**2)):.2f}({(2 * n) ** -0.5:.2f})"
        mean = f"{x.mean():+.2f}({n**-0.5:.2f})"
        click.echo(f"| {model}s | {target:g} | {name} | {n} | {mean} | {width} | {within} |")


if __name__ == "__main__":
    main()
