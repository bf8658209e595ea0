"""How often errors hold where bonds and sites share their wrapping probabilities at p_c.

    python results/thresholds/shared.py sample LATTICE FOLDER FIRST END ERROR    # lines of JSON
    python results/thresholds/shared.py count                                    # their table

Each search of bonds has a seed n, FIRST <= n < END, that of sites n + 1000; files in FOLDER are not
made again.  A line has p_c and its error of both from each file alone, and with one R for both,
without (free) and with (known) the published R; chi: of the agreement of their R; problem: why
there is no p_c with one R.  Pull: p_c minus the published value (X. Xu et al., Front. Phys. 9, 113
(2014)), over the error.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import click
import numpy as np

DATA = Path(__file__).with_suffix(".jsonl")
MODELS = ("bond", "site")
PUBLISHED = {
    "cubic": {"bond": 0.24881185, "site": 0.31160768},
    "diamond": {"bond": 0.3895892, "site": 0.429987},
}


@click.group(help=__doc__)
def main() -> None:
    """Sample or count."""


@main.command()
@click.argument("lattice", type=click.Choice(list(PUBLISHED)))
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("first", type=int)
@click.argument("end", type=int)
@click.argument("error", type=float)
def sample(lattice: str, folder: Path, first: int, end: int, error: float) -> None:
    """Search with every seed, on one core, and fit each pair."""
    import percolab

    folder.mkdir(exist_ok=True)
    for seed in range(first, end):
        found = {}
        for n, model in enumerate(MODELS):
            own = {"seed": seed + 1000 * n, "out": folder / f"{lattice}-{model}-{seed}.h5"}
            options = {"model": model, "error": error, "device": "cpu", "workers": 1}
            found[model] = percolab.threshold(lattice, **options, **own)
        line = {"lattice": lattice, "seed": seed, "target": error}
        for way in ("free", "known") if lattice == "cubic" else ("free",):
            each = [found[model].results for model in MODELS]
            shared = percolab.fit(each, universal=way)
            line[f"chi {way}"] = round(shared.agreement.value, 3)
            line[f"problem {way}"] = shared.problem
            for model, file, results in zip(MODELS, shared.files, each, strict=True):
                alone = percolab.fit(results, universal=way).p_c
                for name, value in (("alone", alone), ("shared", file.p_c)):
                    digits = [float(f"{x:.8g}") for x in (value.value, value.error)]
                    line[f"{model} {way} {name}"] = digits
        click.echo(json.dumps(line))


@main.command()
def count() -> None:
    """Print a Markdown table: a row for each lattice, model, target and fit."""
    pulls, gains, chis = defaultdict(list), defaultdict(list), defaultdict(list)
    for line in map(json.loads, DATA.read_text(encoding="utf-8").splitlines()):
        for way in ("free", "known"):
            if f"chi {way}" not in line:
                continue
            chis[line["lattice"], line["target"], way].append(line[f"chi {way}"])
            if line[f"problem {way}"]:
                click.echo(
                    f"{line['lattice']}, seed {line['seed']}, {way}: {line[f'problem {way}']}"
                )
                continue
            for model in MODELS:
                own = [line[f"{model} {way} {name}"] for name in ("alone", "shared")]
                key = line["lattice"], model, line["target"], way
                for name, (value, error) in zip(("alone", "shared"), own, strict=True):
                    pulls[*key, name].append((value - PUBLISHED[line["lattice"]][model]) / error)
                gains[key].append(own[1][1] / own[0][1])
    click.echo("| | target | R | fit | pairs | mean | width | within 1 | 2 | error, shared/alone |")
    click.echo("|---|---|---|---|---|---|---|---|---|---|")
    for (*key, name), own in sorted(pulls.items()):
        lattice, model, target, way = key
        x, n = np.array(own), len(own)
        within = " | ".join(f"{np.mean(np.abs(x) <= k):.1%}" for k in (1, 2))
        width = f"{np.sqrt(np.mean(x**2)):.2f}({(2 * n) ** -0.5:.2f})"
        mean = f"{x.mean():+.2f}({n**-0.5:.2f})"
        gain = f"{np.median(gains[tuple(key)]):.2f}" if name == "shared" else ""
        row = f"{lattice} {model}s | {target:g} | {way} | {name} | {n}"
        click.echo(f"| {row} | {mean} | {width} | {within} | {gain} |")
    for key, own in sorted(chis.items()):
        click.echo(f"chi^2 of the agreement, {key}: mean {np.mean(own):.2f} of {len(own)} pairs")


if __name__ == "__main__":
    main()
