"""percolab report: a study as one HTML page."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli import options as shared
from percolab.cli.groups import Command
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.store.results import StoredResults


#: Suffixes of a page.
PAGES = (".html", ".htm")


@click.command(cls=Command)
@shared.results_file
@click.option(
    "-o", "--out", type=click.Path(), help="Page: .html or .htm.  [default: RESULTS.html]"
)
@shared.fit_options
@shared.as_json
def command(results: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Write one page with figures, fits, samples, methods and provenance.

    The page needs no other file and no network, and can be printed.  It has every kind of figure
    that percolab plot makes of these results, and the fit of every spanning observable.

    For a file of labels (percolab label) it has the output of percolab status, and their figure.

    With --json the numbers of all fits and figures go to stdout.
    """
    from percolab.store.output_files import is_labels, write_output

    if out:
        shared.check_target(out, "a page", PAGES)
    if is_labels(results):
        shared.refuse(options, "labels have none", "observable")
        shared.refuse_scaling(options)
        page, numbers = label_page(results)
        target = shared.output_file(out, Path(results).with_suffix(".html"))
        write_output(target, page.encode())
    else:
        stored = shared.read_study(results, options)
        target = shared.output_file(out, Path(results).with_suffix(".html"))
        content = Path(results).read_bytes()
        numbers = write_report(stored, target, name=Path(results).name, content=content, **options)
    echo(f"report in {target}", err=as_json)
    if as_json:
        shared.echo_json(numbers)


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
        fitted=lambda each: shared.fit_from_options(stored, observable=each, **options),
        observable=observable,
        bootstrap=bootstrap,
    )
    write_output(target, page.encode())
    return numbers


def label_page(file: str) -> tuple[str, dict[str, Any]]:
    """Return the page of a file of labels, and its numbers; InputError if it is none."""
    from markupsafe import Markup

    from percolab.cli.status import describe_labels, labels_record
    from percolab.configurations import read_labels
    from percolab.configurations.picture import draw_stored_labels
    from percolab.figures import svg_text
    from percolab.figures.page import PageFigure, Section, page, preformatted, table

    given, name = read_labels(file), Path(file).name
    numbers = labels_record(name, given)
    numbers["sha256"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    text = "\n".join(describe_labels(name, given))
    drawn = []
    if given.lattice is not None:
        figure, numbers["figure"] = draw_stored_labels(given, name)
        drawn.append(PageFigure(
            "clusters", "Clusters", "The largest cluster and those that span or wrap stand out.",
            "", f"Clusters of {name}", Markup(svg_text(figure, "clusters")),
        ))  # fmt: skip
    record = {**given.record, "shape": given.shape, "SHA-256": numbers["sha256"]}
    rows = [
        (key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        for key, value in record.items()
    ]
    sections = [
        Section("clusters", "Clusters", [preformatted(text)], drawn),
        Section("provenance", "Provenance", [table((), [("file", name), *rows])]),
    ]
    return page(f"Labels of {given.record.get('input', name)}", [], sections), numbers
