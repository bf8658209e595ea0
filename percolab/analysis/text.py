"""Results of the analysis as tables of text, numbers in the short form 0.65271(13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from percolab.analysis.averaging import FittedThreshold
from percolab.analysis.collapse import POOR_COLLAPSE, Collapse
from percolab.analysis.crossings import CurveCrossing, RatioCrossings
from percolab.analysis.exponents import ExponentFit
from percolab.analysis.maxima import SizeEstimates
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.robustness import BOUND, MEAN_FIELD, ROBUSTNESS
from percolab.analysis.sample_thresholds import SampleThresholds
from percolab.analysis.spin_fit import SpinFit
from percolab.analysis.table_fit import TableFit
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.trees import TreeFit
from percolab.analysis.value import Value, published_text
from percolab.analysis.value import format_with_error as format_with_error
from percolab.lattices.removal import RANDOM, describe_removal
from percolab.lattices.shown import Table

Rows = list[tuple[Any, ...]]

#: Headings of a value with both parts of its error, and of the quality of its fit.
_PARTS, _QUALITY = ("statistical", "systematic"), ("chi2/dof", "p-value")
_FITTED = "fitted, its known value not used"


def _parts(*parts: Table | str, notes: Sequence[str] = ()) -> str:
    """Return tables and lines with an empty line between them, and the notes below."""
    found = [*parts, *([Table((), (), notes)] if notes else [])]
    return "\n\n".join(part if isinstance(part, str) else part.to_text() for part in found if part)


def _known_text(known: Known) -> str:
    """Return a known value and its source."""
    return f"{known.expression or format_with_error(known.value, known.error)} ({known.reference})"


def _sigma(deviation: float) -> str:
    """Return a distance in errors, "" where there is none."""
    return f"{deviation:+.1f} sigma" if math.isfinite(deviation) else ""


def fit_table(fit: ThresholdFit) -> str:
    """Render a fit for a terminal: its problem, p_c, each size, crossings, and notes."""
    known, drift = fit.known_probability, fit.drift
    critical = format_with_error(fit.critical_probability, fit.critical_probability_error)
    rows = _threshold_rows(fit)
    if drift is not None:
        text = format_with_error(drift.threshold, drift.threshold_error)
        rows.append(("p_c", text, f"drift of the crossings, {drift.chi_square}"))
    rows += [
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), _FITTED),
        ("nu", format_with_error(fit.nu, fit.nu_error), ""),
        ("R(p_c)", critical, "that probability at p_c, large L"),
    ]
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
    """Render the fit of a series of somebody's table: x_c, 1/nu, each size, crossings, priors."""
    axis = fit.axis
    rows = [
        *_threshold_rows(fit, axis),
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), "fitted"),
        ("nu", format_with_error(fit.nu, fit.nu_error), ""),
    ]
    if fit.kappa is not None:
        rows.append(
            ("kappa", str(fit.kappa), f"{fit.quantity} = L^kappa f(({axis} - {axis}_c) ...)")
        )
    if fit.critical is not None:
        rows.append(("f(0)", str(fit.critical), f"{fit.quantity} at {axis}_c, large L"))
    if fit.drift is not None:
        text = format_with_error(fit.drift.threshold, fit.drift.threshold_error)
        rows.append((f"{axis}_c", text, f"check: drift of the crossings, {fit.drift.chi_square}"))
    rows += [_best_row(fit), *(("prior", "", text) for text in fit.priors)]
    return _parts(
        f"series {fit.name}" if fit.name else "",
        fit.problem or "",
        Table((), rows),
        _crossing_table(fit.crossings, f"{fit.quantity} there", axis) if fit.crossings else "",
        notes=fit.notes,
    )


def _crossing_table(crossings: Sequence[CurveCrossing], name: str, axis: str = "p") -> Table:
    """Return the crossings of neighbouring sizes; name: of the value there."""
    rows = [
        (
            item.L1,
            item.L2,
            format_with_error(item.p, item.p_error) if item.found else "none",
            format_with_error(item.probability, item.probability_error),
        )
        for item in crossings
    ]
    return Table(("L1", "L2", f"crossing {axis}", name), rows)


def estimate_table(sizes: Sequence[SizeEstimates]) -> str:
    """Render the estimators of every size, with L where there are several sizes."""
    parts = []
    for size in sizes:
        lead = f"L = {size.L}, " if len(sizes) > 1 else ""
        rows = []
        for item in size.estimates:
            where = " (at an end of the grid)" if item.at_edge else ""
            removed = ""
            if size.order != RANDOM:
                removed = f"{format_with_error(1 - item.p, item.error)} removed: "
            value = f"p = {format_with_error(item.p, item.error)}"
            rows.append((value, removed + item.meaning + where))
        if size.robustness is not None:
            rows.append((f"R = {size.robustness}", ROBUSTNESS))
        if size.bounds is not None:
            rows.append((f"p = {format_with_error(size.bounds.mean_field, 0.0)}", MEAN_FIELD))
            rows.append((f"p = {format_with_error(size.bounds.bound, 0.0)}", BOUND))
        notes = [f"note: {note}" for note in size.notes]
        head = f"{lead}{size.num_sites} sites, {size.samples} samples{describe_removal(size.order)}"
        parts.append("\n".join([head, *Table((), rows).lines(), *notes]))
    return "\n\n".join(parts)


