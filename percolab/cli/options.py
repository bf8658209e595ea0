"""Options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from percolab.cli.groups import F as F
from percolab.cli.groups import as_json as as_json
from percolab.cli.terminal import echo
from percolab.errors import AnalysisError, InputError, is_given, refuse_given
from percolab.lattices.shown import counted as counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from percolab.analysis.table_fit import TableFit
    from percolab.analysis.threshold import ThresholdFit
    from percolab.store.output_files import Kind
    from percolab.store.results import StoredResults
    from percolab.tables.given import GivenTable
    from percolab.tasks.study import Study

results_file = click.argument("results", type=click.Path(), metavar="RESULTS.h5")


def complete_study(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Complete the names of studies; where none begins so, the shell completes files."""
    from click.shell_completion import CompletionItem

    from percolab.tasks.study_library import study_names, study_summary

    names = [name for name in study_names() if name.startswith(incomplete)]
    completions = [CompletionItem(name, help=study_summary(name)) for name in names]
    return completions or [CompletionItem(incomplete, type="file")]


class WholeNumber(click.IntRange):
    """An integer in a range, called an integer in messages and help; 1e4 is one, too."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from percolab.tasks.values import expand_power

        given: Any = expand_power(value.strip()) if isinstance(value, str) else value
        return super().convert(given, param, ctx)


class Number(click.FloatRange):
    """A float in a range, called a float in messages and help; not NaN."""

    name = "float"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class Numbers(click.ParamType[tuple[Any, ...]]):
    """Numbers of one type with commas between them."""

    name = "numbers"

    def __init__(self, each: click.ParamType[Any]) -> None:
        self.each = each

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, tuple):
            return value
        return tuple(self.each.convert(part, param, ctx) for part in value.split(","))


class Window(click.ParamType[tuple[float, float]]):
    """Two numbers LOW,HIGH with 0 < LOW < HIGH < 1."""

    name = "low,high"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            low, high = map(float, value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not two numbers with a comma between them")
        if not 0 < low < high < 1:
            self.fail(f"{value!r}: it must be 0 < LOW < HIGH < 1")
        return low, high


def fit_options(function: F) -> F:
    for option in (
        click.option("--omega", type=Number(1e-6, 10),
                     help="Exponent of the leading correction to scaling.  [default: 1 with an "
                     "open axis; on a torus 2 in two dimensions, 1.2 in three; for a table 0.75, "
                     "1 and 1.5, averaged]"),
        click.option("--min-size", type=WholeNumber(min=1), help="Smallest L to use."),
        click.option("--degree", type=WholeNumber(1, 8),
                     help="Degree of the scaling polynomial.  [default: 3, 4 and 5, averaged]"),
        click.option("--window", type=Window(),
                     help="Range of the probability that is fitted.  [default: 0.1,0.9]"),
        click.option("--nu", type=click.Choice(["known", "free"]), default="known",
                     show_default=True, help="known: the fit of p_c takes 1/nu of the "
                     "universality class, where known, as a prior."),
        click.option("--priors", type=Number(1e-6, 1e6), default=1.0, show_default=True,
                     help="Scale the widths of all priors except that of 1/nu."),
        click.option("--bootstrap", type=WholeNumber(min=0), default=200, show_default=True,
                     help="Bootstrap replicas for exponents, collapses, and thresholds of single "
                     "sizes."),
        click.option("--observable", help="The probability to fit: spanning_x, spanning_any, "
                     "wrapping_x ...  [default: spanning along the last open axis; on a torus "
                     "wrapping around the last axis]"),
    ):  # fmt: skip
        function = option(function)
    return function


def table_options(function: F) -> F:
    for option in (
        click.option("--columns", metavar="ROLE=NAME,...",
                     help="For a table: names of the columns with size, x, count and total or mean "
                     "and error, and series: size=d,x=p,count=errors,total=shots."),
        click.option("--series", metavar="NAME", help="For a table: take this series alone."),
        click.option("--kappa", is_flag=True,
                     help="For a table: also fit kappa in y = L^kappa f, as for a magnetization."),
    ):  # fmt: skip
        function = option(function)
    return function


#: Options for tables alone, and those of other fits that tables take, or do not.
_TABLE_OPTIONS = ("columns", "series", "kappa")
_OF_TABLES = ("omega", "min_size", "degree", "priors", "kappa")
_NOT_OF_TABLES = ("observable", "window", "exponents", "quantities")


def without_table_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a fit of results; InputError where one for tables is given."""
    refuse(options, "for tables alone", *_TABLE_OPTIONS)
    return {name: value for name, value in options.items() if name not in _TABLE_OPTIONS}


