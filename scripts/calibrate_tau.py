"""Does the stated error of tau cover?  The same small study many times, with different seeds.

Every study samples the square lattice at a few sizes and reads tau off its cluster numbers n_s at
the p_c that it fits itself, as `percolab fit --exponents` does.  It counts how often one and two
stated errors hold

  median  the median over all studies: the error alone is judged
  exact   187/91: what the fit leaves out at small sizes is judged with it

of the chosen window of sizes, and of every window that was tried, whatever chi^2 says of it.
Studies are kept one a line as they are made, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from calibrate_errors import NORMAL, grid_of, inside

from percolab.analysis import AnalysisError
from percolab.analysis.exponents import CriticalReplicas
from percolab.analysis.statistics import half_width
from percolab.analysis.stored_data import cluster_curves_of, size_counts_of
from percolab.analysis.stored_fits import fit_results
from percolab.analysis.tau import TauReplicas, fit_tau
from percolab.api import sweep
from percolab.store.results import Results
from percolab.tasks.study import SAMPLE_VERSION

EXACT = 187 / 91
HEADER = (
    "| number | studies | median, 1 sigma | 2 sigma | exact, 1 sigma | 2 sigma | shift / scatter "
    "| stated/true | scatter | chi2 rejects |\n|---|---|---|---|---|---|---|---|---|---|"
)


def sampled(seed: int, options: dict[str, Any]) -> Results:
    """Return a study, every size at the p of its own."""
    parts = [
        sweep(
            "square",
            L=[size],
            p=grid_of(size),
            samples=options["samples"],
            block_size=max(options["samples"] // options["blocks"], 1),
            boundary=options["boundary"],
            measure="sizes",
            seed=seed,
            device=options["device"],
            workers=1,
        )
        for size in options["L"]
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole.tasks.update(part.tasks)
    return whole


def numbers_of(seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return tau with its error, of the chosen and of every window; or why there is none."""
    results = sampled(seed, options)
    try:
        fit = fit_results(results, bootstrap=0)
        clusters = cluster_curves_of(results)
        rng = np.random.default_rng(seed)
        replicas = CriticalReplicas.of(fit, clusters, options["bootstrap"], rng)
        found = fit_tau(
            size_counts_of(results),
            threshold=fit.threshold,
            threshold_error=float(replicas.thresholds.std(ddof=1)),
            dimension=2,
            is_open=options["boundary"] != "periodic",
            replicas=TauReplicas(replicas.thresholds, replicas.drawn(clusters)),
        )
    except AnalysisError as error:
        return {"seed": seed, "failed": str(error)}
    trials = [
        (f"s_min {t.s_min}, to {t.cutoff:g} <s_1>", t.tau, t.error, t.chi_square.p_value)
        for t in found.trials
    ]
    return {
        "seed": seed,
        "p_c": [fit.threshold, fit.fisher_error],
        "tau": [found.tau, found.error, found.chi_square.p_value],
        "window": f"s_min {found.s_min}, to {found.cutoff:g} <s_1>",
        "trials": trials,
    }


def made(
    path: Path, studies: int, options: dict[str, Any], processes: int
) -> Iterator[dict[str, Any]]:
    """Yield all studies, of earlier runs from a file of lines, new ones as they are added to it."""
    # The device changes no sample, so a run may go on on another.
    asked = {key: value for key, value in options.items() if key != "device"}
    head = json.dumps(asked | {"sample_version": SAMPLE_VERSION}, sort_keys=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if lines and lines[0] != head:
        raise click.ClickException(f"{path}: holds studies of other options; choose another --out")
    kept = {record["seed"]: record for record in map(json.loads, lines[1:])}
    missing = [seed for seed in range(1, studies + 1) if seed not in kept]
    context = multiprocessing.get_context("spawn")
    with open(path, "a", encoding="utf-8") as file, context.Pool(processes) as pool:
        if not lines:
            file.write(head + "\n")
        yield from (record for seed, record in kept.items() if seed <= studies)
        for record in pool.imap(partial(numbers_of, options=options), missing):
            file.write(json.dumps(record) + "\n")
            file.flush()
            yield record


def row_of(name: str, rows: list[Any], exact: float) -> str:
    """Return a line of the table from (value, error, p-value) of many studies."""
    values, errors, p_values = (np.array(column) for column in zip(*rows, strict=True))
    middle, scatter = float(np.median(values)), half_width(values)
    shares = [*inside(values, errors, middle), *inside(values, errors, exact)]
    cells = [
        name,
        str(len(rows)),
        *(f"{share:.1%}" for share in shares),
        f"{(middle - exact) / scatter:+.2f}",
        f"{np.median(errors) / scatter:.2f}",
        f"{scatter:.2g}",
        f"{np.mean(p_values < 0.05):.1%}" if np.isfinite(p_values).all() else "",
    ]
    return "| " + " | ".join(cells) + " |"


def table_of(records: list[dict[str, Any]], options: dict[str, Any]) -> str:
    """Return the outcome as Markdown."""
    good = [record for record in records if "failed" not in record]
    count = len(good)
    error = [float(np.sqrt(q * (1 - q) / count)) for q in NORMAL]
    windows = Counter(record["window"] for record in good)
    lines = [
        f"square lattice, {options['boundary']}, L = {', '.join(map(str, options['L']))}, "
        f"{options['samples']} samples a size in {options['blocks']} blocks, "
        f"{options['bootstrap']} bootstrap replicas, sample version {SAMPLE_VERSION}: {count} "
        f"studies, {len(records) - count} without a fit",
        "",
        f"nominal: {NORMAL[0]:.1%} +- {error[0]:.1%} and {NORMAL[1]:.1%} +- {error[1]:.1%} "
        "(binomial error of so many studies)",
        "",
        HEADER,
        row_of("p_c, curvature", [(*record["p_c"], np.nan) for record in good], 0.5),
        row_of("tau, chosen window", [record["tau"] for record in good], EXACT),
    ]
    for name, _ in windows.most_common():
        rows = [t[1:] for record in good for t in record["trials"] if t[0] == name]
        if len(rows) >= count / 2:
            lines.append(row_of(f"tau, {name}", rows, EXACT))
    chosen = ", ".join(f"{name}: {number}" for name, number in windows.most_common())
    return "\n".join([*lines, "", f"Windows chosen: {chosen}."]) + "\n"


@click.command(help=__doc__)
@click.option("-L", "sizes", default="16,32,64,128", show_default=True, help="Sizes, by commas.")
@click.option("--samples", default=400, show_default=True, type=click.IntRange(min=50))
@click.option("--blocks", default=20, show_default=True, type=click.IntRange(min=10))
@click.option("--bootstrap", default=60, show_default=True, type=click.IntRange(min=50))
@click.option("--studies", default=1000, show_default=True, type=click.IntRange(min=2))
@click.option("--boundary", default="open", show_default=True, help="open or periodic.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder.")
def main(sizes: str, studies: int, processes: int, out: Path, **options: Any) -> None:
    """Make the studies that are missing, and the table."""
    options["L"] = [int(size) for size in sizes.split(",")]
    out.mkdir(parents=True, exist_ok=True)
    every = made(out / "tau.jsonl", studies, options, processes)
    with click.progressbar(every, length=studies, file=sys.stderr) as shown:
        records = list(shown)
    if all("failed" in record for record in records):
        raise click.ClickException("no study could be fitted; give more --samples or larger sizes")
    text = table_of(records, options)
    click.echo(text, nl=False)
    (out / "tau.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
