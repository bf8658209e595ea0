"""percolab fit: the threshold from stored results, as a table or as JSON."""

from __future__ import annotations

import click

from percolab.cli.options import as_json, echo_json, fit_of, fit_options, results_file


@click.command()
@results_file
@fit_options
@as_json
def command(results: str, as_json: bool, **options) -> None:
    """Estimate p_c with its error, 1/nu, the crossings of successive sizes and their drift.

    docs/analysis.md describes the fit.
    """
    from percolab.analysis import fit_table
    from percolab.storage import read_results

    stored = read_results(results)
    fit = fit_of(stored, **options)
    if as_json:
        echo_json(fit.to_dict())
        return
    click.echo(fit_table(fit))
    known = stored.study.lattice.threshold(stored.study.model)
    if known is not None:
        difference = (fit.threshold - known.value) / fit.threshold_error
        click.echo(
            f"\npublished {known.value:.12g}  {known.expression}  ({known.reference}): "
            f"{difference:+.1f} sigma"
        )
