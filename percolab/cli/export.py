"""percolab export: stored results as CSV or Parquet, one line a size and p, or one a sample."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from percolab.cli.options import counted, results_file

if TYPE_CHECKING:
    from percolab.store.results import Results
    from percolab.tables.flat import Table


@click.command()
@results_file
@click.option("-p", "probabilities", help="p to give R_L(p) at (method threshold): from:to:count.")
@click.option("--tidy", is_flag=True, help="One line an observable, size and p, with its unit.")
@click.option("--thresholds", is_flag=True, help="One line a sample: T along every open axis.")
@click.option("--sizes", is_flag=True, help="One line a bin of cluster sizes, size and p: n_s.")
@click.option(
    "--out",
    type=click.Path(),
    help="Table: .csv, .txt (the same) or .parquet.  [default: CSV to stdout]",
)
def command(
    results: str,
    probabilities: str | None,
    tidy: bool,
    thresholds: bool,
    sizes: bool,
    out: str | None,
) -> None:
    """Write the mean of every observable with its standard error, for every size and p."""
    from percolab.store.output_files import CSV, PARQUET, check_output, check_suffix, write_output
    from percolab.store.results import read_results
    from percolab.tables.frames import parquet_bytes

    is_parquet = out is not None and Path(out).suffix.lower() == ".parquet"
    if out is not None:
        check_suffix(out, (".csv", ".txt", ".parquet"), "a table")
        check_output(out, PARQUET if is_parquet else CSV)
    stored = read_results(results)
    header, rows = _table(stored, probabilities, tidy=tidy, thresholds=thresholds, sizes=sizes)
    if out is not None and is_parquet:
        write_output(out, parquet_bytes((header, rows)), PARQUET)
        click.echo(f"{counted(len(rows), 'row')} in {out}")
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    if out is None:
        click.echo(buffer.getvalue(), nl=False)
        return
    write_output(out, buffer.getvalue().encode(), CSV)
    click.echo(f"{counted(len(rows), 'row')} in {out}")


def _table(
    stored: Results, probabilities: str | None, *, tidy: bool, thresholds: bool, sizes: bool
) -> Table:
    """Return the table that was asked for; InputError for options that exclude each other."""
    from percolab.errors import InputError
    from percolab.tables.flat import long_table, mean_table, threshold_table
    from percolab.tables.sizes import size_table
    from percolab.tasks.study import check_probabilities
    from percolab.tasks.values import parse_probabilities

    tables = {"--tidy": tidy, "--thresholds": thresholds, "--sizes": sizes}
    asked = [name for name, is_given in tables.items() if is_given]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)}: each is a table of its own; give one of them")
    if thresholds:
        if probabilities is not None:
            raise InputError("-p and --thresholds: T of a sample has no p; give one of them")
        return threshold_table(stored)
    if sizes:
        if probabilities is not None:
            raise InputError(
                "-p and --sizes: clusters are counted at the p of the grid alone; leave -p out"
            )
        return size_table(stored)
    p = None if probabilities is None else parse_probabilities(probabilities)
    if p is not None:
        check_probabilities(p)
    return (long_table if tidy else mean_table)(stored, p)
