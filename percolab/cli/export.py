"""percolab export: stored results as CSV, Parquet, netCDF or NumPy, a line a size and p."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from percolab.cli.groups import Command
from percolab.cli.options import counted, output_file, refuse, results_file
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.store import output_files as files

if TYPE_CHECKING:
    from percolab.store.results import StoredResults
    from percolab.tables.flat import Table


#: Formats, and the suffixes of their files; the first is that of a file that is not named.
FORMATS = {"csv": (".csv", ".txt"), "parquet": (".parquet",), "netcdf": (".nc",), "npz": (".npz",)}
_KINDS = dict(zip(FORMATS, (files.CSV, files.PARQUET, files.NETCDF, files.NPZ_TABLE)))


@click.command(cls=Command)
@results_file
@click.option("-p", "probabilities",
              help="p for methods threshold and microcanonical: from:to:count.")  # fmt: skip
@click.option("--tidy", is_flag=True, help="One line per observable, L and p, with the unit.")
@click.option("--thresholds", is_flag=True, help="One line per sample: T along every open axis.")
@click.option("--sizes", is_flag=True, help="One line per bin of cluster sizes, L and p: n_s.")
@click.option("--sites", is_flag=True, help="For labels: one line per site, its cluster's label.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)),
              help="Format of the file.  [default: by the suffix of --out, else csv]")  # fmt: skip
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    help="File: .csv, .txt (also CSV), .parquet, .nc or .npz.  [default: CSV to stdout, other "
    "formats to RESULTS with their suffix]",
)
def command(
    results: str,
    probabilities: str | None,
    form: str | None,
    out: str | None,
    sites: bool,
    **tables: bool,
) -> None:
    """Write the mean of every observable with its standard error, for every size and p.

    CSV and npz (NumPy, one array per column) need no other package. Parquet, and netCDF with all
    means as arrays over task and point, need percolab[tables].

    For labels (percolab label), write one line per cluster, or with --sites one line per site.
    """
    from percolab.store.results import read_results
    from percolab.tasks.values import parse_probabilities

    labels = files.is_labels(results)
    form, default = find_format(results, form, out)
    of_labels = files.SITES_CSV if sites else files.CLUSTERS_CSV
    kind = of_labels if labels and form == "csv" else _KINDS[form]
    if out is not None or default is not None:
        out = str(output_file(out, default or "", kind))
    if labels:
        from percolab.configurations import read_labels

        others = {"p": probabilities} | tables | {"format netcdf": form == "netcdf"}
        refuse(others, "labels have tables of their clusters and sites alone")
        given = read_labels(results)
        table = given.site_table() if sites else given.cluster_table()
        text = _write(out, form, table, kind)
    else:
        refuse({"sites": sites}, "it is of labels (percolab label)")
        stored = read_results(results)
        p = None if probabilities is None else parse_probabilities(probabilities)
        text = write_table(stored, out, form, p, **tables)
    echo(text, nl=out is not None)


def write_table(
    stored: StoredResults,
    out: str | None,
    form: str,
    p: tuple[float, ...] | None = None,
    **tables: bool,
) -> str:
    """Write results to a file in one of FORMATS, and return in a few words what is in it.

    out: None writes no file, and returns the table as CSV.  tables: whether each but the usual
    one is chosen.  InputError: several are, p that the table does not have, or a file that cannot
    be written.
    """
    from percolab.tables.frames import netcdf_bytes

    chosen = [name for name, is_chosen in tables.items() if is_chosen]
    if len(chosen) > 1:
        names = " and ".join(f"--{name}" for name in chosen)
        raise InputError(f"{names}: each writes a different table; give only one")
    table = chosen[0] if chosen else ""
    if form != "netcdf":
        return _write(out, form, _make_table(stored, p, table), _KINDS[form])
    if p is not None or table:
        name = "-p" if p is not None else f"--{table}"
        raise InputError(f"{name}: a netCDF file has all means at once; leave it out")
    files.write_output(str(out), netcdf_bytes(stored), _KINDS[form])
    return f"all means in {out}"


def _write(out: str | None, form: str, table: Table, kind: files.Kind) -> str:
    """Write a table to a file and say how long it is, or without a file return it as CSV."""
    from percolab.lattices.shown import csv_text
    from percolab.tables.frames import npz_bytes, parquet_bytes

    if out is None:
        return csv_text(*table)
    if form == "csv":
        content = csv_text(*table).encode()
    else:
        content = (parquet_bytes if form == "parquet" else npz_bytes)(table)
    files.write_output(out, content, kind)
    return f"{counted(len(table[1]), 'row')} in {out}"


def find_format(results: str, form: str | None, out: str | None) -> tuple[str, str | None]:
    """Return the format and the file where none is named, None for stdout.

    InputError: format and name contradict.
    """
    if out is not None:
        suffixes = [each for known in FORMATS.values() for each in known]
        files.check_suffix(out, FORMATS[form] if form else suffixes, form or "a table")
        suffix = Path(out).suffix.lower()
        named = [name for name, known in FORMATS.items() if suffix in known]
        return form or (named[0] if named else "csv"), None
    if form in (None, "csv"):
        return "csv", None
    path = Path(results)
    return form, str(path.parent / f"{path.stem}{FORMATS[form][0]}")


def _make_table(stored: StoredResults, p: tuple[float, ...] | None, table: str) -> Table:
    from percolab.tables.flat import long_table, mean_table, size_table, threshold_table
    from percolab.tasks.study import check_probabilities

    if p is not None and table == "thresholds":
        raise InputError("-p and --thresholds: T of a sample does not depend on p; leave -p out")
    if p is not None and table == "sizes":
        own = "clusters are counted only at the p of the sweep"
        raise InputError(f"-p and --sizes: {own}; leave -p out")
    if table in ("thresholds", "sizes"):
        return (threshold_table if table == "thresholds" else size_table)(stored)
    if p is not None:
        check_probabilities(p)
    return (long_table if table == "tidy" else mean_table)(stored, p)
