"""percolab fit: thresholds and exponents from stored results, as tables or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli import options as shared
from percolab.cli.answers import find_answers
from percolab.cli.groups import Command
from percolab.errors import AnalysisError, InputError, is_given
from percolab.kernels.registry import load

if TYPE_CHECKING:
    from percolab.analysis.exponents import GivenThreshold
    from percolab.analysis.stored_fits import Prior
    from percolab.analysis.threshold import ThresholdFit
    from percolab.store.results import StoredResults

#: What a fit answers as JSON, and as text.
Answer = tuple[Any, str]
#: What an answer has besides the fit: values for JSON, and texts.
Part = tuple[dict[str, Any], list[str]]
#: Options of the fit of several quantities at once.
_JOINT = ("omega", "min_size", "degree", "nu", "priors")


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="RESULTS.h5...")
@shared.fit_options
@click.option(
    "--exponents",
    is_flag=True,
    help="Exponents at p_c, or at the only p: 1/nu, beta/nu, gamma/nu, d_f and tau, and for flow "
    "D_B, d_min and t/nu; crossings of moment ratios.",
)
@click.option(
    "--collapse",
    is_flag=True,
    help="Data collapse of R, P_inf and chi: exponents with the best quality.",
)
@click.option(
    "--quantities",
    metavar="NAMES",
    help="Fit p_c to several dimensionless quantities at once: "
    "wrapping_any,wrapping_axis,Q_1,Q_2,Q_B,s_2/s_1 ..., or all.",
)
@click.option(
    "--universal",
    type=click.Choice(["known", "free"]),
    help="known: published wrapping probabilities at p_c are priors, with --quantities and for "
    "files of percolab threshold.  [default: as given to percolab threshold, otherwise free]",
)
@shared.table_options
@shared.as_json
def command(
    files: tuple[str, ...],
    as_json: bool,
    quantities: str | None,
    universal: Prior | None,
    **options: Any,
) -> None:
    """Estimate p_c with its error, 1/nu, the crossings of successive sizes and their drift.

    docs/analysis.md explains each number.

    One model with every known correction is fitted under natural priors, and averaged over degrees
    and smallest sizes.  The error has a statistical and a systematic part.  --quantities fits
    wrapping or spanning probabilities and moment ratios together.

    A study by --method threshold also has mean, median and width of T, and cell-to-cell thresholds.

    Graphs and Bethe lattices have no sizes that scale: the result is the p at which clusters of
    each size are most critical.

    For spins the result is the transition: p_c, K or beta, and T, from wrapping (spanning) clusters
    and Binder's ratio, with y_t, y_h and z; and whether chains still depend on their start.

    For a file of percolab threshold p_c comes from the roots of P(two directions) - P(none wraps),
    in three dimensions and more from three wrapping probabilities.  This fit takes --min-size and
    --priors, in three dimensions and more also --nu, --omega, --degree and --universal; any other
    option makes a different fit of the same samples, with a note.

    Several such files in three dimensions and more, such as bonds and sites of one lattice, have
    equal wrapping probabilities at p_c.  They are fitted together, and each gets its p_c; this fit
    takes --universal and --min-size.

    For trees the result is the weight per site, and how the path from side to side grows with L.

    A table of your own data (.csv, .tsv, .txt or .dat) can replace the results: columns with the
    size L, x, and counts k of n or means with errors (docs/tables.md).
    """
    from percolab.analysis.wrapping_fit import search_options
    from percolab.store.results import read_results

    options["quantities"] = quantities
    if len(files) > 1:
        more = shared.without_defaults(options)
        min_size = more.pop("min_size", None)
        shared.refuse(more, "the fit of several files does not take it; leave it out")
        if table := next(filter(shared.is_table, files), None):
            raise InputError(f"{table}: is a table; fit it without other files")
        answer = _fit_several(files, universal=universal, min_size=min_size)
        shared.write_answer(*answer, as_json=as_json)
        return
    (results,) = files
    if shared.is_table(results):
        shared.refuse({"universal": universal}, "a table has no such quantities")
        shared.write_answer(*_fit_table(results, options), as_json=as_json)
        return
    options = shared.without_table_options(options)
    stored = read_results(results)
    answers = find_answers(stored.study)
    given = shared.without_defaults(options) | {"universal": universal}
    replicas = {"bootstrap": given.pop("bootstrap", None)}
    given = {name: value for name, value in given.items() if is_given(name, value)}
    of_search = search_options(stored)
    others = [name for name in given if name not in of_search]
    if answers.scales and not stored.study.structure.is_scalable:
        answer = _estimate(stored, options)
    elif of_search and not others:
        shared.refuse(replicas, "p_c of percolab threshold has its error without replicas")
        answer = _fit_searched(stored, given)
    else:
        if quantities is None:
            shared.refuse({"universal": universal}, "it is for --quantities")
        else:
            options["universal"] = universal
        answer = load(answers.fit)(stored, options)
        # Of several quantities it is the fit that percolab threshold makes in three dimensions.
        if of_search and (quantities is None or "universal" not in of_search):
            answer = _note_other_fit(answer, others)
    shared.write_answer(*answer, as_json=as_json)


def _note_other_fit(answer: Answer, others: list[str]) -> Answer:
    """Add to a fit of a file of percolab threshold that it is not the one of that command."""
    (record, text), names = answer, ", ".join("--" + name.replace("_", "-") for name in others)
    note = f"this fit is not that of percolab threshold, which has no {names}"
    return record | {"notes": [*record.get("notes", []), note]}, f"{text}\n\nnote: {note}"


def _fit_table(source: str, options: dict[str, Any]) -> Answer:
    from percolab.analysis.text import collapse_table, series_table

    table, fits = shared.fit_table_file(source, options)
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
            collapse = fit.collapse(bootstrap=min(options["bootstrap"], 50))
            records[-1]["collapse"] = collapse.to_dict()
            texts.append(collapse_table([collapse], fit.axis))
    texts += [f"note: {note}" for note in table.notes]
    record = {"table": table.source, "notes": list(table.notes), "fits": records}
    return record, "\n\n".join(texts)


def _fit_searched(stored: StoredResults, options: dict[str, Any]) -> Answer:
    """Return p_c of ``percolab threshold``."""
    from percolab.analysis.roots import RootFit, difference_text, threshold_record
    from percolab.analysis.text import describe_fit
    from percolab.analysis.wrapping_fit import fit_searched

    study, published = stored.study, list[str]()
    fit = fit_searched(stored, **options)
    if isinstance(fit, RootFit):
        way = f"roots of {difference_text(study.model)} on tori"
    else:
        way = "wrapping probabilities of tori in one fit"
        published = shared.published_lines(study, fit.threshold, fit.threshold_error)
    head = f"{shared.described(study)}, {study.model}: {way}"
    return threshold_record(study, fit), "\n".join([head, "", describe_fit(fit, study), *published])


def _fit_several(files: tuple[str, ...], **options: Any) -> Answer:
    """Return p_c of several files of ``percolab threshold`` that share wrapping probabilities."""
    from percolab.analysis.shared_fit import fit_shared
    from percolab.analysis.text import shared_table
    from percolab.store.results import read_results

    named = [(name, read_results(name)) for name in files]
    fit = fit_shared(named, **options)
    published = [
        f"{own.name}: {line}"
        for own, (_, stored) in zip(fit.files, named, strict=True)
        for line in shared.published_lines(
            stored.study, own.p_c.value, 0.0 if fit.problem else own.p_c.error
        )
    ]
    head = "wrapping probabilities of tori, equal at p_c in all files, in one fit"
    return fit.to_dict(), "\n".join([head, "", shared_table(fit), "", *published]).rstrip()


def _estimate(stored: StoredResults, options: dict[str, Any]) -> Answer:
    from percolab.analysis.stored_data import choose_observable

    shared.refuse_scaling(options)
    if options["observable"] is not None:
        choose_observable(stored, options["observable"])
    record, text = shared.estimates_answer(stored, bootstrap=options["bootstrap"])
    return record, f"{shared.described(stored.study)}\n{text}"


def fit_probability(stored: StoredResults, options: dict[str, Any]) -> Answer:
    from percolab.analysis.stored_data import choose_observable
    from percolab.analysis.stored_fits import only_threshold, read_sample_thresholds
    from percolab.analysis.text import fit_table, sample_table

    if options["quantities"] is not None:
        return _fit_quantities(stored, options)
    not_of_fit = ("exponents", "collapse", "quantities")
    own = {name: value for name, value in options.items() if name not in not_of_fit}
    only = only_threshold(stored) if options["exponents"] and not options["collapse"] else None
    if only is not None:
        return _find_exponents_at(stored, only, own)
    name = choose_observable(stored, options["observable"])
    fit = shared.fit_from_options(stored, **own)
    record, texts = fit.to_dict(), [fit_table(fit)]
    keys = {key: options[key] for key in ("omega", "min_size")}
    samples = read_sample_thresholds(stored, name, **keys)
    if samples is not None:
        record["sample_thresholds"] = samples.to_dict()
        texts.append(sample_table(samples))
    if options["exponents"]:
        more, lines = _find_exponents(stored, fit, options["bootstrap"])
        record, texts = record | more, texts + lines
    if options["collapse"]:
        more, lines = _collapse(stored, name, fit, options)
        record, texts = record | more, texts + lines
    texts += shared.published_lines(stored.study, fit.threshold, fit.threshold_error)
    return record, "\n\n".join(texts)


def _find_exponents(stored: StoredResults, fit: ThresholdFit, bootstrap: int) -> Part:
    """Return the exponents at p_c, and the crossings of moment ratios where there are any."""
    from percolab.analysis.stored_fits import compute_exponents, cross_ratios
    from percolab.analysis.text import exponent_table, ratio_table

    if fit.problem is not None:
        return {"exponents": None}, ["no exponents, as they need p_c"]
    exponents = compute_exponents(stored, fit, bootstrap=bootstrap)
    record, texts = {"exponents": exponents.to_dict()}, [exponent_table(exponents)]
    ratios = cross_ratios(stored, fit, bootstrap=bootstrap)
    if ratios is not None:
        record["ratio_crossings"] = ratios.to_dict()
        texts.append(ratio_table(ratios))
    return record, texts


def _collapse(stored: StoredResults, name: str, fit: ThresholdFit, options: dict[str, Any]) -> Part:
    """Return the collapses of R and, where cluster sizes are stored, of P_inf and chi.

    These two are collapsed at the p_c of the fit: a free one takes in their corrections to scaling,
    which are larger than those of R, without a trace in S.
    """
    from percolab.analysis.stored_fits import compute_collapse
    from percolab.analysis.text import collapse_table
    from percolab.analysis.value import Value

    thresholds: dict[str, Value | None] = {name: None}
    if "largest" in (column.name for column in stored.columns()):
        p_c = Value(fit.threshold, fit.threshold_error)
        thresholds |= dict.fromkeys(("largest", "chi"), p_c)
    # A replica of a collapse is a search, so there are fewer of them.
    keys: dict[str, Any] = {"bootstrap": min(options["bootstrap"], 50)}
    keys["min_size"] = options["min_size"]
    collapses = [
        compute_collapse(stored, each, threshold=at, **keys) for each, at in thresholds.items()
    ]
    record = {"collapses": [collapse.to_dict() for collapse in collapses]}
    return record, [collapse_table(collapses)]


def _find_exponents_at(
    stored: StoredResults, given: GivenThreshold, options: dict[str, Any]
) -> Answer:
    """Return the exponents of a study at one p, which has no fit of p_c; refuse its options."""
    from percolab.analysis.stored_fits import compute_exponents
    from percolab.analysis.text import exponent_table

    shared.refuse(shared.without_defaults(options), "nothing is fitted, as there is only one p")
    exponents = compute_exponents(stored, given, bootstrap=options["bootstrap"])
    text = f"at p = {given.threshold:.10g}, which is taken for p_c without an error:"
    record = {"threshold": given.threshold, "exponents": exponents.to_dict()}
    return record, f"{text}\n\n{exponent_table(exponents)}"


def _fit_quantities(stored: StoredResults, options: dict[str, Any]) -> Answer:
    from percolab.analysis.stored_fits import fit_quantities
    from percolab.analysis.text import quantity_table
    from percolab.analysis.wrapping_fit import asks_for_wrapping, fit_wrapping

    universal = options.pop("universal")
    names, own = _read_joint(options, "not with --quantities; leave one of them out")
    if asks_for_wrapping(stored):
        fit = fit_wrapping(stored, universal, names, **own)
    else:
        fit = fit_quantities(stored, names, universal=universal or "free", **own)
    published = shared.published_lines(stored.study, fit.threshold, fit.threshold_error)
    return fit.to_dict(), "\n\n".join([quantity_table(fit), *published])


def fit_transition(stored: StoredResults, options: dict[str, Any]) -> Answer:
    from percolab.analysis.spin_fit import fit_spins
    from percolab.analysis.stored_spins import thermal_records
    from percolab.analysis.text import spin_table

    if options["exponents"]:
        raise InputError(
            "--exponents: the fit of spins has y_t = 1/nu, y_h, beta/nu, gamma/nu and z without "
            "it; leave it out"
        )
    names, own = _read_joint(options, "the fit of spins does not take it; leave it out")
    fit = fit_spins(stored, names, **own)
    return fit.to_dict() | {"thermal_means": thermal_records(stored)}, spin_table(fit)


def fit_tree_means(stored: StoredResults, options: dict[str, Any]) -> Answer:
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees

    shared.refuse(shared.without_defaults(options), "trees have no such fit; leave it out")
    fit = fit_trees(stored)
    return fit.to_dict(), f"{shared.described(stored.study)}\n{tree_table(fit)}"


def _read_joint(options: dict[str, Any], reason: str) -> tuple[list[str], dict[str, Any]]:
    """Return the quantities of a joint fit, all where none is named, and its options.

    InputError: an option that it does not take.
    """
    others, taken = shared.without_defaults(options), ("quantities", *_JOINT)
    shared.refuse({name: value for name, value in others.items() if name not in taken}, reason)
    names = ("all" if options["quantities"] is None else options["quantities"]).split(",")
    return [name.strip() for name in names], {name: options[name] for name in _JOINT}
