"""percolab report: a study as one HTML page."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import click

from percolab.cli.options import (
    as_json,
    echo_json,
    fit_from_options,
    fit_options,
    output_file,
    read_study,
    results_file,
)
from percolab.cli.terminal import echo


@click.command()
@results_file
@click.option("--out", type=click.Path(), help="Page: .html or .htm.  [default: RESULTS.html]")
@fit_options
@as_json
def command(results: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Write one page with figures, fits, samples, methods and provenance.

    The page needs no other file and no network, and prints.  It holds every kind of figure that
    percolab plot makes of these results, and the fit of every spanning observable.

    With --json the numbers of all fits and figures go to stdout.
    """
    from percolab.figures.report import report_page
    from percolab.store.output_files import check_suffix, write_output

    if out:
        check_suffix(out, (".html", ".htm"), "a page")
        output_file(out, "")
    stored = read_study(results, options)
    target = output_file(out, Path(results).with_suffix(".html"))
    chosen = options.pop("observable")
    page, numbers = report_page(
        stored,
        name=Path(results).name,
        checksum=hashlib.sha256(Path(results).read_bytes()).hexdigest(),
        fitted=lambda name: fit_from_options(stored, observable=name, **options),
        observable=chosen,
        bootstrap=options["bootstrap"],
    )
    write_output(target, page.encode())
    echo(f"report in {target}", err=as_json)
    if as_json:
        echo_json(numbers)
