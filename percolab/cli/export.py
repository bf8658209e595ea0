"""percolab export: stored results as CSV, one line a size and p."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from percolab.cli.options import results_file


@click.command()
@results_file
@click.option("--out", type=click.Path(), help="CSV file.  [default: stdout]")
def command(results: str, out: str | None) -> None:
    """Write the mean of every observable with its standard error, for every size and p."""
    from h5py import is_hdf5

    from percolab.storage import read_results, replace_file
    from percolab.tables import mean_table
    from percolab.toml_input import InputError

    header, rows = mean_table(read_results(results))
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