def _threshold_rows(fit: FittedThreshold, axis: str = "p") -> Rows:
    """Return the rows of p_c with the parts of its error, or of its problem."""
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
    """Return the row on the fits that are averaged, and the quality of the best."""
    best, count = fit.members[0], len(fit.members)
    others = f"; {best.weight:.0%} of the weight of {count} fits" if count > 1 else ""
    return "best fit", str(fit.chi_square), f"degree {best.degree}, L >= {best.min_size}{others}"


def exponent_table(found: ExponentFit) -> str:
    """Render the exponents with both parts of their errors, next to known values, and notes."""
    head = ("exponent", "", *_PARTS, "from", *_QUALITY, "known", "")
    rows = [
        (
            item.name,
            *item.result.cells,
            item.source,
            *item.result.quality.cells,
            "" if item.known is None else _known_text(item.known),
            _sigma(item.difference),
        )
        for item in found.exponents
    ]
    return _parts(Table(head, rows), notes=found.notes)


def collapse_table(collapses: Sequence[Collapse], axis: str = "p") -> str:
    """Render data collapses: quality, and the exponents that were fitted or given."""
    rows = [
        (
            item.observable,
            f"{min(item.L)}-{max(item.L)}",
            f"{item.quality:.2f}",
            item.points,
            format_with_error(item.threshold, item.threshold_error),
            format_with_error(item.y_t, item.y_t_error),
            format_with_error(item.exponent, item.exponent_error),
        )
        for item in collapses
    ]
    head = ("collapse of", "L", "quality S", "points", f"{axis}_c", "1/nu", "kappa")
    x = f"({axis} - {axis}_c) L^(1/nu)"
    meaning = f"y = A L^-kappa against x = {x}; S is 1 if perfect"
    poor = [
        f"note: {item.observable} does not collapse (S above {POOR_COLLAPSE:g}): corrections to "
        "scaling shift its exponents by more than their errors"
        for item in collapses
        if item.quality > POOR_COLLAPSE
    ]
    return "\n".join([*Table(head, rows).lines(), meaning, *poor])


def ratio_table(found: RatioCrossings) -> str:
    """Render the crossings of the moment ratio, and p_c from their drift."""
    lines = _crossing_table(found.crossings, "<s_1>^2/<s_1^2> there").lines()
    if found.drift is not None:
        drift = found.drift
        lines.append(f"p_c = {drift.result} from their drift, {drift.chi_square}")
    return "\n".join(lines)


def sample_table(found: SampleThresholds) -> str:
    """Render the thresholds of single T: every size, the extrapolations, and cell to cell."""
    sizes, cells = [], []
    for size in found.sizes:
        numbers = zip((size.mean, size.median, size.width), size.errors.tolist(), strict=True)
        sizes.append((size.L, size.samples, *(format_with_error(*number) for number in numbers)))
    fits = [
        (item.name, *item.result.cells, f"{item.estimator} of T", *item.result.quality.cells)
        for item in found.extrapolations
    ]
    for cell in found.cells:
        p, y_t = (cell.p, cell.p_error), (cell.y_t, cell.y_t_error)
        cells.append((cell.L1, cell.L2, format_with_error(*p), format_with_error(*y_t)))
    tables = (
        Table(("L", "samples", "mean T", "median T", "width of T"), sizes),
        Table(("", "", *_PARTS, "from", *_QUALITY), fits),
        Table(("L1", "L2", "cell-to-cell p*", "1/nu"), cells),
    )
    return _parts(*(table for table in tables if table.rows), notes=found.notes)


def quantity_table(found: QuantityAnalysis) -> str:
    """Render p_c with both parts of its error, the numbers of each quantity, and the notes."""
    rows = [
        *_threshold_rows(found),
        ("1/nu", format_with_error(found.y_t, found.y_t_error), _FITTED),
        _best_row(found),
    ]
    table = Table((), rows)
    return _parts(found.problem or "", table, _quantities(found), notes=found.notes)


def _quantities(found: QuantityAnalysis) -> Table:
    """Return a row for each quantity: p_c from it alone, its numbers in the joint fit, theory."""
    rows: Rows = []
    for item in found.quantities:
        exact, alone = item.known, item.alone
        away = (item.critical - exact.value) / item.critical_error if exact else math.nan
        rejected = alone is not None and alone.rejected
        rows.append(
            (
                item.name,
                item.symbol,
                "-" if alone is None else "rejected" if rejected else str(alone),
                format_with_error(item.critical, item.critical_error),
                f"{exact.value:.6g}" if exact else "",
                _sigma(away),
                f"{item.slope:.4g}",
                f"{item.correction:.2g}",
                f"{item.omega:g}",
            )
        )
    head: tuple[str, ...] = ("quantity", "", "p_c alone", "Q_c", "theory", "", "a_1", "b", "omega")
    if not any(item.known for item in found.quantities):
        head, *rows = (row[:4] + row[6:] for row in (head, *rows))
    return Table(head, rows)


