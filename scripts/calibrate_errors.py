"""Do the stated errors cover?  The same small study many times, with different seeds.

Every repetition samples the square lattice at a few small sizes and asks percolab for p_c, 1/nu,
R(p_c), beta/nu and gamma/nu with their errors, and for the Wilson intervals of R_L(p).  It counts
how often one and two stated errors hold

  median  the median over all repetitions: the error alone is judged
  exact   the exact value: what the fit leaves out at small sizes is judged with it

A normal error covers 68.3 % and 95.4 %.  "shift" is the median's distance from the exact value and
"stated/true" the median stated error over the scatter of the repetitions, half the width of their
central 68.3 %.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from percolab.analysis import AnalysisError, known_exponents
from percolab.analysis.statistics import half_width
from percolab.analysis.stored_data import curves_of
from percolab.analysis.stored_fits import exponents_of, fit_results, samples_of
from percolab.api import sweep

#: Half the width of the p grid in units of L^-3/4, about where R rises from 4 to 96 %.
REACH = 0.8
POINTS = 7
#: What one and two sigma of a normal error cover.
NORMAL = (0.682689, 0.954500)

Row = dict[str, tuple[float, float]]


def grid_of(size: int) -> list[float]:
    """Return p of one size, symmetric about 1/2; a study's own pilot would place them alike."""
    return [round(0.5 + x * size**-0.75, 6) for x in np.linspace(-REACH, REACH, POINTS)]


