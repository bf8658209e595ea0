"""Options that several commands share."""

from __future__ import annotations

import json
from typing import Any

import click

results_file = click.argument("results", type=click.Path(), metavar="RESULTS.h5")
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")


def fit_options(function):
    """Add the options of the threshold fit."""
    for option in (
        click.option("--omega", type=click.FloatRange(0, 10, min_open=True), default=1.0,
                     show_default=True, help="Exponent of the leading correction to scaling."),
        click.option("--min-size", type=click.IntRange(min=1), help="Smallest L to use."),
        click.option("--bootstrap", type=click.IntRange(min=0), default=200, show_default=True,
                     help="Bootstrap replicas over blocks; 0 takes the curvature error."),
        click.option("--observable", help="spanning_x, spanning_y, spanning_any, spanning_all ... "
                     "[default: along the last open axis]"),
    ):  # fmt: skip
        function = option(function)
    return function


def fit_of(
    results: Any, *, omega: float, min_size: int | None, bootstrap: int, observable: str | None
):
    """Return the threshold fit with the options of :func:`fit_options`; bad ones are InputError."""
    from percolab.analysis import AnalysisError
    from percolab.observables import spanning_names
    from percolab.runner import default_observable, fit_results
    from percolab.toml_input import InputError, nearest

    default, known = default_observable(results), spanning_names(results.study.boundary)
    name = observable or default
    if name not in known:
        raise InputError(f"--observable {name}: no spanning observable; {nearest(name, known)}")
    try:
        return fit_results(results, name, omega=omega, min_size=min_size, bootstrap=bootstrap)
    except (AnalysisError, InputError):
        raise
    except ValueError as error:
        raise InputError(str(error)) from error


def echo_json(record: Any) -> None:
    """Write a record to stdout as indented JSON without NaN."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))
