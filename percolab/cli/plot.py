"""percolab plot: the spanning curves of stored results as a figure, and its numbers."""

from __future__ import annotations

from pathlib import Path

import click

from percolab.cli.options import as_json, echo_json, fit_of, fit_options, results_file


@click.command()
@results_file
@click.option(
    "--out", type=click.Path(), help="Figure: .png, .pdf or .svg.  [default: RESULTS.png]"
)
@fit_options
@as_json
def command(results: str, out: str | None, as_json: bool, **options) -> None:
    """Draw R_L(p) with error bars, the crossings, their drift, and p_c.

    Of a graph or a Bethe lattice: s_1/N, s_2/N and chi against p, with their maxima.

    With --json every number drawn goes to stdout.
    """
    from percolab.plots import save_figure
    from percolab.report import study_figure
    from percolab.storage import read_results
    from percolab.toml_input import InputError

    stored = read_results(results)
    figure, numbers = study_figure(
        stored,
        observable=options["observable"],
        fitted=lambda: fit_of(stored, **options),
        bootstrap=options["bootstrap"],
    )
    target = Path(out) if out else Path(results).with_suffix(".png")
    try:
        save_figure(figure, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    click.echo(f"figure in {target}", err=as_json)
    if as_json:
        echo_json(numbers)
