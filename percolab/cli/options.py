"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

results_file = click.argument("results", type=click.Path(), metavar="RESULTS.h5")
MEASURE_HELP = "Beside the observables: sizes (n_s, s^3, s^4), gyration (radii), or both."
MODEL_HELP = (
    "bond, site, site-bond, or with one of its two probabilities fixed site-bond:site=0.9 or "
    "site-bond:bond=0.7.  [default: bond]"
)
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")


class MinSize(click.ParamType):
    """A smallest size, or "auto"."""

    name = "integer|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return an integer of at least 1, or "auto"."""
        if value == "auto":
            return value
        return click.IntRange(min=1).convert(value, param, ctx)


#: What --corrections stands for among the options of a fit.
CORRECTIONS: dict[str, dict[str, bool]] = {
    "none": {"correction": False},
    "b": {"mixed": False},
    "bc": {"mixed": True},
}


def fit_options(function):
    """Add the options of the threshold fit."""
    for option in (
        click.option("--omega", type=click.FloatRange(0, 10, min_open=True),
                     help="Exponent of the leading correction to scaling.  [default: 1 with an "
                     "open axis; on a torus 2 in two dimensions, 1.2 in three]"),
        click.option("--min-size", type=MinSize(),
                     help="Smallest L to use, or auto: the first fit that chi^2 does not reject, "
                     "of higher degree or with more corrections before a size is left out."),
        click.option("--degree", type=click.IntRange(1, 8),
                     help="Degree of the scaling polynomial.  [default: 3; auto tries 3 to 5]"),
        click.option("--corrections", type=click.Choice(sorted(CORRECTIONS)),
                     help="Corrections to scaling: none, b L^-omega, or bc: c (p - p_c) "
                     "L^(1/nu - omega) too.  [default: b; auto tries b and bc]"),
        click.option("--bootstrap", type=click.IntRange(min=0), default=200, show_default=True,
                     help="Bootstrap replicas over blocks; 0 takes the curvature error."),
        click.option("--observable", help="spanning_x, spanning_y, spanning_any, spanning_all ... "
                     "[default: along the last open axis]"),
    ):  # fmt: skip
        function = option(function)
    return function


def fit_of(
    results: Any,
    *,
    omega: float | None,
    min_size: int | Literal["auto"] | None,
    degree: int | None,
    corrections: str | None,
    bootstrap: int,
    observable: str | None,
):
    """Return the threshold fit with the options of :func:`fit_options`; bad ones are InputError."""
    from percolab.spanning import fit_results

    name = observable_of(results, observable)
    with one_line_errors():
        return fit_results(
            results,
            name,
            omega=omega,
            min_size=min_size,
            degree=degree,
            bootstrap=bootstrap,
            **CORRECTIONS.get(corrections or "", {}),
        )


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError about an option of a fit into an InputError."""
    from percolab.analysis import AnalysisError
    from percolab.toml_input import InputError

    try:
        yield
    except (AnalysisError, InputError):
        raise
    except ValueError as error:
        raise InputError(str(error)) from error


def observable_of(results: Any, observable: str | None) -> str:
    """Return a probability, the default if None is named; InputError for another observable."""
    from percolab.spanning import default_observable, probability_names
    from percolab.toml_input import InputError, nearest

    known = probability_names(results)
    name = observable if observable in known else observable or default_observable(results)
    if name not in known:
        # Where there is none at all, that is what is to be said.
        default_observable(results)
        raise InputError(f"--observable {name}: no spanning observable; {nearest(name, known)}")
    return name


def described(study: Any) -> str:
    """Return what a study samples in a few words: a graph with its numbers, a lattice by title."""
    from percolab.graph_structure import Graph

    item = study.lattice
    if not isinstance(item, Graph):
        return item.title
    ends = f", source of {item.num_sources}, target of {item.num_targets}"
    return f"{item.name}: {item.num_sites} sites, {item.num_bonds} bonds" + (
        ends if item.num_sources else ""
    )


def estimates_text(results: Any, *, bootstrap: int = 200) -> str:
    """Return the thresholds of every size alone as text, and the published one."""
    from percolab.analysis import estimate_table
    from percolab.spanning import estimates_of

    text = estimate_table(estimates_of(results, bootstrap=bootstrap))
    known = results.study.lattice.threshold(results.study.model)
    if known is None:
        return text
    return (
        f"{text}\n\npublished {known.value:.12g}  {known.expression}  ({known.reference}), of the "
        "infinite lattice: finite ones do not scale to it"
    )


def read_study(results: str, observable: str | None) -> Any:
    """Return stored results; InputError where they have no such observable, if one is named."""
    from percolab.storage import read_results

    stored = read_results(results)
    if observable is not None:
        observable_of(stored, observable)
    return stored


def write_figure(figure: Any, target: str | Path, *, quiet: bool) -> None:
    """Write a figure and say so, on stderr if quiet; InputError if it cannot be written."""
    from percolab.plots import save_figure
    from percolab.toml_input import InputError

    try:
        save_figure(figure, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    click.echo(f"figure in {target}", err=quiet)


def echo_json(record: Any) -> None:
    """Write a record to stdout as indented JSON without NaN."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))
