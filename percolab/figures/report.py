"""A report: one HTML page with a study's figures, fits, methods and provenance.

The page is self-contained: figures are inline SVG, and there are no scripts and no links to other
files.  All text is escaped, since a name in a results file may contain anything.  Equal results
give equal pages, so the only dates in a page are those of the runs.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.roots import RootFit, coupling_rows, fit_roots, known_threshold
from percolab.analysis.spin_fit import SpinFit
from percolab.analysis.stored_data import probability_names
from percolab.analysis.stored_fits import read_estimates
from percolab.analysis.text import describe_fit, estimate_table, fit_table
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.trees import fit_trees
from percolab.analysis.value import format_with_error
from percolab.analysis.wrapping_fit import fit_wrapping
from percolab.errors import AnalysisError, InputError
from percolab.figures import svg_text
from percolab.figures.kinds import KINDS, StudyFigures
from percolab.figures.kinds.clusters import PANELS
from percolab.figures.math_text import math_text, symbol_text
from percolab.figures.page import (
    PageBlock,
    PageFigure,
    Section,
    answer,
    formula,
    heading,
    mathematics,
    page,
    paragraph,
    preformatted,
    table,
)
from percolab.figures.study_kinds import find_in_figures
from percolab.figures.study_view import find_or_problem, found
from percolab.lattices.graph import TERMINALS
from percolab.store.results import StoredResults
from percolab.tasks.study import SAMPLE_VERSION

_FIT_HEADER = (
    "observable", "p_c", "statistical", "systematic", "p_c of the drift", "1/nu", "value at p_c",
    "theory", "sigma away", "smallest L", "chi2/dof", "p-value",
)  # fmt: skip


def report_page(
    results: StoredResults,
    *,
    name: str,
    checksum: str,
    fitted: Callable[[str], ThresholdFit],
    observable: str | None = None,
    bootstrap: int = 200,
) -> tuple[str, dict[str, Any]]:
    """Return the page of a study, and all numbers of its fits and figures.

    name: of the results file.  checksum: its SHA-256 in hexadecimal.  fitted: returns the fit of a
    spanning observable, or raises AnalysisError.  observable: for the figures, by default along the
    last open axis.  bootstrap: replicas for the thresholds of single sizes.
    """
    study = results.study
    names = [] if find_in_figures(results).no_curve else probability_names(results)
    fits = {name: find_or_problem(partial(fitted, name), AnalysisError) for name in names}
    figures = StudyFigures(results, lambda: found(fits[figures.name]), observable, bootstrap)
    pictures, absent, drawn = _figures(figures)
    sections = [
        Section("study", "Study", [_study(results)]),
        Section("fits", "Thresholds and fits", _fits(figures, fits, bootstrap)),
        Section("figures", "Figures", absent, pictures),
        Section("samples", "Samples", [_samples(figures)]),
        Section("methods", "Methods", _methods(results)),
        Section("provenance", "Provenance", _provenance(results, name, checksum)),
    ]
    model = study.draw
    kind = (
        model.title.replace("$", "") if model.chains else f"{study.model.capitalize()} percolation"
    )
    title = f"{kind}, {study.structure.title}"
    numbers = {
        "file": name,
        "sha256": checksum,
        "study": study.description(),
        "fits": {key: fit if isinstance(fit, str) else fit.to_dict() for key, fit in fits.items()},
        "figures": drawn,
    }
    return page(title, summarize_result(figures, bootstrap), sections), numbers


def summarize_result(figures: StudyFigures, bootstrap: int) -> list[PageBlock]:
    """Return the result in one line: p_c next to the published p_c, or only the latter.

    bootstrap: replicas for the thresholds of a graph.
    """
    from markupsafe import Markup

    if figures.of_kind.overview in _RESULTS:
        find, answer_of = _RESULTS[figures.of_kind.overview]
        try:
            return answer_of(figures, find(figures))
        except AnalysisError:
            return _make_notes(figures.notes) if figures.model.chains else []
    known = figures.study.structure.threshold(figures.study.model)
    published, infinite = "", []
    if known is not None and figures.study.has_published_threshold:
        named = known.expression or "numerical"
        published = Markup("published {}, {} ({})").format(
            f"{known.value:.12g}", _expression(named), known.reference
        )
        about = Markup("Threshold of the infinite lattice: {}").format(published)
        infinite = [paragraph(about)]
    try:
        if not figures.study.structure.is_scalable:
            return [*_summarize_graph(figures, bootstrap), *infinite]
        fit = figures.fit
    except (AnalysisError, InputError):
        return infinite
    notes = _make_notes(fit.notes)
    if fit.problem is not None:
        return [answer(fit.problem), *infinite, *notes]
    line = mathematics(f"p_c = {format_with_error(fit.threshold, fit.threshold_error)}")
    if known is not None:
        away = (fit.threshold - known.value) / fit.threshold_error
        line += Markup("; {}, {} sigma away").format(published, f"{away:+.1f}")
    return [answer(line), *notes]


def _summarize_graph(figures: StudyFigures, bootstrap: int) -> list[PageBlock]:
    """Return the threshold of the largest size: its median if it has one, then other measures."""
    largest = read_estimates(figures.results, bootstrap=bootstrap)[-1]
    known = [estimate for estimate in largest.estimates if np.isfinite(estimate.p)]
    # The median of T belongs to the source and target that were requested.
    known.sort(key=lambda estimate: estimate.name != "median")
    values = [f"{format_with_error(each.p, each.error)}, {each.meaning}" for each in known]
    which = f" at L = {largest.L}" if largest.num_sites != largest.L else ""
    others = [paragraph(f"By other measures{which}: {'; '.join(values[1:])}.")]
    return [*(answer(f"p = {value}") for value in values[:1]), *(others if values[1:] else [])]


def _answer_transition(figures: StudyFigures, fit: SpinFit) -> list[PageBlock]:
    temperature, error = fit.temperature
    value = f"about {temperature:.4g}" if error is None else format_with_error(temperature, error)
    line = f"k_B T_c / J = {value}"
    known = figures.critical_temperature
    if known is not None:
        line += f"; published {known[0]:.12g} {known[1]}"
    return [answer(line), *_make_notes(figures.notes)]


def _answer_threshold(figures: StudyFigures, fit: RootFit | QuantityAnalysis) -> list[PageBlock]:
    """Return p_c, and for spins the couplings, with the published p_c."""
    notes = _make_notes(fit.notes)
    if fit.problem is not None:
        return [answer(fit.problem), *notes]
    study, value = figures.study, fit.p_c
    line = mathematics(f"p_c = {value}")
    for name, text, _ in coupling_rows(value, study.model):
        line += ", " + mathematics(f"{name} = {text}")
    known = known_threshold(study.structure, study.model)
    if known is not None:
        away = (value.value - known.value) / value.error
        line += f"; published {known.value:.12g} ({known.reference}), {away:+.1f} sigma away"
    return [answer(line), *notes]


def _make_notes(notes: Iterable[str]) -> list[PageBlock]:
    return [paragraph(f"Note: {note}") for note in notes]


#: For studies without the fit of one probability, by the figure of all sizes: fit and result.
_RESULTS: dict[str, tuple[Callable[[StudyFigures], Any], Callable[..., list[PageBlock]]]] = {
    "roots": (lambda figures: fit_roots(figures.results), _answer_threshold),
    "crossings": (lambda figures: fit_wrapping(figures.results), _answer_threshold),
    "binder": (lambda figures: figures.spin_fit, _answer_transition),
    "wrapping": (lambda figures: figures.spin_fit, _answer_transition),
    "tree": (
        lambda figures: fit_trees(figures.results),
        lambda _, fit: [answer(f"weight of the tree per site: {fit.limit}")] if fit.limit else [],
    ),
}


def _study(results: StoredResults) -> PageBlock:
    study = results.study
    p = {"pilot": "placed by a pilot for each size", "all": "exact threshold of every sample"}
    shown = study.description()["p"]
    given = p[shown] if isinstance(shown, str) else ", ".join(f"{x:g}" for x in shown)
    return table(
        (),
        [
            ("lattice", f"{study.structure.name}: {study.structure.title}"),
            ("model", f"{study.model}; p is the {study.draw.varying}"),
            ("clusters span", "from the source to the target")
            if TERMINALS in study.boundary
            else ("boundary along each axis", ", ".join(study.boundary) or "none"),
            ("L", ", ".join(map(str, results.sizes))),
            ("p", given),
            ("method", study.method),
            ("seed, generator", ", ".join([*map(str, results.seeds), study.rng])),
            ("sample version", str(SAMPLE_VERSION)),
            ("digest of the lattice", study.structure.digest),
        ],
    )


def _fits(
    figures: StudyFigures, fits: dict[str, ThresholdFit | str], bootstrap: int
) -> list[PageBlock]:
    try:
        if figures.of_kind.overview in _RESULTS:
            fit = _RESULTS[figures.of_kind.overview][0](figures)
            return [preformatted(describe_fit(fit, figures.study))]
        if not figures.study.structure.is_scalable:
            estimates = read_estimates(figures.results, bootstrap=bootstrap)
            return [preformatted(estimate_table(estimates))]
    except AnalysisError as error:
        return [paragraph(str(error))]
    if not fits:
        return [paragraph("There is no probability that p_c could be read off.")]
    rows = [_fit_row(name, fit) for name, fit in fits.items() if not isinstance(fit, str)]
    missing = [f"{name}: no threshold: {fit}" for name, fit in fits.items() if isinstance(fit, str)]
    parts = [table(_FIT_HEADER, rows)] if rows else []
    if len(rows) > 1:
        parts.append(paragraph("All rows are of the same samples, so they are not independent."))
    parts += [paragraph(line) for line in missing]
    if not isinstance(figures.fit_or_problem, str):
        parts.append(heading(f"The fit of {figures.name} in full"))
        parts.append(preformatted(fit_table(figures.fit)))
    return parts + _exponents(figures)


def _expression(text: str) -> Any:
    """Return an expression as mathematics, or unchanged if it is not one."""
    written = math_text(text)
    return formula(written.strip("$")) if written.startswith("$") else text


def _known(known: Known) -> Any:
    """Return a published value as a cell of a table, with its source."""
    from markupsafe import Markup

    value = _expression(known.expression or f"{known.value:.6g}")
    return Markup("{} ({})").format(value, known.reference)


def _symbol(symbol: str) -> Any:
    letter, _, index = symbol.partition("_")
    return formula(symbol_text(symbol)) if f"{letter}{index}".isalnum() else mathematics(symbol)


def _fit_row(name: str, fit: ThresholdFit) -> tuple[str, ...]:
    drift, quality, theory = fit.by_size.drift, fit.chi_square, fit.known_probability
    value = format_with_error(fit.threshold, fit.threshold_error)
    parts = f"{fit.statistical_error:.2g}", f"{fit.systematic_error:.2g}"
    return (
        name,
        *((value, *parts) if fit.problem is None else ("-", "-", "-")),
        format_with_error(drift.threshold, drift.threshold_error) if drift is not None else "-",
        format_with_error(fit.y_t, fit.y_t_error),
        format_with_error(fit.critical_probability, fit.critical_probability_error),
        f"{theory.value:.6g} ({theory.reference})" if theory is not None else "-",
        f"{fit.critical_probability_z:+.1f}" if np.isfinite(fit.critical_probability_z) else "-",
        str(min(fit.sizes)),
        f"{quality.value:.1f}/{quality.dof}",
        f"{quality.p_value:.2g}" if quality.dof > 0 else "-",
    )


def _exponents(figures: StudyFigures) -> list[PageBlock]:
    if figures.exponents is None:
        return []
    rows = []
    for each in figures.exponents.exponents:
        known = _known(each.known) if each.known else "-"
        away = f"{each.difference:+.1f}" if np.isfinite(each.difference) else "-"
        name, source = mathematics(each.name), mathematics(each.source)
        rows.append((name, str(each.result), source, known, away))
    header = ("exponent", "value", "read off", "known", "sigma away")
    notes = _make_notes(figures.exponents.notes)
    return [heading("Exponents at p_c"), table(header, rows), *notes]


def _figures(figures: StudyFigures) -> tuple[list[PageFigure], list[PageBlock], dict[str, Any]]:
    """Return all figures that the results give, the reasons for missing ones, and the numbers."""
    from markupsafe import Markup

    pictures: list[PageFigure] = []
    numbers, absent = {}, []
    for kind, declared in KINDS.items():
        problem = figures.problem(kind)
        if problem is not None:
            absent.append((kind, problem))
            continue
        figure, numbers[kind] = figures.draw(kind)
        name = kind.capitalize().replace("_", " ")
        seen = f"{name}: {declared.alt_text(numbers[kind])}"
        drawn = Markup(svg_text(figure, kind))
        pictures.append(PageFigure(kind, name, declared.meaning, declared.errors, seen, drawn))
    missing = [table(("not drawn", "because"), absent)] if absent else []
    return pictures, missing, numbers


def _samples(figures: StudyFigures) -> PageBlock:
    rows = []
    for stored in figures.measured():
        task, counts = stored.task, (stored.num_blocks, stored.num_samples)
        grid = find_in_figures(task).grid
        if task.p:
            grid = f"{len(task.p)}: {task.p[0]:g} ... {task.p[-1]:g}"
        rows.append((task.size, task.num_sites, task.seed, grid, *counts, task.id))
    return table(("L", "sites N", "seed", "p", "blocks", "samples", "task"), rows)


def _methods(results: StoredResults) -> list[PageBlock]:
    study, columns = results.study, results.columns()
    of_kind, codec = find_in_figures(results), study.kind.codec
    own = columns if columns and codec.holds_columns else study.observables
    observables = [
        (column.name, _symbol(column.symbol), column.meaning, column.unit)
        for column in own
        if not codec.holds_thresholds or column.name.startswith("spanning")
    ]
    header = ("observable", "symbol", "meaning for a single sample", "unit")
    parts = [paragraph(of_kind.describe_sample(study)), table(header, observables)]
    if of_kind.has_means:
        drawn = [
            (name, formula(label.partition("$")[2].rpartition("$")[0]), meaning)
            for name, (label, _, meaning) in PANELS.items()
        ]
        text = "From these the figures draw, as means over samples, N being all sites:"
        parts += [paragraph(text), table(("mean", "symbol", "meaning"), drawn)]
    return [*parts, *(paragraph(text) for text in of_kind.errors)]


def _provenance(results: StoredResults, name: str, checksum: str) -> list[PageBlock]:
    runs, machines = [], set()
    for run in results.runs:
        known = defaultdict(lambda: "?", run)
        used = (f"{known['device']}, {known['device_name']}",
                f"{known['labeler']}, workers: {known['workers']}")  # fmt: skip
        ends = (f"{run.get('seconds', 0.0):.1f}", sum(run["blocks"].values()))
        runs.append((run["started"], shlex.join(map(str, run.get("command", ()))), *used, *ends))
        versions = (f"{key} {value}" for key, value in dict(run.get("versions", {})).items())
        machines.add((f"{known['processor']}, {known['system']}", ", ".join(versions)))
    parts = [table((), [("results file", name), ("SHA-256", checksum)])]
    if runs:
        header = ("started", "command", "device", "labeler", "seconds", "blocks")
        parts += [table(header, runs), table(("machine", "versions"), sorted(machines))]
    source = getattr(results.study.structure, "source", "")
    if source:
        parts += [heading("The lattice as it was sampled"), preformatted(source)]
    return parts