def is_table(source: str) -> bool:
    from percolab.tables.given import SUFFIXES

    return Path(source).suffix.lower() in SUFFIXES


def fit_table_file(
    source: str, options: dict[str, Any]
) -> tuple[GivenTable, dict[str, TableFit | AnalysisError]]:
    """Return a table, and by series its fit or why it has none.

    InputError: an option that is not for tables.  AnalysisError: no series has a fit.
    """
    from percolab.analysis.table_fit import fit_series
    from percolab.tables.given import read_table

    own = without_defaults(options)
    refuse(own, "the fit of a table does not take it", "nu", *_NOT_OF_TABLES)
    table = read_table(source, options["columns"])
    given = {name: options[name] for name in _OF_TABLES if is_given(name, options[name])}
    names = list(table.series) if options["series"] is None else [options["series"]]
    fits: dict[str, TableFit | AnalysisError] = {}
    for name in names:
        try:
            fits[name] = fit_series(table.choose(name), **given)
        except AnalysisError as error:
            fits[name] = error
    failed = [fit for fit in fits.values() if isinstance(fit, AnalysisError)]
    if len(failed) == len(fits):
        raise failed[0]
    return table, fits


def fit_from_options(
    results: StoredResults, *, observable: str | None, bootstrap: int = 0, **options: Any
) -> ThresholdFit:
    """Return the threshold fit with the options of :func:`fit_options`; bad ones are InputError.

    bootstrap: of what is read off at p_c; the fit itself needs none.
    """
    from percolab.analysis.stored_fits import fit_results

    given = {name: value for name, value in options.items() if value is not None}
    return fit_results(results, observable, **given)


def published_lines(study: Study, value: float = 0.0, error: float = 0.0) -> list[str]:
    """Return the line on the published threshold if there is one, with a fit's distance from it."""
    from percolab.analysis.roots import known_threshold
    from percolab.analysis.value import Value, published_text

    known = known_threshold(study.structure, study.model)
    if known is None or not study.has_published_threshold:
        return []
    return [published_text(known, Value(value, error) if error > 0 else None)]


def described(study: Study) -> str:
    """Return what a study samples in a few words: a graph with its numbers, a lattice by title."""
    from percolab.lattices.graph import Graph

    graph = study.structure
    if not isinstance(graph, Graph):
        return graph.title
    ends = f", source of {graph.num_sources}"
    ends += f", target of {graph.num_targets}" if graph.num_targets else ""
    parts = f"{counted(graph.num_sites, 'site')}, {counted(graph.num_bonds, 'bond')}"
    return f"{graph.name}: {parts}{ends if graph.num_sources else ''}"


def estimates_answer(results: StoredResults, *, bootstrap: int = 200) -> tuple[Any, str]:
    """Return the thresholds of every size alone for JSON, and as text with the published one."""
    from percolab.analysis.stored_data import read_outbreaks
    from percolab.analysis.stored_fits import read_estimates
    from percolab.analysis.text import estimate_table, outbreak_line
    from percolab.lattices.ensemble import Ensemble

    sizes = read_estimates(results, bootstrap=bootstrap)
    texts = [estimate_table(sizes), *map(outbreak_line, read_outbreaks(results))]
    for line in published_lines(results.study):
        of = "of the infinite lattice, which finite ones do not approach"
        is_ensemble = isinstance(results.study.structure, Ensemble)
        texts.append(f"{line}, {'of infinitely many sites' if is_ensemble else of}")
    return [size.to_dict() for size in sizes], "\n\n".join(texts)


