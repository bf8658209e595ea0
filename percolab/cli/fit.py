"""percolab fit: the threshold from stored results, as a table or as JSON."""

from __future__ import annotations

from typing import Any

import click

from percolab.cli.options import (
    as_json,
    described,
    echo_json,
    estimates_text,
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
    describes the fit.  A graph and a Bethe lattice have no sizes that scale: their thresholds are
    where their clusters are most critical, size by size.
    """
    from percolab.analysis import choose_cutoff, cutoff_table, fit_table
    from percolab.spanning import cutoffs_of
    from percolab.storage import read_results

    stored = read_results(results)
    if not stored.study.lattice.is_scalable:
        _estimate(stored, as_json, **options)
        return
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


def _estimate(
    stored: Any, as_json: bool, *, bootstrap: int, min_size: Any, observable: str | None, **_: Any
) -> None:
    """Write the thresholds of every size alone."""
    from percolab.spanning import estimates_of
    from percolab.toml_input import InputError

    if min_size is not None:
        raise InputError("--min-size: there is no fit of several sizes here; leave it out")
    if observable is not None:
        observable_of(stored, observable)
    if as_json:
        echo_json([size.to_dict() for size in estimates_of(stored, bootstrap=bootstrap)])
        return
    click.echo(described(stored.study))
    click.echo(estimates_text(stored, bootstrap=bootstrap))
