"""percolab report: a study as one HTML page."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from percolab.store.results import StoredResults


#: Suffixes of a page.
PAGES = (".html", ".htm")


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
    from percolab.store.output_files import check_suffix

    if out:
        check_suffix(out, PAGES, "a page")
        output_file(out, "")
    stored = read_study(results, options)
    target = output_file(out, Path(results).with_suffix(".html"))
    content = Path(results).read_bytes()
    numbers = write_report(stored, target, name=Path(results).name, content=content, **options)
    echo(f"report in {target}", err=as_json)
    if as_json:
        echo_json(numbers)


def write_report(
    stored: StoredResults,
    target: Path,
    *,
    name: str,
    content: bytes,
    observable: str | None = None,
    bootstrap: int = 200,
    **options: Any,
) -> dict[str, Any]:
    """Write the page of results to a file, and return the numbers of all fits and figures.

    name, content: the file of the results.  options: those of :func:`fit_options`.
    """
    from percolab.figures.report import report_page
    from percolab.store.output_files import write_output

    options["bootstrap"] = bootstrap
    page, numbers = report_page(
        stored,
        name=name,
        checksum=hashlib.sha256(content).hexdigest(),
        fitted=lambda each: fit_from_options(stored, observable=each, **options),
        observable=observable,
        bootstrap=bootstrap,
    )
    write_output(target, page.encode())
    return numbers