def read_study(results: str, options: Mapping[str, Any]) -> StoredResults:
    """Return stored results; InputError where they have not what the options of a fit name."""
    from percolab.analysis.stored_data import choose_observable
    from percolab.analysis.wrapping_fit import FIXED_FIT, search_options
    from percolab.store.results import read_results

    stored = read_results(results)
    if options["observable"] is not None:
        choose_observable(stored, options["observable"])
    if not stored.study.structure.is_scalable:
        refuse_scaling(options)
    if search_options(stored):
        refuse(options, FIXED_FIT, *_SCALING)
        refuse(without_defaults(options), FIXED_FIT, "nu", "priors")
    return stored


#: Options of a fit of several sizes.
_SCALING = ("omega", "min_size", "degree", "window", "exponents", "collapse", "quantities")


def refuse(given: Mapping[str, Any], reason: str, *names: str) -> None:
    """Raise InputError if one of these options is given, or any if none is named."""
    refuse_given(reason, **{name: given.get(name) for name in names or given})


def without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of a command that were given."""
    source = click.get_current_context().get_parameter_source
    given = (name for name in options if source(name) != ParameterSource.DEFAULT)
    return {name: options[name] for name in given}


def refuse_scaling(options: Mapping[str, Any]) -> None:
    """Raise InputError for an option of a fit of several sizes, where none scale."""
    refuse(options, "there is no fit of several sizes here", *_SCALING)


def input_files() -> list[Path]:
    """Return the files that the options and arguments of the running command name, to be read."""
    from percolab.configurations.array_files import split_name

    context = click.get_current_context(silent=True)
    files = []
    for name, value in context.params.items() if context else ():
        if name in _WRITTEN:
            continue
        texts = value if isinstance(value, tuple) else (value,)
        files += [split_name(text)[0] for text in texts if isinstance(text, str) and text]
    return files


#: Parameters that name what is written.
_WRITTEN = ("out", "html", "sizes", "plot", "plot_file", "json_file")


def output_file(out: str | Path | None, default: str | Path, kind: Kind | None = None) -> Path:
    """Return the file that a command writes, as --out names it, else a new one.

    Where there is no --out it is ``default``, or NAME-2 and so on if something else has that name.
    InputError: as :func:`percolab.store.output_files.check_output`.
    """
    from percolab.store.output_files import check_output, free_name

    if out is None:
        return free_name(default, kind, input_files())
    check_output(out, kind, input_files())
    return Path(out)


def check_target(
    out: str, what: str = "a figure", suffixes: Collection[str] = (), kind: Kind | None = None
) -> None:
    """Refuse a file that cannot be written before anything is computed; suffixes: of figures."""
    from percolab.figures import FORMATS
    from percolab.store.output_files import check_suffix

    check_suffix(out, suffixes or FORMATS, what)
    output_file(out, "", kind)


def write_figure(figure: Figure, target: str | Path, *, quiet: bool) -> None:
    from percolab.figures import save_figure

    try:
        save_figure(figure, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    echo(f"figure in {target}", err=quiet)


def echo_json(record: Any) -> None:
    echo(json.dumps(record, indent=2, allow_nan=False))


def write_answer(record: Any, text: str, *, as_json: bool) -> None:
    """Write a record to stdout as JSON, or in place of it the text for a reader."""
    if as_json:
        echo_json(record)
    else:
        echo(text)


@contextmanager
def exit_if_interrupted(out: str | Path) -> Iterator[None]:
    """End with the exit code of an interruption, and one line on what the results file has."""
    from percolab.run.stored import Interrupted

    try:
        yield
    except Interrupted as error:
        state = f"finished blocks are in {out}"
        if not error.stored:
            state = f"blocks finished since the last save of {out} are lost"
        echo(f"{error.reason}; {state}. Run the same command again to go on.", err=True)
        sys.exit(error.exit_code)
