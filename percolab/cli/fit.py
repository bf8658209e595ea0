"""percolab fit: the threshold from stored results, as a table or as JSON."""

from __future__ import annotations

import click

from percolab.cli.options import (
    as_json,
    echo_json,
    fit_of,
    fit_options,
    observable_of,
    one_line_errors,
    results_file,
)


@click.command()
@results_file
@fit_options
@as_json
def command(results: str, as_json: bool, **options) -> None:
    """Estimate p_c with its error, 1/nu, the crossings of successive sizes and their drift.

    With --min-size auto the fits against the smallest size used come first.  docs/analysis.md
    describes the fit.
    """
    from percolab.analysis import choose_cutoff, cutoff_table, fit_table
    from percolab.spanning import cutoffs_of
    from percolab.storage import read_results

    stored = read_results(results)
    cutoffs = None
    if options["min_size"] == "auto":
        name = observable_of(stored, options["observable"])
        with one_line_errors():
            cutoffs = cutoffs_of(stored, name, omega=options["omega"])
        options["min_size"] = choose_cutoff(cutoffs).min_size
    fit = fit_of(stored, **options)
    if as_json:
        table = {"cutoffs": [cutoff.to_dict() for cutoff in cutoffs]} if cutoffs else {}
        echo_json(fit.to_dict() | table)
        return
    if cutoffs:
        click.echo(cutoff_table(cutoffs) + "\n")
    click.echo(fit_table(fit))
    known = stored.study.lattice.threshold(stored.study.model)
    if known is not None:
        difference = (fit.threshold - known.value) / fit.threshold_error
        click.echo(
            f"\npublished {known.value:.12g}  {known.expression}  ({known.reference}): "
            f"{difference:+.1f} sigma"
        )
