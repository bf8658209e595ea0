"""percolab fit: thresholds and exponents from stored results, as tables or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from percolab.cli.answers import find_answers
from percolab.cli.options import (
    TABLE_OPTIONS,
    as_json,
    choose_observable,
    described,
    echo_json,
    estimates_text,
    fit_from_options,
    fit_options,
    fit_table_file,
    is_table,
    one_line_errors,
    published_lines,
    refuse,
    refuse_scaling,
    results_file,
    table_options,
    write_answer,
)
from percolab.cli.terminal import echo
from percolab.kernels.registry import load

if TYPE_CHECKING:
    from percolab.analysis import ThresholdFit
    from percolab.analysis.exponents import GivenThreshold
    from percolab.store.results import StoredResults

#: What an answer has besides the fit: values for JSON, and texts.
Part = tuple[dict[str, Any], list[str]]
#: Options of the fit of several quantities at once.
_JOINT = ("omega", "min_size", "degree", "nu", "priors")


@click.command()
@results_file
@fit_options
@click.option(
    "--exponents",
    is_flag=True,
    help="1/nu, beta/nu, gamma/nu, d_f and tau, and D_B, d_min and t/nu of what flows, read off at "
    "p_c, or at the only p; crossings of moment ratios.",
)
@click.option(
    "--collapse",
    is_flag=True,
    help="Data collapse of R, P_inf and chi: quality and the exponents that give it.",
)
@click.option(
    "--quantities",
    metavar="NAMES",
    help="p_c from several dimensionless quantities at once: "
    "wrapping_any,wrapping_axis,Q_1,Q_2,Q_B,s_2/s_1 ..., or all.",
)
@table_options
@as_json
def command(results: str, as_json: bool, quantities: str | None, **options: Any) -> None:
    """Estimate p_c with its error, 1/nu, the crossings of successive sizes and their drift.

    docs/analysis.md says what each number means.

    One model with every known correction is fitted under natural priors, and averaged over degrees
    and smallest sizes.  The error has a statistical and a systematic part.  --quantities fits
    wrapping or spanning probabilities and moment ratios together.

    Of a study by --method threshold, mean, median and width of T and the cell-to-cell thresholds
    follow.

    A graph and a Bethe lattice have no sizes that scale: of each size it is told where clusters
    are most critical.

    Of spins it is the transition: p_c, K or beta, and T, from wrapping (spanning) clusters and
    Binder's ratio, with y_t, y_h and z; and whether chains still depend on how they started.

    Of a file of percolab threshold it is p_c from the roots of P(two directions) - P(none wraps),
    in three dimensions and more from three wrapping probabilities, unless an option of the other
    fit is given.

    Of trees it is their weight per site, and how the path from side to side grows with L.

    In place of results it may be a table of anybody's data, .csv, .tsv, .txt or .dat: columns with
    the size L, x, and counts k of n or means with errors (docs/tables.md).
    """
    from percolab.analysis.root_text import asks_for_roots
    from percolab.analysis.wrapping_fit import asks_for_wrapping
    from percolab.store.results import read_results

    if is_table(results):
        _write_table_fits(results, as_json, options | {"quantities": quantities})
        return
    refuse(options, "for tables alone", *TABLE_OPTIONS)
    options = {name: value for name, value in options.items() if name not in TABLE_OPTIONS}
    stored = read_results(results)
    answers = find_answers(stored.study)
    if answers.scales and not stored.study.structure.is_scalable:
        refuse_scaling(options | {"quantities": quantities})
        _write_estimates(stored, as_json, options["observable"], options["bootstrap"])
        return
    others = _without_defaults(options, "bootstrap", "nu", "priors") | {"quantities": quantities}
    if all(value in (None, False) for value in others.values()):
        if asks_for_roots(stored):
            _write_roots(stored, as_json)
            return
        if asks_for_wrapping(stored):
            _write_wrapping(stored, as_json)
            return
    load(answers.fit)(stored, as_json, quantities, options)


def _write_table_fits(source: str, as_json: bool, options: dict[str, Any]) -> None:
    """Write the fit of every series of a table, or why it has none."""
    from percolab.analysis import AnalysisError, collapse_table
    from percolab.analysis.text import series_table

    table, fits = fit_table_file(source, options)
    records: list[dict[str, Any]] = []
    texts: list[str] = []
    for name, fit in fits.items():
        if isinstance(fit, AnalysisError):
            records.append({"name": name, "problem": str(fit)})
            texts.append(f"series {name}: {fit}")
            continue
        records.append(fit.to_dict())
        texts.append(series_table(fit))
        if options["collapse"]:
            found = fit.collapse(bootstrap=min(options["bootstrap"], 50))
            records[-1]["collapse"] = found.to_dict()
            texts.append(collapse_table([found], fit.axis))
    texts += [f"note: {note}" for note in table.notes]
    record = {"table": table.source, "notes": list(table.notes), "fits": records}
    write_answer(record, "\n\n".join(texts), as_json=as_json)


def write_threshold_fit(
    stored: StoredResults, as_json: bool, quantities: str | None, options: dict[str, Any]
) -> None:
    """Write the threshold and what else is requested."""
    from percolab.analysis import fit_table
    from percolab.analysis.stored_fits import only_threshold

    if quantities is not None:
        _write_quantity_fit(stored, as_json, quantities, options)
        return
    exponents, collapse = options.pop("exponents"), options.pop("collapse")
    if exponents and not collapse and (given := only_threshold(stored)) is not None:
        _write_exponents_at(stored, given, as_json, options)
        return
    name = choose_observable(stored, options["observable"])
    fit = fit_from_options(stored, **options)
    parts = [({}, [fit_table(fit)]), _samples(stored, name, options)]
    if exponents:
        parts.append(_exponents(stored, fit, options["bootstrap"]))
    if collapse:
        parts.append(
            _collapses(stored, name, fit.threshold, options["min_size"], options["bootstrap"])
        )
    texts = [text for _, part in parts for text in part]
    texts += published_lines(stored, fit.threshold, fit.threshold_error)
    record = fit.to_dict() | {key: value for part, _ in parts for key, value in part.items()}
    write_answer(record, "\n\n".join(texts), as_json=as_json)


def _write_roots(stored: StoredResults, as_json: bool) -> None:
    """Write p_c from the roots of all sizes."""
    from percolab.analysis.root_text import difference_text, root_record, root_table
    from percolab.analysis.roots import fit_roots

    study, fit = stored.study, fit_roots(stored)
    if as_json:
        echo_json(root_record(study, fit))
        return
    echo(f"{described(study)}, {study.model}: roots of {difference_text(study.model)} on tori")
    echo()
    echo(root_table(fit, study.structure, study.model))


def _write_wrapping(stored: StoredResults, as_json: bool) -> None:
    """Write p_c from the wrapping probabilities of all sizes."""
    from percolab.analysis.text import quantity_table
    from percolab.analysis.wrapping_fit import fit_wrapping

    study, fit = stored.study, fit_wrapping(stored)
    if as_json:
        echo_json({"lattice": study.structure.name, "model": study.model, **fit.to_dict()})
        return
    echo(f"{described(study)}, {study.model}: wrapping probabilities of tori in one fit")
    echo()
    echo(quantity_table(fit))
    for line in published_lines(stored, fit.threshold, fit.threshold_error):
        echo(line)


def _samples(stored: StoredResults, name: str, options: dict[str, Any]) -> Part:
    """Return the thresholds of single samples, where they are stored."""
    from percolab.analysis import sample_table
    from percolab.analysis.stored_fits import read_sample_thresholds

    shared = {key: options[key] for key in ("omega", "min_size")}
    found = read_sample_thresholds(stored, name, **shared)
    if found is None:
        return {}, []
    return {"sample_thresholds": found.to_dict()}, [sample_table(found)]


def _exponents(stored: StoredResults, fit: ThresholdFit, bootstrap: int) -> Part:
    """Return the exponents at p_c, and the crossings of moment ratios where there are any."""
    from percolab.analysis import exponent_table, ratio_table
    from percolab.analysis.stored_fits import compute_exponents, cross_ratios

    if fit.problem is not None:
        return {"exponents": None}, ["no exponents: they are read off at p_c"]
    found = compute_exponents(stored, fit, bootstrap=bootstrap)
    record, texts = {"exponents": found.to_dict()}, [exponent_table(found)]
    ratios = cross_ratios(stored, fit, bootstrap=bootstrap)
    if ratios is not None:
        record["ratio_crossings"] = ratios.to_dict()
        texts.append(ratio_table(ratios))
    return record, texts


def _write_exponents_at(
    stored: StoredResults, given: GivenThreshold, as_json: bool, options: dict[str, Any]
) -> None:
    """Write the exponents of a study at one p, which has no fit of p_c; refuse its options."""
    from percolab.analysis import exponent_table
    from percolab.analysis.stored_fits import compute_exponents

    refuse(_without_defaults(options, "bootstrap", "nu", "priors"), "there is one p, so no fit")
    found = compute_exponents(stored, given, bootstrap=options["bootstrap"])
    text = f"at p = {given.threshold:.10g}, which is taken for p_c without an error:"
    record = {"threshold": given.threshold, "exponents": found.to_dict()}
    write_answer(record, f"{text}\n\n{exponent_table(found)}", as_json=as_json)


def _collapses(
    stored: StoredResults, name: str, p_c: float, min_size: int | None, bootstrap: int
) -> Part:
    """Return the collapses of R and, where cluster sizes are stored, of P_inf and chi.

    These two are collapsed at the p_c of the fit: a free one takes in their corrections to scaling,
    which are larger than those of R, without a trace in S.
    """
    from percolab.analysis import collapse_table
    from percolab.analysis.stored_fits import compute_collapse

    clusters = [] if stored.study.kind.codec.holds_thresholds else ["largest", "chi"]
    # A replica of a collapse is a search, so there are fewer of them.
    options: dict[str, Any] = {"min_size": min_size, "bootstrap": min(bootstrap, 50)}
    with one_line_errors():
        found = [
            compute_collapse(stored, item, threshold=p_c if item in clusters else None, **options)
            for item in [name, *clusters]
        ]
    return {"collapses": [item.to_dict() for item in found]}, [collapse_table(found)]


def _write_quantity_fit(
    stored: StoredResults, as_json: bool, quantities: str, options: dict[str, Any]
) -> None:
    """Write the joint fit of dimensionless quantities; InputError for an option of the other fit.

    quantities: names with commas.
    """
    from percolab.analysis.stored_fits import fit_quantities
    from percolab.analysis.text import quantity_table

    refuse(_others(options), "not with --quantities; leave one of them out")
    found = fit_quantities(stored, _split(quantities), **_joint(options))
    texts = [quantity_table(found)]
    texts += published_lines(stored, found.threshold, found.threshold_error)
    write_answer(found.to_dict(), "\n\n".join(texts), as_json=as_json)


def write_spin_fit(
    stored: StoredResults, as_json: bool, quantities: str | None, options: dict[str, Any]
) -> None:
    """Write the transition of spins; InputError for an option that only percolation has.

    quantities: names with commas, None for the default ones.
    """
    from percolab.analysis.spin_fit import fit_spins
    from percolab.analysis.text import spin_table

    refuse(_others(options), "the fit of spins does not take it; leave it out")
    found = fit_spins(stored, _split(quantities or "all"), **_joint(options))
    write_answer(found.to_dict(), spin_table(found), as_json=as_json)


def write_trees(
    stored: StoredResults, as_json: bool, quantities: str | None, options: dict[str, Any]
) -> None:
    """Write the weights and paths of trees; InputError for an option of another fit."""
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees

    given = _without_defaults(options, "bootstrap", "nu", "priors") | {"quantities": quantities}
    refuse(given, "trees have no such fit; leave it out")
    found = fit_trees(stored)
    write_answer(
        found.to_dict(), f"{described(stored.study)}\n{tree_table(found)}", as_json=as_json
    )


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _joint(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _JOINT}


def _others(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a joint fit does not take."""
    given = _without_defaults(options, "bootstrap")
    return {name: value for name, value in given.items() if name not in _JOINT}


def _without_defaults(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options of a command without these, where they were not given."""
    source = click.get_current_context().get_parameter_source
    return {
        name: value
        for name, value in given.items()
        if name not in names or source(name) != ParameterSource.DEFAULT
    }


def _write_estimates(
    stored: StoredResults, as_json: bool, observable: str | None, bootstrap: int
) -> None:
    """Write the thresholds of every size alone."""
    from percolab.analysis.stored_fits import read_estimates

    if observable is not None:
        choose_observable(stored, observable)
    if as_json:
        echo_json([size.to_dict() for size in read_estimates(stored, bootstrap=bootstrap)])
        return
    echo(described(stored.study))
    echo(estimates_text(stored, bootstrap=bootstrap))
