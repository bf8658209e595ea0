"""Collapses of many seeds: pulls of p_c, 1/nu and kappa, as `percolab fit --collapse` gives them.

python results/calibration/collapses.py sample [SEEDS]    # a line of JSON a study; 18 seeds
python results/calibration/collapses.py count             # the table of data/collapses.jsonl

R is collapsed by itself, P_inf and chi at the p_c of the fit, whose error is in theirs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import numpy as np

DATA = Path(__file__).resolve().parent / "data" / "collapses.jsonl"

#: Lattice, model and boundary with the known p_c, which is the middle of the p that are sampled.
SYSTEMS = {
    ("square", "bond", "open"): 0.5,
    ("square", "site", "open"): 0.59274605079,
    ("square", "bond", "periodic"): 0.5,
}
SAMPLES, REACH = 2000, 0.06
SIZES = (8, 16, 32, 64, 128)
#: Sizes, how many p, and what is collapsed beside R.
STUDIES = (
    (SIZES[1:4], 5, ()),
    (SIZES[1:4], 21, ()),
    (SIZES[:4], 9, ("largest", "chi")),
    (SIZES, 9, ()),
)
KNOWN = {"largest": -5 / 48, "chi": 43 / 24}


def collapses(system: tuple[str, str, str], sizes: Any, points: int, names: Any, seed: int) -> Any:
    """Return (p_c, 1/nu, kappa), their statistical and their whole errors, by what is collapsed."""
    import percolab
    from percolab.analysis.stored_fits import compute_collapse, fit_results
    from percolab.analysis.value import Value
    from percolab.errors import AnalysisError

    (lattice, model, boundary), p_c = system, SYSTEMS[system]
    grid = np.round(np.linspace(p_c - REACH, p_c + REACH, points), 6)
    results = percolab.sweep(
        lattice, model=model, boundary=boundary, L=sizes, p=grid, samples=SAMPLES, seed=seed,
        device="cpu",
    )  # fmt: skip
    fit, found = fit_results(results), {}
    at = Value(fit.threshold, fit.threshold_error)
    for name in (None, *names):
        try:
            own = compute_collapse(results, name, threshold=at if name else None)
        except AnalysisError:
            continue
        values = own.threshold, own.y_t, own.exponent
        whole = own.threshold_error, own.y_t_error, own.exponent_error
        found[name or "R"] = [*values, *own.statistical_errors, *whole]
    return found


@click.group(help=__doc__)
def main() -> None:
    """Sample or count."""


@main.command()
@click.argument("seeds", type=int, default=18)
def sample(seeds: int) -> None:
    """Sample and collapse studies; one line of JSON each."""
    for seed in range(2001, 2001 + seeds):
        for system in SYSTEMS:
            for sizes, points, names in STUDIES:
                found = collapses(system, sizes, points, names, seed)
                record = {"system": system, "sizes": len(sizes), "p": points, "seed": seed}
                click.echo(json.dumps(record | {"found": found}))


@main.command()
def count() -> None:
    """Print the pulls with the statistical errors alone, and with the whole ones."""
    click.echo("\n".join(table(DATA.read_text(encoding="utf-8").splitlines())))


def table(lines: list[str]) -> list[str]:
    """Return a Markdown table: a row for each quantity, system, number of sizes and of p."""
    pulls: dict[tuple[str, ...], list[list[float]]] = defaultdict(list)
    for line in map(json.loads, lines):
        for name, numbers in line["found"].items():
            known = SYSTEMS[tuple(line["system"])], 0.75, KNOWN.get(name, 0.0)
            value, *errors = np.reshape(numbers, (3, 3))
            for n, symbol in enumerate(("p_c", "1/nu", "kappa")):
                if (name == "R") == (n < 2) or n == 1:
                    own = [float((value[n] - known[n]) / error[n]) for error in errors]
                    setting = " ".join(line["system"]), f"{line['sizes']}", f"{line['p']}"
                    pulls[f"{symbol} of {name}", *setting].append(own)
                    pulls[f"{symbol} of {name}", "all", "", ""].append(own)
    rows = [
        "| | system | sizes | p | studies | statistical error: mean | width | within two "
        "| whole error: mean | width | within two |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, own in sorted(pulls.items()):
        cells = [*key, f"{len(own)}"]
        for x in np.array(own).T:
            within = np.mean(np.abs(x) <= 2)
            cells += [f"{x.mean():+.2f}", f"{x.std(ddof=1):.2f}", f"{within:.0%}"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


if __name__ == "__main__":
    main()
