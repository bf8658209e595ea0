"""percolab export: stored results as CSV, Parquet, netCDF or NumPy, a line a size and p."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from percolab.cli.options import counted, is_given, output_file, refuse, results_file
from percolab.cli.terminal import echo
from percolab.errors import InputError

if TYPE_CHECKING:
    from percolab.store.output_files import Kind
    from percolab.store.results import StoredResults
    from percolab.tables.flat import Table


#: Formats, and the suffixes of their files; the first is that of a file that is not named.
FORMATS = {
    "csv": (".csv", ".txt"),
    "parquet": (".parquet",),
    "netcdf": (".nc",),
    "npz": (".npz",),
}


@click.command()
@results_file
@click.option("-p", "probabilities",
              help="p of methods threshold and microcanonical: from:to:count.")  # fmt: skip
@click.option("--tidy", is_flag=True, help="One line an observable, size and p, with its unit.")
@click.option("--thresholds", is_flag=True, help="One line a sample: T along every open axis.")
@click.option("--sizes", is_flag=True, help="One line a bin of cluster sizes, size and p: n_s.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)),
              help="What to write.  [default: as --out ends, else csv]")  # fmt: skip
@click.option(
    "--out",
    type=click.Path(),
    help="File: .csv, .txt (the same), .parquet, .nc or .npz.  [default: CSV to stdout, other "
    "formats to RESULTS with their suffix]",
)
def command(
    results: str,
    probabilities: str | None,
    tidy: bool,
    thresholds: bool,
    sizes: bool,
    form: str | None,
    out: str | None,
) -> None:
    """Write the mean of every observable with its standard error, for every size and p.

    CSV and npz (NumPy, an array a column) need nothing else. Parquet, and netCDF with all means as
    arrays over task and point, need percolab[tables].

    Of labels (percolab label) write the clusters, a line each.
    """
    from percolab.store import output_files as files
    from percolab.store.reading import is_labels
    from percolab.store.results import read_results
    from percolab.tables.frames import netcdf_bytes

    labels = is_labels(results)
    csv = files.CLUSTERS_CSV if labels else files.CSV
    kinds = dict(zip(FORMATS, (csv, files.PARQUET, files.NETCDF, files.NPZ_TABLE)))
    form, default = _target(results, form, out)
    if out is not None or default is not None:
        out = str(output_file(out, default or "", kinds[form]))
    if labels:
        reason = "labels have one table, that of their clusters"
        given = {"p": probabilities, "tidy": tidy, "thresholds": thresholds}
        refuse(given | {"format netcdf": form == "netcdf"}, reason)
        _write(out, form, _cluster_table(results), kinds[form])
        return
    stored = read_results(results)
    if form == "netcdf":
        given = {"-p": probabilities, "--tidy": tidy, "--thresholds": thresholds, "--sizes": sizes}
        for name, value in given.items():
            if is_given(value):
                raise InputError(f"{name}: a netCDF file has all means at once; leave it out")
        files.write_output(str(out), netcdf_bytes(stored), kinds[form])
        echo(f"all means in {out}")
        return
    table = _table(stored, probabilities, tidy=tidy, thresholds=thresholds, sizes=sizes)
    _write(out, form, table, kinds[form])


def _write(out: str | None, form: str, table: Table, kind: Kind) -> None:
    """Write a table to a file, or as CSV to stdout."""
    from percolab.store.output_files import write_output
    from percolab.tables.csv_text import csv_text
    from percolab.tables.frames import npz_bytes, parquet_bytes

    if out is None:
        echo(csv_text(*table), nl=False)
        return
    if form == "csv":
        content = csv_text(*table).encode()
    else:
        content = (parquet_bytes if form == "parquet" else npz_bytes)(table)
    write_output(out, content, kind)
    echo(f"{counted(len(table[1]), 'row')} in {out}")


def _cluster_table(labels: str) -> Table:
    from percolab.configurations import read_labels
    from percolab.configurations.label_array import cluster_table

    found = read_labels(labels)
    return cluster_table(found.clusters, found.cluster_labels, found.phases, found.phase_names)


def _target(results: str, form: str | None, out: str | None) -> tuple[str, str | None]:
    """Return the format and the file where none is named, None for stdout.

    InputError: format and name contradict.
    """
    from percolab.store.output_files import check_suffix

    if out is not None:
        suffixes = [each for known in FORMATS.values() for each in known]
        check_suffix(out, FORMATS[form] if form else suffixes, f"{form}" if form else "a table")
        suffix = Path(out).suffix.lower()
        named = [name for name, known in FORMATS.items() if suffix in known]
        return form or (named[0] if named else "csv"), None
    if form in (None, "csv"):
        return "csv", None
    path = Path(results)
    return form, str(path.parent / f"{path.stem}{FORMATS[form][0]}")


def _table(
    stored: StoredResults, probabilities: str | None, *, tidy: bool, thresholds: bool, sizes: bool
) -> Table:
    """Return the requested table; InputError for options that exclude each other."""
    from percolab.tables.flat import long_table, mean_table, threshold_table
    from percolab.tables.sizes import size_table
    from percolab.tasks.study import check_probabilities
    from percolab.tasks.values import parse_probabilities

    tables = {"--tidy": tidy, "--thresholds": thresholds, "--sizes": sizes}
    chosen = [name for name, is_given in tables.items() if is_given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)}: each is a table of its own; give one of them")
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
