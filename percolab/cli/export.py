"""percolab export: stored results as CSV, one line a size and p, or one a sample."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from percolab.cli.options import results_file


@click.command()
@results_file
@click.option("-p", "probabilities", help="p to give R_L(p) at (method threshold): from:to:count.")
@click.option("--thresholds", is_flag=True, help="One line a sample: T along every open axis.")
@click.option("--out", type=click.Path(), help="CSV file.  [default: stdout]")
def command(results: str, probabilities: str | None, thresholds: bool, out: str | None) -> None:
    """Write the mean of every observable with its standard error, for every size and p."""
    from h5py import is_hdf5

    from percolab.config import parse_probabilities
    from percolab.storage import read_results, replace_file
    from percolab.study import check_probabilities
    from percolab.tables import mean_table, threshold_table
    from percolab.toml_input import InputError

    stored = read_results(results)
    if thresholds:
        if probabilities is not None:
            raise InputError("-p and --thresholds: T of a sample has no p; give one of them")
        header, rows = threshold_table(stored)
    else:
        p = None if probabilities is None else parse_probabilities(probabilities)
        if p is not None:
            check_probabilities(p)
        header, rows = mean_table(stored, p)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    if out is None:
        click.echo(buffer.getvalue(), nl=False)
        return
    if Path(out).is_dir():
        raise InputError(f"{out}: is a directory; give the name of a file")
    if is_hdf5(out):
        raise InputError(f"{out}: is an HDF5 file, which a CSV file must not replace")
    replace_file(Path(out), buffer.getvalue().encode())