def repetition(job: tuple[int, dict[str, Any]]) -> tuple[Row, list[list[int]]] | str:
    """Return every (value, error) of one study, and its spanning counts; or why there are none."""
    seed, options = job
    sizes, samples, replicas = (options[key] for key in ("L", "samples", "bootstrap"))
    shared = {"L": sizes, "samples": samples, "seed": seed, "device": "cpu", "workers": 1}
    block_size = max(samples // options["blocks"], 1)
    p = sorted({value for size in sizes for value in grid_of(size)})
    results = sweep("square", p=p, block_size=block_size, **shared)
    try:
        row = numbers_of(results, replicas)
        if options["thresholds"]:
            row |= threshold_numbers(sweep("square", method="threshold", **shared))
    except AnalysisError as error:
        return f"seed {seed}: {error}"
    return row, [curve.spanning.sum(axis=0).tolist() for curve in curves_of(results)]


def numbers_of(results: Any, replicas: int) -> Row:
    """Return (value, error) of everything that is fitted to a grid."""
    fit = fit_results(results, bootstrap=replicas)
    auto = fit_results(results, min_size="auto", bootstrap=0)
    row = {
        "p_c, bootstrap": (fit.threshold, fit.threshold_error),
        "p_c, curvature": (fit.threshold, fit.fisher_error),
        "p_c, auto": (auto.threshold, auto.fisher_error),
        "1/nu, bootstrap": (fit.y_t, fit.y_t_error),
        "1/nu, curvature": (fit.y_t, fit.y_t_fisher_error),
        "R(p_c), bootstrap": (fit.critical_probability, fit.critical_probability_error),
    }
    if fit.by_size.drift is not None:
        row["p_c, drift"] = (fit.by_size.drift.threshold, fit.by_size.drift.threshold_error)
    for item in exponents_of(results, fit, bootstrap=replicas).exponents[1:]:
        row[f"{item.name}, {item.source}"] = (item.value, item.error)
    return row


def threshold_numbers(results: Any) -> Row:
    """Return (value, error) of what single T give."""
    found = samples_of(results, bootstrap=0)
    assert found is not None
    row = {}
    for item in found.extrapolations:
        row[f"{item.name}, {item.estimator} of T"] = (item.result.value, item.result.error)
    for size in found.sizes:
        values = (size.mean, size.median, size.width)
        for name, value, error in zip(("mean", "median", "width"), values, size.errors):
            row[f"{name} of T, L = {size.L}"] = (value, float(error))
    return row


def exact_of(name: str) -> float | None:
    """Return the exact value of a number, by the beginning of its name."""
    exact = {key: known.value for key, known in known_exponents(2).items()}
    # By self-duality the square lattice spans with probability 1/2 at 1/2, up to its shape.
    exact |= {"p_c": 0.5, "R(p_c)": 0.5}
    return exact.get(name.partition(",")[0])


def inside(values: np.ndarray, errors: np.ndarray, truth: float) -> list[float]:
    """Return the parts of the values within one and two of their errors of the truth."""
    return [float(np.mean(np.abs(values - truth) <= k * errors)) for k in (1, 2)]


def coverage(rows: list[Row]) -> list[dict[str, Any]]:
    """Return for every number how often its errors cover its median and its exact value."""
    table = []
    for name in rows[0]:
        pairs = np.array([row[name] for row in rows if name in row and np.isfinite(row[name][1])])
        if len(pairs) < 2:
            continue
        values, errors = pairs.T
        exact, middle = exact_of(name), float(np.median(values))
        record = {
            "name": name,
            "count": len(pairs),
            "median": middle,
            # A single repetition with a large error of its own would rule a standard deviation.
            "scatter": half_width(values),
            "stated_over_true": float(np.median(errors) / half_width(values)),
            "covers_median": inside(values, errors, middle),
            "exact": exact,
        }
        if exact is not None:
            record["covers_exact"] = inside(values, errors, exact)
            record["shift_in_scatter"] = (middle - exact) / record["scatter"]
        table.append(record)
    return table


def wilson_coverage(counts: np.ndarray, samples: int, z: float) -> float:
    """Return how often Wilson intervals hold R_L(p), the mean over all repetitions.

    counts: int64 (repetitions, points).
    """
    from percolab.analysis.statistics import wilson_interval

    truth = counts.mean(axis=0) / samples
    low, high = wilson_interval(counts, samples, z=z)
    # Where all samples agree there is nothing to cover.
    varied = (truth > 0.02) & (truth < 0.98)
    return float(np.mean(((low <= truth) & (truth <= high))[:, varied]))


def table_of(record: dict[str, Any]) -> str:
    """Return the record as text, for the eye and for Markdown."""
    count = record["repetitions"]
    error = [float(np.sqrt(q * (1 - q) / count)) for q in NORMAL]
    lines = [
        f"square lattice, L = {', '.join(map(str, record['L']))}, {record['samples']} samples a "
        f"size in {record['blocks']} blocks, {record['bootstrap']} bootstrap replicas: "
        f"{count} repetitions, {record['failed']} without a fit, {record['seconds']:.0f} s",
        "",
        f"nominal: {NORMAL[0]:.1%} +- {error[0]:.1%} and {NORMAL[1]:.1%} +- {error[1]:.1%} "
        "(binomial error of so many repetitions)",
        "",
        "| number | median, 1 sigma | 2 sigma | exact, 1 sigma | 2 sigma | shift / scatter "
        "| stated/true |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record["coverage"]:
        covers = [f"{part:.1%}" for part in row["covers_median"]]
        exact = [f"{part:.1%}" for part in row.get("covers_exact", [])] or ["", ""]
        shift = f"{row['shift_in_scatter']:+.2f}" if row["exact"] is not None else ""
        cells = [row["name"], *covers, *exact, shift, f"{row['stated_over_true']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    wilson = [f"{part:.1%}" for part in record["wilson"]]
    lines.append("| " + " | ".join(["Wilson interval of R_L(p)", *wilson, "", "", "", ""]) + " |")
    return "\n".join(lines) + "\n"


def measured(jobs: Sequence[tuple[int, dict[str, Any]]], processes: int) -> list[Any]:
    """Return all repetitions, made by several processes, with progress on stderr."""
    # Small matrices gain nothing from threads, and the processes share the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        done = pool.imap_unordered(repetition, jobs, chunksize=4)
        with click.progressbar(done, length=len(jobs), file=sys.stderr) as shown:
            return list(shown)


@click.command(help=__doc__)
@click.option("-L", "sizes", default="8,16,32,64", show_default=True, help="Sizes, by commas.")
@click.option("--samples", default=400, show_default=True, type=click.IntRange(min=50))
@click.option("--blocks", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--bootstrap", default=60, show_default=True, type=click.IntRange(min=50))
@click.option("--repetitions", default=1000, show_default=True, type=click.IntRange(min=2))
@click.option("--processes", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--thresholds/--no-thresholds", default=True, help="By method threshold as well.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for calibration.md and .json.")
def main(
    sizes: str,
    samples: int,
    blocks: int,
    bootstrap: int,
    repetitions: int,
    processes: int,
    thresholds: bool,
    out: Path | None,
) -> None:
    """Make the table."""
    begin = time.perf_counter()
    try:
        lengths = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise click.BadParameter(f"-L {sizes}: sizes are integers separated by commas") from None
    options = {
        "L": lengths,
        "samples": samples,
        "blocks": blocks,
        "bootstrap": bootstrap,
        "thresholds": thresholds,
    }
    found = measured([(seed, options) for seed in range(1, repetitions + 1)], processes)
    rows = [item for item in found if not isinstance(item, str)]
    for item in found:
        if isinstance(item, str):
            click.echo(item, err=True)
    if not rows:
        raise click.ClickException("no repetition could be fitted; give more --samples")
    counts = np.array([np.concatenate(item[1]) for item in rows])
    record = options | {
        "repetitions": len(rows),
        "failed": repetitions - len(rows),
        "seconds": time.perf_counter() - begin,
        "coverage": coverage([item[0] for item in rows]),
        "wilson": [wilson_coverage(counts, samples, z) for z in (1.0, 2.0)],
    }
    text = table_of(record)
    click.echo(text, nl=False)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "calibration.md").write_text(text, encoding="utf-8")
        (out / "calibration.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
