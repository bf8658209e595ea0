"""Exponents of studies at p_c itself: their pulls are of the corrections in L and s alone.

python at_threshold.py sample SYSTEM:BOUNDARY:SAMPLES:SEED[:flow] ...    sampled, fitted and printed
python at_threshold.py count                     the table of data/at_threshold.jsonl
python at_threshold.py count data/flow.jsonl     that of another file

With ":flow" backbones, shortest paths and red bonds are measured in place of the sizes of clusters.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from math import isfinite, pi, sin, sqrt
from pathlib import Path
from typing import Any

import click
import numpy as np

DATA = Path(__file__).resolve().parent / "data" / "at_threshold.jsonl"
FLOW = ("backbone", "path", "bridges")
FILES = Path(__file__).resolve().parent.parent / "thresholds" / "lattices"

_S = 2 * sin(pi / 18)
#: p_c, exact or as published; the p at which a study samples, and reads its exponents.
SYSTEMS = {
    "square bond": 0.5,
    "square site": 0.59274605079,
    "triangular bond": _S,
    "triangular site": 0.5,
    "honeycomb bond": 1 - _S,
    "honeycomb site": 0.697040230,
    "kagome bond": 0.524404999167439,
    "kagome site": 1 - _S,
    "decorated-triangular bond": sqrt(_S),
    "decorated-honeycomb bond": sqrt(1 - _S),
    "cubic bond": 0.2488118,
    "bcc site": 0.2459615,
    "diamond site": 0.4299870,
    "fcc bond": 0.1201635,
    "cubic site": 0.3116077,
    "bcc bond": 0.1802875,
    "diamond bond": 0.3895892,
    "fcc site": 0.1992365,
}
#: Sizes: in the plane, of several sites a cell, in three dimensions.
SIZES = ((32, 64, 128, 256), (32, 64, 128), (8, 16, 32, 64))
FLOW_SIZES = ((8, 16, 32, 64, 128), (8, 16, 32, 64), (4, 8, 16, 32))


def study(system: str, boundary: str, samples: str, seed: str, flow: str = "") -> Any:
    """Return the results of a sweep at p_c."""
    import percolab

    lattice, model = system.split()
    in_space = lattice in ("cubic", "bcc", "diamond", "fcc")
    sizes = (FLOW_SIZES if flow else SIZES)[2 if in_space else "decorated" in lattice]
    return percolab.sweep(
        str(FILES / f"{lattice}.toml") if "decorated" in lattice else lattice,
        L=sizes, p=[SYSTEMS[system]], model=model, boundary=boundary, samples=int(samples),
        measure=FLOW if flow else "sizes", seed=int(seed), device="cpu",
    )  # fmt: skip


def values(results: Any) -> dict[str, list[float]]:
    """Return value, error and difference from the known one in errors, of `fit --exponents`."""
    from percolab.analysis.stored_fits import compute_exponents, only_threshold

    found = compute_exponents(results, only_threshold(results)).exponents
    return {
        f"{item.name}, {item.source.split()[0]}": [
            float(f"{x:.5g}") for x in (item.value, item.error, item.difference)
        ]
        for item in found
        if item.source not in ("d - beta/nu", "1 + d/d_f") and isfinite(item.difference)
    }


@click.group(help=__doc__)
def main() -> None:
    """Sample or count."""


@main.command()
@click.argument("studies", nargs=-1)
def sample(studies: tuple[str, ...]) -> None:
    """Sample and fit studies; one line of JSON each."""
    for text in studies:
        found = values(study(*text.split(":")))
        click.echo(json.dumps({"study": text, "values": found}))


@main.command()
@click.argument("data", type=click.Path(path_type=Path), default=DATA)
def count(data: Path) -> None:
    """Print the table of all stored studies."""
    click.echo("\n".join(table(data.read_text(encoding="utf-8").splitlines())))


def table(lines: list[str]) -> Iterator[str]:
    """Yield a Markdown table: a row for each quantity, system, boundary and number of samples."""
    pulls: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for line in map(json.loads, lines):
        system, boundary, samples, *_ = line["study"].split(":")
        for name, (_, _, pull) in line["values"].items():
            pulls[name, system, boundary, samples].append(pull)
            pulls[name, "all", boundary, samples].append(pull)
    yield "| quantity | system | boundary | samples | studies | mean | width | within 1 | 2 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for key, own in sorted(pulls.items()):
        x = np.array(own)
        width = f"{x.std(ddof=1):.2f}" if x.size > 1 else ""
        within = [f"{np.mean(np.abs(x) <= k):.0%}" for k in (1, 2)]
        yield f"| {' | '.join([*key, str(x.size), f'{x.mean():+.2f}', width, *within])} |"


if __name__ == "__main__":
    main()
