"""Results of the analysis as tables of text, numbers in the short form 0.65271(13)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from percolab.analysis.averaging import FittedThreshold
from percolab.analysis.collapse import NEAREST, POOR_COLLAPSE, Collapse
from percolab.analysis.crossings import CurveCrossing, Drift, RatioCrossings
from percolab.analysis.exponents import ExponentFit
from percolab.analysis.maxima import BOUND, MEAN_FIELD, ROBUSTNESS, SizeEstimates
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.roots import RootFit, describe_coupling, root_table
from percolab.analysis.sample_thresholds import SampleThresholds
from percolab.analysis.shared_fit import SharedFit
from percolab.analysis.spin_fit import SpinFit
from percolab.analysis.stored_data import Outbreak
from percolab.analysis.table_fit import TableFit
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.trees import TreeFit
from percolab.analysis.value import Value, published_text
from percolab.analysis.value import format_with_error as format_with_error
from percolab.lattices.removal import RANDOM, describe_removal
from percolab.lattices.shown import Table, counted, few
from percolab.tasks.study import Study

Rows = list[tuple[Any, ...]]

#: Headings of a value with both parts of its error, and of the quality of its fit.
_PARTS, _QUALITY = ("statistical", "systematic"), ("chi2/dof", "p-value")
_FITTED = "fitted, its known value not used"


def _parts(*parts: Table | str, notes: Sequence[str] = ()) -> str:
    """Return tables and lines with an empty line between them, and the notes below."""
    every = [*parts, *([Table((), (), notes)] if notes else [])]
    return "\n\n".join(part if isinstance(part, str) else part.to_text() for part in every if part)


def _known_text(known: Known) -> str:
    return f"{known.expression or format_with_error(known.value, known.error)} ({known.reference})"


def _sigma(deviation: float) -> str:
    """Return a distance in errors, "" where there is none."""
    return f"{deviation:+.1f} sigma" if math.isfinite(deviation) else ""


def describe_fit(fit: Any, study: Study) -> str:
    """Render the fit of a study, of whatever kind, for a terminal."""
    if isinstance(fit, RootFit):
        return root_table(fit, study.structure, study.model)
    tables: dict[type, Callable[[Any], str]] = {SpinFit: spin_table, TreeFit: tree_table}
    tables |= {QuantityAnalysis: quantity_table, ThresholdFit: fit_table}
    return tables[type(fit)](fit)


def fit_table(fit: ThresholdFit) -> str:
    """Render a fit for a terminal: its problem, p_c, each size, crossings, and notes."""
    known = fit.known_probability
    critical = format_with_error(fit.critical_probability, fit.critical_probability_error)
    rows = [*_threshold_rows(fit), *_drift_rows(fit.drift), *_exponent_rows(fit, _FITTED)]
    rows.append(("R(p_c)", critical, "that probability at p_c, large L"))
    if known is not None:
        away = ": ".join(filter(None, [known.expression, _sigma(fit.critical_probability_z)]))
        rows.append(("theory", f"{known.value:.6g}", away))
    rows.append(("omega", f"{fit.omega:g}", f"corrections L^-omega, {fit.omega_source}"))
    sizes = [
        (own.L, own.samples, own.points, f"{own.p_low:.6g}:{own.p_high:.6g}", *own.chi_square.cells)
        for own in fit.size_fits
    ]
    return _parts(
        fit.problem or "",
        Table((), [*rows, _best_row(fit)]),
        Table(("L", "samples", "points", "p range", *_QUALITY), sizes),
        _crossing_table(fit.crossings, "R at crossing"),
        notes=fit.notes,
    )


def series_table(fit: TableFit) -> str:
    """Render the fit of a series of a table: x_c, 1/nu, each size, crossings, priors."""
    axis = fit.axis
    rows = [*_threshold_rows(fit, axis), *_exponent_rows(fit, "fitted")]
    if fit.kappa is not None:
        law = f"{fit.quantity} = L^kappa f(({axis} - {axis}_c) ...)"
        rows.append(("kappa", str(fit.kappa), law))
    if fit.critical is not None:
        rows.append(("f(0)", str(fit.critical), f"{fit.quantity} at {axis}_c, large L"))
    rows += _drift_rows(fit.drift, axis, "check: ")
    rows += [_best_row(fit), *(("prior", "", text) for text in fit.priors)]
    return _parts(
        f"series {fit.name}" if fit.name else "",
        fit.problem or "",
        Table((), rows),
        _crossing_table(fit.crossings, f"{fit.quantity} there", axis) if fit.crossings else "",
        notes=fit.notes,
    )


def _exponent_rows(fit: FittedThreshold, how: str) -> Rows:
    return [
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), how),
        ("nu", format_with_error(fit.nu, fit.nu_error), ""),
    ]


def _drift_rows(drift: Drift | None, axis: str = "p", what: str = "") -> Rows:
    if drift is None:
        return []
    text = format_with_error(drift.threshold, drift.threshold_error)
    return [(f"{axis}_c", text, f"{what}drift of the crossings, {drift.chi_square}")]


def _crossing_table(crossings: Sequence[CurveCrossing], name: str, axis: str = "p") -> Table:
    """Return the crossings of neighbouring sizes; name: of the value there."""
    rows = []
    for each in crossings:
        p = format_with_error(each.p, each.p_error) if each.found else "none"
        value = format_with_error(each.probability, each.probability_error)
        rows.append((each.L1, each.L2, p, value))
    return Table(("L1", "L2", f"crossing {axis}", name), rows)


def estimate_table(sizes: Sequence[SizeEstimates]) -> str:
    """Render the estimators of every size, with L where there are several sizes."""
    parts = []
    for size in sizes:
        lead = f"L = {size.L}, " if len(sizes) > 1 else ""
        rows = []
        for each in size.estimates:
            where = " (at an end of the grid)" if each.at_edge else ""
            removed = f"{format_with_error(1 - each.p, each.error)} removed: "
            meaning = ("" if size.order == RANDOM else removed) + each.meaning + where
            rows.append((f"p = {format_with_error(each.p, each.error)}", meaning))
        if size.robustness is not None:
            rows.append((f"R = {size.robustness}", ROBUSTNESS))
        if size.bounds is not None:
            for p, meaning in ((size.bounds.mean_field, MEAN_FIELD), (size.bounds.bound, BOUND)):
                rows.append((f"p = {format_with_error(p, 0.0)}", meaning))
        notes = [f"note: {note}" for note in size.notes]
        counts = f"{counted(size.num_sites, 'site')}, {counted(size.samples, 'sample')}"
        head = f"{lead}{counts}{describe_removal(size.order)}"
        parts.append("\n".join([head, *Table((), rows).lines(), *notes]))
    return "\n\n".join(parts)


def outbreak_line(outbreak: Outbreak) -> str:
    """Render the mean size of an outbreak at both ends of the grid."""
    values = zip(outbreak.mean, outbreak.error, outbreak.p, strict=True)
    first, *others = [
        (format_with_error(mean, error), f"at p = {p:.6g}") for mean, error, p in values
    ]
    ends = [f"{first[0]} of {outbreak.num_sites} sites {first[1]}", *map(" ".join, others[-1:])]
    return f"clusters of the source: {', '.join(ends)}"


def _threshold_rows(fit: FittedThreshold, axis: str = "p") -> Rows:
    known = fit.known_y_t
    prior = "1/nu is free" if known is None else f"1/nu = {_known_text(known)}"
    if fit.problem is not None:
        return [(f"{axis}_c", f"{fit.threshold:.4g}?", f"no answer, see above; {prior}")]
    value, statistical, systematic = fit.p_c.cells
    return [
        (f"{axis}_c", value, f"whole error; {prior}"),
        ("", statistical, "of it statistical"),
        ("", systematic, "systematic: priors, spread of the averaged fits"),
        ("", f"{fit.prior_shift:+.1g}", f"how far {axis}_c moves with priors twice as wide"),
    ]


def _best_row(fit: FittedThreshold) -> tuple[str, ...]:
    best, count = fit.members[0], len(fit.members)
    others = f"; {best.weight:.0%} of the weight of {count} fits" if count > 1 else ""
    return "best fit", str(fit.chi_square), f"degree {best.degree}, L >= {best.min_size}{others}"


def exponent_table(fit: ExponentFit) -> str:
    """Render the exponents with both parts of their errors, next to known values, and notes."""
    head = ("exponent", "", *_PARTS, "from", *_QUALITY, "known", "")
    rows = []
    for each in fit.exponents:
        known = "" if each.known is None else _known_text(each.known)
        cells = (*each.result.cells, each.source, *each.result.quality.cells)
        rows.append((each.name, *cells, known, _sigma(each.difference)))
    return _parts(Table(head, rows), notes=fit.notes)


def collapse_table(collapses: Sequence[Collapse], axis: str = "p") -> str:
    """Render data collapses: quality, and the exponents that were fitted or given."""
    rows, notes = [], []
    for own in collapses:
        p_c, y_t = (own.threshold, own.threshold_error), (own.y_t, own.y_t_error)
        fitted = p_c, y_t, (own.exponent, own.exponent_error)
        cells = (f"{min(own.L)}-{max(own.L)}", f"{own.quality:.2f}", own.points)
        rows.append((own.observable, *cells, *(format_with_error(*pair) for pair in fitted)))
        if own.quality > POOR_COLLAPSE:
            notes.append(
                f"note: {own.observable} does not collapse (S above {POOR_COLLAPSE:g}): "
                "corrections to scaling are larger than the errors of its points; leave out the "
                "smallest sizes (--min-size)"
            )
        if np.unique(own.L).size == 2 and own.y_t_error > 0:
            notes.append(
                f"note: {own.observable} has two sizes, too few to estimate corrections to "
                "scaling, which errors leave out"
            )
        elif own.others < NEAREST and not own.threshold_error == own.y_t_error == 0:
            notes.append(
                f"note: {own.observable} has only {own.others} points for the curve of other "
                "sizes; errors leave out that of the interpolation, and may leave out "
                f"corrections to scaling; sample more {axis} or sizes"
            )
    head = ("collapse of", "L", "quality S", "points", f"{axis}_c", "1/nu", "kappa")
    x = f"({axis} - {axis}_c) L^(1/nu)"
    shifted = f"corrections to scaling, which it leaves out, shift {axis}_c and the exponents"
    meaning = f"y = A L^-kappa against x = {x}; S is 1 if perfect; {shifted}"
    return "\n".join([*Table(head, rows).lines(), meaning, *notes])


def ratio_table(fit: RatioCrossings) -> str:
    """Render the crossings of the moment ratio, and p_c from their drift."""
    lines = _crossing_table(fit.crossings, "<s_1>^2/<s_1^2> there").lines()
    if fit.drift is not None:
        drift = fit.drift
        lines.append(f"p_c = {drift.result} from their drift, {drift.chi_square}")
    return "\n".join(lines)


def sample_table(fit: SampleThresholds) -> str:
    """Render the thresholds of single T: every size, the extrapolations, and cell to cell."""
    sizes, cells = [], []
    for size in fit.sizes:
        numbers = zip((size.mean, size.median, size.width), size.errors.tolist(), strict=True)
        sizes.append((size.L, size.samples, *(format_with_error(*number) for number in numbers)))
    fits = [
        (limit.name, *limit.result.cells, f"{limit.estimator} of T", *limit.result.quality.cells)
        for limit in fit.extrapolations
    ]
    for cell in fit.cells:
        p, y_t = (cell.p, cell.p_error), (cell.y_t, cell.y_t_error)
        cells.append((cell.L1, cell.L2, format_with_error(*p), format_with_error(*y_t)))
    tables = (
        Table(("L", "samples", "mean T", "median T", "width of T"), sizes),
        Table(("", "", *_PARTS, "from", *_QUALITY), fits),
        Table(("L1", "L2", "cell-to-cell p*", "1/nu"), cells),
    )
    return _parts(*(table for table in tables if table.rows), notes=fit.notes)


def quantity_table(fit: QuantityAnalysis) -> str:
    """Render p_c with both parts of its error, the numbers of each quantity, and the notes."""
    rows = [*_threshold_rows(fit), _exponent_rows(fit, _FITTED)[0], _best_row(fit)]
    return _parts(fit.problem or "", Table((), rows), _quantities(fit), notes=fit.notes)


def _quantities(fit: QuantityAnalysis) -> Table:
    """Return a row for each quantity: p_c from it alone, its numbers in the joint fit, theory."""
    rows: Rows = [("quantity", "", "p_c alone", "Q_c", "theory", "", "a_1", "b", "omega")]
    for own in fit.quantities:
        theory, away, alone = "", "", "-" if own.alone is None else str(own.alone)
        if own.alone is not None and own.alone.rejected:
            alone = "rejected"
        if own.known is not None:
            theory = f"{own.known.value:.6g}"
            away = _sigma((own.critical - own.known.value) / own.critical_error)
        critical = format_with_error(own.critical, own.critical_error)
        fitted = (f"{own.slope:.4g}", f"{own.correction:.2g}", f"{own.omega:g}")
        rows.append((own.name, own.symbol, alone, critical, theory, away, *fitted))
    if not any(own.known for own in fit.quantities):
        rows = [row[:4] + row[6:] for row in rows]
    return Table(rows[0], rows[1:])


def shared_table(fit: SharedFit) -> str:
    """Render p_c of every file with both parts of its error, what they share, and the notes."""
    rows = []
    for file in fit.files:
        cells = (f"{file.p_c.value:.4g}?", "", "") if fit.problem else file.p_c.cells
        alone = f"{file.alone.value:.4g}?" if file.alone.rejected else file.alone
        rows.append((file.name, file.lattice, file.model, *cells, alone, few(file.sizes)))
    shared = []
    for name, value in fit.at_p_c.items():
        known, theory = fit.known[name], ("", "")
        if known is not None:
            away = (value.value - known.value) / value.error
            theory = (format_with_error(known.value, known.error), _sigma(away))
        shared.append((name, format_with_error(value.value, value.error), *theory))
    return _parts(
        fit.problem or "",
        Table(("file", "lattice", "model", "p_c", *_PARTS, "alone", "L"), rows),
        Table(("shared", "at p_c", "published", ""), shared),
        f"agreement of the files: {fit.agreement}",
        notes=fit.notes,
    )


def spin_table(fit: SpinFit) -> str:
    """Render the transition of spins: p_c, coupling and T, exponents, joint fit, warnings."""
    parts: list[Table | str] = [Table((), _transition_rows(fit))]
    if fit.exponents and not fit.differences:
        rows = []
        for each in fit.exponents:
            published = "" if each.known is None else f"{each.known.value:.6g}"
            rows.append((each.name, *each.result.cells, published, _sigma(each.difference)))
        parts.append(Table(("exponent", "value", *_PARTS, "published", ""), rows))
    if fit.first_order is not None:
        parts.append(Table((), _first_order_rows(fit)))
    # Where chains depend on their start the errors of the joint fit are wrong.
    if not fit.differences:
        parts.append(quantity_table(fit.joint))
    return "\n\n".join([_parts(*parts, notes=fit.notes), *_start_notes(fit)])


def transition_lines(fit: SpinFit) -> list[str]:
    """Return the transition of spins in one line, and warnings in others."""
    symbol = fit.model.coupling_symbol
    texts = [
        f"{symbol}_c = {_value_text(fit.coupling, fit.coupling_error)}",
        f"T_c = {_value_text(*fit.temperature)}",
        f"p_c = {_value_text(fit.threshold, fit.threshold_error)}",
    ]
    names = ", ".join(quantity.name for quantity in fit.joint.quantities)
    quality = fit.joint.chi_square.cells[0]
    return [f"{'  '.join(texts)}  (chi2/dof {quality}, from {names})", *_start_notes(fit)]


def _value_text(value: float, error: float | None) -> str:
    return f"{value:.6g} (no error)" if error is None else format_with_error(value, error)


def _transition_rows(fit: SpinFit) -> Rows:
    error = fit.coupling_error
    value = None if error is None else Value(fit.coupling, error)
    published = "" if fit.known is None else published_text(fit.known, value)
    p_c = _value_text(fit.threshold, fit.threshold_error)
    return [
        ("p_c", p_c, describe_coupling(fit.model)),
        (f"{fit.model.coupling_symbol}_c", _value_text(fit.coupling, error), published),
        ("T_c", _value_text(*fit.temperature), "kT / J"),
    ]


def _first_order_rows(fit: SpinFit) -> Rows:
    assert fit.first_order is not None
    size, p, one = fit.first_order
    value = "", "", f"chains changed phase {one.changes} times: too few for its weights"
    if one.mixed:
        beta = format_with_error(one.beta / fit.model.exponent, one.beta_error / fit.model.exponent)
        value = f"{fit.model.coupling_symbol}_c", beta, "from equal weights of the phases"
    heat = format_with_error(one.latent_heat, one.latent_heat_error)
    return [
        ("first order", f"L = {size}", f"two peaks of the energy at p = {p:.6g}"),
        ("latent heat", heat, "satisfied bonds a site, ordered less disordered"),
        value,
    ]


def _start_notes(fit: SpinFit) -> list[str]:
    if not fit.differences:
        return []
    worst = max(fit.differences, key=lambda difference: abs(difference.z))
    return [
        f"no error is quoted: chains that started ordered and at random differ, {worst.series} at "
        f"L = {worst.L}, p = {worst.p:.6g} by {abs(worst.z):.1f} sigma (in "
        f"{len(fit.differences)} of the means); the burn-in is too short, or the transition is "
        "of first order"
    ]


def tree_table(fit: TreeFit) -> str:
    """Render the trees of every size, and their limits."""
    letters = list(fit.means[0].thresholds)
    columns = [f"{name}_{x}" for x in letters for name in ("T", "path")]
    rows, forests = [], []
    for mean in fit.means:
        own = [means[x] for x in letters for means in (mean.thresholds, mean.paths)]
        rows.append((mean.L, mean.samples, mean.weight, *own))
        if mean.parts != 1:
            forests.append(f"L = {mean.L}: a forest of {mean.parts:g} trees")
    results = {"weight/site of the infinite lattice": fit.limit}
    results |= {f"D of path_{x} ~ L^D": law.exponent for x, law in fit.exponents.items()}
    fits = [(name, *mean.cells, mean.quality) for name, mean in results.items() if mean is not None]
    return _parts(
        Table(("L", "samples", "weight/site", *columns), rows),
        "\n".join(forests),
        *([Table(("", "", *_PARTS, ""), fits)] if fits else []),
        notes=fit.notes,
    )