def spin_table(found: SpinFit) -> str:
    """Render the transition of spins: p_c, coupling and T, exponents, joint fit, warnings."""
    parts: list[Table | str] = [Table((), _transition_rows(found))]
    if found.exponents and not found.differences:
        rows = [
            (
                item.name,
                *item.result.cells,
                "" if item.known is None else f"{item.known.value:.6g}",
                _sigma(item.difference),
            )
            for item in found.exponents
        ]
        parts.append(Table(("exponent", "value", *_PARTS, "published", ""), rows))
    if found.first_order is not None:
        parts.append(Table((), _first_order_rows(found)))
    # Where chains depend on their start the errors of the joint fit are wrong.
    if not found.differences:
        parts.append(quantity_table(found.joint))
    return "\n\n".join([_parts(*parts, notes=found.notes), *_start_notes(found)])


def transition_lines(found: SpinFit) -> list[str]:
    """Return the transition of spins in one line, and warnings in others."""
    symbol = found.model.coupling_symbol
    texts = [
        f"{symbol}_c = {_value_text(found.coupling, found.coupling_error)}",
        f"T_c = {_value_text(*found.temperature)}",
        f"p_c = {_value_text(found.threshold, found.threshold_error)}",
    ]
    names = ", ".join(item.name for item in found.joint.quantities)
    quality = found.joint.chi_square.cells[0]
    return [f"{'  '.join(texts)}  (chi2/dof {quality}, from {names})", *_start_notes(found)]


def _value_text(value: float, error: float | None) -> str:
    return f"{value:.6g} (no error)" if error is None else format_with_error(value, error)


def _transition_rows(found: SpinFit) -> Rows:
    what, convention = "K", "H = -J sum s s', K = J / kT, p = 1 - exp(-2 K)"
    if found.model.name != "ising":
        what = "beta"
        convention = "H = -J sum delta(s, s'), beta = J / kT, p = 1 - exp(-beta)"
    error = found.coupling_error
    value = None if error is None else Value(found.coupling, error)
    published = "" if found.known is None else published_text(found.known, value)
    return [
        ("p_c", _value_text(found.threshold, found.threshold_error), convention),
        (f"{what}_c", _value_text(found.coupling, error), published),
        ("T_c", _value_text(*found.temperature), "kT / J"),
    ]


def _first_order_rows(found: SpinFit) -> Rows:
    assert found.first_order is not None
    size, p, one = found.first_order
    heat = format_with_error(one.latent_heat, one.latent_heat_error)
    rows: Rows = [
        ("first order", f"L = {size}", f"two peaks of the energy at p = {p:.6g}"),
        ("latent heat", heat, "satisfied bonds a site, ordered less disordered"),
    ]
    scale = 2 if found.model.name == "ising" else 1
    if one.mixed:
        value = format_with_error(one.beta / scale, one.beta_error / scale)
        rows.append((f"{found.model.coupling_symbol}_c", value, "from equal weights of the phases"))
    else:
        rows.append(("", "", f"chains changed phase {one.changes} times: too few for its weights"))
    return rows


def _start_notes(found: SpinFit) -> list[str]:
    if not found.differences:
        return []
    worst = max(found.differences, key=lambda item: abs(item.z))
    return [
        f"no error is quoted: chains that started ordered and at random differ, {worst.series} at "
        f"L = {worst.L}, p = {worst.p:.6g} by {abs(worst.z):.1f} sigma (in "
        f"{len(found.differences)} of the means); the burn-in is too short, or the transition is "
        "of first order"
    ]


def tree_table(found: TreeFit) -> str:
    """Render the trees of every size, and their limits."""
    letters = list(found.means[0].thresholds)
    columns = [f"{name}_{x}" for x in letters for name in ("T", "path")]
    rows, forests = [], []
    for item in found.means:
        own = [means[x] for x in letters for means in (item.thresholds, item.paths)]
        rows.append((item.L, item.samples, item.weight, *own))
        if item.parts != 1:
            forests.append(f"L = {item.L}: a forest of {item.parts:g} trees")
    results = {"weight/site of the infinite lattice": found.limit}
    results |= {f"D of path_{x} ~ L^D": law.exponent for x, law in found.exponents.items()}
    fits = [(name, *item.cells, item.quality) for name, item in results.items() if item is not None]
    return _parts(
        Table(("L", "samples", "weight/site", *columns), rows),
        "\n".join(forests),
        *([Table(("", "", *_PARTS, ""), fits)] if fits else []),
        notes=found.notes,
    )
