"""Results of the analysis as aligned text, numbers in the field's short form 0.65271(13).

In order: what all tables use; threshold fits; exponents, collapses and single T; joint fits of
several quantities; spins; trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from percolab.analysis.averaging import Value
from percolab.analysis.collapse import POOR_COLLAPSE, Collapse
from percolab.analysis.crossings import RatioCrossings
from percolab.analysis.exponents import Exponent, ExponentFit
from percolab.analysis.fit_quality import ChiSquare
from percolab.analysis.maxima import SizeEstimates
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.sample_thresholds import SampleThresholds
from percolab.analysis.spin_fit import SpinExponent, SpinFit
from percolab.analysis.statistics import format_with_error as format_with_error
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.trees import Mean, TreeFit


def chi_square_text(quality: ChiSquare) -> str:
    """Write chi^2 over its degrees of freedom."""
    return f"{quality.value:.1f}/{quality.dof}"


def p_value_text(quality: ChiSquare) -> str:
    """Write the p-value of a fit, "-" without degrees of freedom."""
    return f"{quality.p_value:.2g}" if math.isfinite(quality.p_value) else "-"


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of cells as lines of text, every column as wide as its widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _quality(quality: ChiSquare) -> str:
    return f"chi2/dof {chi_square_text(quality)}, p-value {p_value_text(quality)}"


def _quality_cells(quality: ChiSquare) -> tuple[str, str]:
    return chi_square_text(quality), p_value_text(quality)


def _notes(notes: Sequence[str]) -> list[str]:
    """Return notes as one part of a text, [] if there are none."""
    return ["\n".join(f"note: {note}" for note in notes)] if notes else []


def fit_table(fit: ThresholdFit) -> str:
    """Render a fit for a terminal: what is wrong with it, p_c, each size, crossings, and notes."""
    parts = [
        *([fit.problem] if fit.problem else []),
        aligned(_headline_rows(fit)),
        aligned([("L", "samples", "points", "p range", "chi2/dof", "p-value"), *_size_rows(fit)]),
        aligned([("L1", "L2", "crossing p", "R at crossing"), *_crossing_rows(fit)]),
    ]
    return "\n\n".join([*parts, *_notes(fit.notes)])


def estimate_table(sizes: Sequence[SizeEstimates]) -> str:
    """Render the estimators of every size, with L where there are several sizes."""
    parts = []
    for size in sizes:
        lead = f"L = {size.L}, " if len(sizes) > 1 else ""
        lines = [f"{lead}{size.num_sites} sites, {size.samples} samples"]
        rows = [
            (
                f"p = {format_with_error(item.p, item.error)}",
                item.meaning + (" (at an end of the grid)" if item.at_edge else ""),
            )
            for item in size.estimates
        ]
        notes = [f"note: {note}" for note in size.notes]
        parts.append("\n".join([*lines, *aligned(rows).splitlines(), *notes]))
    return "\n\n".join(parts)


def _headline_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    critical = format_with_error(fit.critical_probability, fit.critical_probability_error)
    rows = [
        *_threshold_rows(fit),
        *_drift_rows(fit),
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), "fitted, its known value not used"),
        ("nu", format_with_error(fit.nu, fit.nu_error), ""),
        ("R(p_c)", critical, "that probability at p_c, large L"),
        *_theory_rows(fit),
        ("omega", f"{fit.omega:g}", f"corrections L^-omega, {fit.omega_source}"),
    ]
    return [*rows, _best_row(fit)]


def _threshold_rows(fit: ThresholdFit | QuantityAnalysis) -> list[tuple[str, ...]]:
    """Return the rows of p_c with the parts of its error, or of why there is none."""
    prior = "1/nu is free"
    if fit.known_y_t is not None:
        known = fit.known_y_t
        value = known.expression or format_with_error(known.value, known.error)
        prior = f"1/nu = {value} ({known.reference})"
    if fit.problem is not None:
        return [("p_c", f"{fit.threshold:.4g}?", f"no answer, see above; {prior}")]
    return [
        ("p_c", format_with_error(fit.threshold, fit.threshold_error), f"whole error; {prior}"),
        ("", f"+- {fit.statistical_error:.2g}", "of it statistical"),
        ("", f"+- {fit.systematic_error:.2g}", "systematic: priors, spread of the averaged fits"),
        ("", f"{fit.prior_shift:+.1g}", "how far p_c moves with priors twice as wide"),
    ]


def _drift_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    drift = fit.by_size.drift
    if drift is None:
        return []
    text = format_with_error(drift.threshold, drift.threshold_error)
    return [("p_c", text, f"drift of the crossings, {_quality(drift.chi_square)}")]


def _best_row(fit: ThresholdFit | QuantityAnalysis) -> tuple[str, ...]:
    """Return the row on the fits that are averaged, and the quality of the best."""
    best, count = fit.members[0], len(fit.members)
    others = f"; {best.weight:.0%} of the weight of {count} fits" if count > 1 else ""
    what = f"degree {best.degree}, L >= {best.min_size}{others}"
    return ("best fit", _quality(fit.chi_square), what)


def _theory_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    """Return the row that stands below R(p_c) where it is known exactly."""
    known, z = fit.known_probability, fit.critical_probability_z
    if known is None:
        return []
    away = f": {z:+.1f} sigma" if math.isfinite(z) else ""
    return [("theory", f"{known.value:.6g}", f"{known.expression}{away}")]


def _size_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    return [
        (
            str(own.L),
            str(own.samples),
            str(own.points),
            f"{own.p_low:.6g}:{own.p_high:.6g}",
            chi_square_text(own.chi_square),
            p_value_text(own.chi_square),
        )
        for own in fit.by_size.fits
    ]


def _crossing_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    return [
        (
            str(c.L1),
            str(c.L2),
            format_with_error(c.p, c.p_error) if c.found else "none",
            format_with_error(c.probability, c.probability_error),
        )
        for c in fit.by_size.crossings
    ]


def exponent_table(found: ExponentFit) -> str:
    """Render the exponents with both parts of their errors, beside known values, and notes."""
    head = ("exponent", "", "statistical", "systematic", "from", "chi2/dof", "p-value", "known", "")
    rows = aligned([head, *(_exponent_row(item) for item in found.exponents)])
    return "\n\n".join([rows, *_notes(found.notes)])


def collapse_table(collapses: Sequence[Collapse]) -> str:
    """Render data collapses: quality, and the exponents that were fitted or given."""
    rows: list[tuple[str, ...]] = [
        ("collapse of", "L", "quality S", "points", "p_c", "1/nu", "kappa")
    ]
    for item in collapses:
        rows.append(
            (
                item.observable,
                f"{min(item.L)}-{max(item.L)}",
                f"{item.quality:.2f}",
                str(item.points),
                format_with_error(item.threshold, item.threshold_error),
                format_with_error(item.y_t, item.y_t_error),
                format_with_error(item.exponent, item.exponent_error),
            )
        )
    lines = [aligned(rows), "y = A L^-kappa against x = (p - p_c) L^(1/nu); S is 1 if perfect"]
    lines += [
        f"note: {item.observable} does not collapse (S above {POOR_COLLAPSE:g}): corrections to "
        "scaling shift its exponents by more than their errors"
        for item in collapses
        if item.quality > POOR_COLLAPSE
    ]
    return "\n".join(lines)


def ratio_table(found: RatioCrossings) -> str:
    """Render the crossings of the moment ratio, and p_c from their drift."""
    rows: list[tuple[str, ...]] = [("L1", "L2", "crossing p", "<s_1>^2/<s_1^2> there")]
    for item in found.crossings:
        p = format_with_error(item.p, item.p_error) if item.found else "none"
        ratio = format_with_error(item.probability, item.probability_error)
        rows.append((str(item.L1), str(item.L2), p, ratio))
    text = aligned(rows)
    if found.drift is None:
        return text
    quality = _quality(found.drift.chi_square)
    return f"{text}\np_c = {found.drift.result} from their drift, {quality}"


def sample_table(found: SampleThresholds) -> str:
    """Render the thresholds of single T: every size, the extrapolations, and cell to cell."""
    rows: list[tuple[str, ...]] = [("L", "samples", "mean T", "median T", "width of T")]
    for size in found.sizes:
        numbers = zip((size.mean, size.median, size.width), size.errors, strict=True)
        cells = (format_with_error(value, float(error)) for value, error in numbers)
        rows.append((str(size.L), str(size.samples), *cells))
    parts = [aligned(rows)] if found.sizes else []
    if found.extrapolations:
        head = ("", "", "statistical", "systematic", "from", "chi2/dof", "p-value")
        rows = [
            (item.name, *_value_cells(item.result), f"{item.estimator} of T",
             *_quality_cells(item.result.chi_square))
            for item in found.extrapolations
        ]  # fmt: skip
        parts.append(aligned([head, *rows]))
    if found.cells:
        rows = [("L1", "L2", "cell-to-cell p*", "1/nu")]
        for cell in found.cells:
            p, y_t = (cell.p, cell.p_error), (cell.y_t, cell.y_t_error)
            rows.append(
                (str(cell.L1), str(cell.L2), format_with_error(*p), format_with_error(*y_t))
            )
        parts.append(aligned(rows))
    return "\n\n".join([*parts, *_notes(found.notes)])


def _exponent_row(item: Exponent) -> tuple[str, ...]:
    known, shown, difference = item.known, "", ""
    if known is not None:
        number = known.expression or format_with_error(known.value, known.error)
        shown = f"{number} ({known.reference})"
        difference = f"{item.difference:+.1f} sigma" if math.isfinite(item.difference) else ""
    return (
        item.name,
        *_value_cells(item.result),
        item.source,
        *_quality_cells(item.result.chi_square),
        shown,
        difference,
    )


def _value_cells(result: Value) -> tuple[str, str, str]:
    """Return a value with its whole error, and the two parts of that."""
    parts = (result.statistical_error, result.systematic_error)
    if result.rejected or not all(map(math.isfinite, parts)):
        return str(result), "", ""
    return str(result), f"+- {parts[0]:.2g}", f"+- {parts[1]:.2g}"


def quantity_table(found: QuantityAnalysis) -> str:
    """Render p_c with both parts of its error, the numbers of each quantity, and the notes."""
    rows = [
        *_threshold_rows(found),
        ("1/nu", format_with_error(found.y_t, found.y_t_error), "fitted, its known value not used"),
        _best_row(found),
    ]
    parts = [
        *([found.problem] if found.problem else []),
        aligned(rows),
        aligned(_quantity_rows(found)),
    ]
    return "\n\n".join([*parts, *_notes(found.notes)])


def _quantity_rows(found: QuantityAnalysis) -> list[tuple[str, ...]]:
    """Return a row for each quantity: p_c from it alone, its numbers in the joint fit, theory."""
    rows: list[tuple[str, ...]] = [
        ("quantity", "", "p_c alone", "Q_c", "theory", "", "a_1", "b", "omega")
    ]
    for item in found.quantities:
        exact, alone = item.known, item.alone
        away = (item.critical - exact.value) / item.critical_error if exact else math.nan
        rows.append(
            (
                item.name,
                item.symbol,
                _alone_cell(alone),
                format_with_error(item.critical, item.critical_error),
                f"{exact.value:.6g}" if exact else "",
                f"{away:+.1f} sigma" if math.isfinite(away) else "",
                f"{item.slope:.4g}",
                f"{item.correction:.2g}",
                f"{item.omega:g}",
            )
        )
    if not any(item.known for item in found.quantities):
        rows = [row[:4] + row[6:] for row in rows]
    return rows


def _alone_cell(alone: Value | None) -> str:
    if alone is None or alone.rejected:
        return "-" if alone is None else "rejected"
    return format_with_error(alone.value, alone.error)


def spin_table(found: SpinFit) -> str:
    """Render the transition of spins: p_c, coupling and T, exponents, joint fit, warnings."""
    parts = [aligned(_transition_rows(found))]
    if found.differences:
        # The joint fit has errors, and none is honest here.
        if found.first_order is not None:
            parts.append(aligned(_first_order_rows(found)))
        return "\n\n".join([*parts, *_notes(found.notes), *_start_notes(found)])
    if found.exponents:
        parts.append(aligned([_SPIN_HEAD, *(_spin_row(item) for item in found.exponents)]))
    if found.first_order is not None:
        parts.append(aligned(_first_order_rows(found)))
    parts.append(quantity_table(found.joint))
    return "\n\n".join([*parts, *_notes(found.notes), *_start_notes(found)])


def transition_lines(found: SpinFit) -> list[str]:
    """Return the transition of spins in one line, and what must be said of it in others."""
    symbol = found.model.coupling_symbol
    texts = [
        f"{symbol}_c = {_value_text(found.coupling, found.coupling_error)}",
        f"T_c = {_value_text(*found.temperature)}",
        f"p_c = {_value_text(found.threshold, found.threshold_error)}",
    ]
    names = ", ".join(item.name for item in found.joint.quantities)
    quality = chi_square_text(found.joint.chi_square)
    return [f"{'  '.join(texts)}  (chi2/dof {quality}, from {names})", *_start_notes(found)]


_SPIN_HEAD = ("exponent", "value", "statistical", "systematic", "published", "")


def _value_text(value: float, error: float | None) -> str:
    return f"{value:.6g} (no error)" if error is None else format_with_error(value, error)


def _transition_rows(found: SpinFit) -> list[tuple[str, ...]]:
    model = found.model
    what = "K" if model.name == "ising" else "beta"
    convention = "H = -J sum s s', K = J / kT, p = 1 - exp(-2 K)"
    if model.name != "ising":
        convention = "H = -J sum delta(s, s'), beta = J / kT, p = 1 - exp(-beta)"
    return [
        ("p_c", _value_text(found.threshold, found.threshold_error), convention),
        (f"{what}_c", _value_text(found.coupling, found.coupling_error), _against(found)),
        ("T_c", _value_text(*found.temperature), "kT / J"),
    ]


def _against(found: SpinFit) -> str:
    known, error = found.known, found.coupling_error
    if known is None:
        return ""
    digits = format_with_error(known.value, known.error) if known.error else f"{known.value:.9g}"
    text = f"published {digits}  {known.expression}  ({known.reference})"
    if error is None:
        return text
    return f"{text}: {(found.coupling - known.value) / math.hypot(error, known.error):+.1f} sigma"


def _spin_row(item: SpinExponent) -> tuple[str, ...]:
    known, result = ("", ""), item.result
    if item.known is not None:
        sigma = (result.value - item.known.value) / math.hypot(result.error, item.known.error)
        known = f"{item.known.value:.6g}", "" if result.rejected else f"{sigma:+.1f} sigma"
    return (item.name, *_value_cells(result), *known)


def _first_order_rows(found: SpinFit) -> list[tuple[str, ...]]:
    assert found.first_order is not None
    size, p, one = found.first_order
    heat = format_with_error(one.latent_heat, one.latent_heat_error)
    rows: list[tuple[str, ...]] = [
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
    """Render the trees of every size, and what they tend to."""
    letters = list(found.means[0].thresholds)
    head = ["L", "samples", "weight/site"]
    for letter in letters:
        head += [f"T_{letter}", f"path_{letter}"]
    rows = [tuple(head)]
    for item in found.means:
        row = [str(item.L), str(item.samples), _mean_text(item.weight)]
        for letter in letters:
            row += [_mean_text(item.thresholds[letter]), _mean_text(item.paths[letter])]
        rows.append(tuple(row))
    lines = [aligned(rows)]
    if any(item.parts != 1 for item in found.means):
        lines += ["", *(f"L = {item.L}: a forest of {item.parts:g} trees" for item in found.means)]
    results = {"weight/site of the infinite lattice": found.limit}
    results |= {f"D of path_{x} ~ L^D": law.exponent for x, law in found.exponents.items()}
    rows = [
        (name, *_value_cells(item), _quality(item.chi_square))
        for name, item in results.items()
        if item is not None
    ]
    if rows:
        lines += ["", aligned([("", "", "statistical", "systematic", ""), *rows])]
    return "\n".join([*lines, *_notes(found.notes)])


def _mean_text(mean: Mean) -> str:
    return format_with_error(mean.value, mean.error)
