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
    from percolab.store.output_files import CLUSTERS_CSV
    from percolab.store.reading import is_labels
    from percolab.store.results import read_results
    from percolab.tasks.values import parse_probabilities

    labels = is_labels(results)
    form, default = find_format(results, form, out)
    kind = CLUSTERS_CSV if labels and form == "csv" else _kind(form)
    if out is not None or default is not None:
        out = str(output_file(out, default or "", kind))
    if labels:
        reason = "labels have one table, that of their clusters"
        given = {"p": probabilities, "tidy": tidy, "thresholds": thresholds}
        refuse(given | {"format netcdf": form == "netcdf"}, reason)
        echo(_write(out, form, _cluster_table(results), kind), nl=out is not None)
        return
    stored = read_results(results)
    p = None if probabilities is None else parse_probabilities(probabilities)
    text = write_table(stored, out, form, p, tidy=tidy, thresholds=thresholds, sizes=sizes)
    echo(text, nl=out is not None)


def _kind(form: str) -> Kind:
    from percolab.store import output_files as files

    return dict(zip(FORMATS, (files.CSV, files.PARQUET, files.NETCDF, files.NPZ_TABLE)))[form]


def write_table(
    stored: StoredResults,
    out: str | None,
    form: str,
    p: tuple[float, ...] | None = None,
    *,
    tidy: bool = False,
    thresholds: bool = False,
    sizes: bool = False,
) -> str:
    """Write results to a file in one of FORMATS, and return in a few words what is in it.

    out: None writes no file, and returns the table as CSV.
    InputError: options that exclude each other, or a file that cannot be written.
    """
    from percolab.store.output_files import write_output
    from percolab.tables.frames import netcdf_bytes

    if form == "netcdf":
        given = {"-p": p, "--tidy": tidy, "--thresholds": thresholds, "--sizes": sizes}
        for name, value in given.items():
            if is_given(value):
                raise InputError(f"{name}: a netCDF file has all means at once; leave it out")
        write_output(str(out), netcdf_bytes(stored), _kind(form))
        return f"all means in {out}"
    table = _table(stored, p, tidy=tidy, thresholds=thresholds, sizes=sizes)
    return _write(out, form, table, _kind(form))


def _write(out: str | None, form: str, table: Table, kind: Kind) -> str:
    """Write a table to a file and say how long it is, or without a file return it as CSV."""
    from percolab.store.output_files import write_output
    from percolab.tables.csv_text import csv_text
    from percolab.tables.frames import npz_bytes, parquet_bytes

    if out is None:
        return csv_text(*table)
    if form == "csv":
        content = csv_text(*table).encode()
    else:
        content = (parquet_bytes if form == "parquet" else npz_bytes)(table)
    write_output(out, content, kind)
    return f"{counted(len(table[1]), 'row')} in {out}"


def _cluster_table(labels: str) -> Table:
    from percolab.configurations import read_labels
    from percolab.configurations.label_array import cluster_table

    found = read_labels(labels)
    return cluster_table(found.clusters, found.cluster_labels, found.phases, found.phase_names)


def find_format(results: str, form: str | None, out: str | None) -> tuple[str, str | None]:
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
    stored: StoredResults,
    p: tuple[float, ...] | None,
    *,
    tidy: bool,
    thresholds: bool,
    sizes: bool,
) -> Table:
    """Return the requested table; InputError for options that exclude each other."""
    from percolab.tables.flat import long_table, mean_table, size_table, threshold_table
    from percolab.tasks.study import check_probabilities

    tables = {"--tidy": tidy, "--thresholds": thresholds, "--sizes": sizes}
    chosen = [name for name, is_given in tables.items() if is_given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)}: each is a table of its own; give one of them")
    if thresholds:
        if p is not None:
            raise InputError("-p and --thresholds: T of a sample has no p; give one of them")
        return threshold_table(stored)
    if sizes:
        if p is not None:
            raise InputError(
                "-p and --sizes: clusters are counted at the p of the grid alone; leave -p out"
            )
        return size_table(stored)
    if p is not None:
        check_probabilities(p)
    return (long_table if tidy else mean_table)(stored, p)
