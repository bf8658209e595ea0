"""Results of the analysis as aligned text, numbers in the field's short form 0.65271(13).

In order: what all tables use; threshold fits; exponents, collapses and single T; joint fits of
several quantities; spins; trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from percolab.analysis.collapse import POOR_COLLAPSE, Collapse
from percolab.analysis.crossings import RatioCrossings
from percolab.analysis.exponents import Exponent, ExponentFit
from percolab.analysis.fit_quality import ChiSquare
from percolab.analysis.maxima import SizeEstimates
from percolab.analysis.quantity_fits import QuantityAnalysis, QuantityTrial
from percolab.analysis.quantity_model import Amplitudes, QuantityFit
from percolab.analysis.sample_thresholds import SampleThresholds
from percolab.analysis.spin_fit import SpinExponent, SpinFit
from percolab.analysis.statistics import format_with_error as format_with_error
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.threshold_trials import Trial, choose_fit
from percolab.analysis.trees import Mean, TreeFit

#: What a table calls the corrections of a joint fit.
_TERMS = {"none": "none", "b": "b", "bc": "b, c", "b2": "b, b_2", "bc2": "b, c, b_2"}


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
    """Render a fit for a terminal: the threshold, the fit, each size, the crossings, the notes."""
    parts = [
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


def trial_table(trials: Sequence[Trial], *, mark: bool = True) -> str:
    """Render the table of fits, with curvature errors; the one to choose is marked if asked."""
    chosen = choose_fit(trials) if mark else None
    rows: list[tuple[str, ...]] = [
        ("L_min", "degree", "corrections", "p_c", "1/nu", "chi2/dof", "p-value", "")
    ]
    for trial in trials:
        fit, quality = trial.fit, trial.fit.chi_square
        rows.append(
            (
                str(trial.min_size),
                str(fit.degree),
                fit.corrections,
                format_with_error(fit.threshold, fit.fisher_error),
                format_with_error(fit.y_t, fit.y_t_fisher_error),
                chi_square_text(quality),
                p_value_text(quality),
                "chosen" if trial is chosen else "",
            )
        )
    return aligned(rows)


def _headline_rows(fit: ThresholdFit) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("p_c", format_with_error(fit.threshold, fit.threshold_error), fit.error_method),
        ("", f"+- {fit.fisher_error:.2g}", "curvature of the likelihood"),
    ]
    drift = fit.by_size.drift
    if drift is not None:
        text = format_with_error(drift.threshold, drift.threshold_error)
        rows.append(("p_c", text, f"drift of the crossings, {_quality(drift.chi_square)}"))
    critical = format_with_error(fit.critical_probability, fit.critical_probability_error)
    rows += [
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), ""),
        ("nu", format_with_error(fit.nu, fit.nu_error), ""),
        ("R(p_c)", critical, "that probability at p_c, large L"),
        *_theory_rows(fit),
    ]
    if fit.with_correction:
        text = format_with_error(fit.scaling.correction, fit.correction_error)
        rows.append(("b", text, f"correction b L^-{fit.scaling.omega:g}"))
        rows.append(("omega", f"{fit.scaling.omega:g}", fit.omega_source))
    if fit.with_mixed:
        text = format_with_error(fit.scaling.mixed, fit.mixed_error)
        rows.append(("c", text, f"mixed correction c (p - p_c) L^(1/nu - {fit.scaling.omega:g})"))
    rows.append(("fit", _quality(fit.chi_square), f"degree {fit.degree}"))
    return rows


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
    """Render the exponents beside known values, then every power law that was fitted, and notes."""
    head = ("exponent", "", "from", "L_min", "chi2/dof", "p-value", "known", "difference")
    parts = [aligned([head, *(_exponent_row(item) for item in found.exponents)])]
    rows: list[tuple[str, ...]] = [
        ("power law", "", "of", "L_min", "correction", "chi2/dof", "p-value", "")
    ]
    for item in found.exponents:
        for law in item.fits:
            value = math.copysign(law.exponent, item.value)
            rows.append(
                (
                    item.name,
                    format_with_error(value, law.error),
                    item.source,
                    str(law.min_size),
                    "b" if law.with_correction else "none",
                    *_quality_cells(law.chi_square),
                    "chosen" if law is item.law else "",
                )
            )
    parts.append(aligned(rows))
    return "\n\n".join([*parts, *_notes(found.notes)])


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
    p_c = format_with_error(found.drift.threshold, found.drift.threshold_error)
    return (
        f"{text}\np_c = {p_c} from their drift, chi2/dof {chi_square_text(found.drift.chi_square)}"
    )


def sample_table(found: SampleThresholds) -> str:
    """Render the thresholds of single T: every size, the extrapolations, and cell to cell."""
    rows: list[tuple[str, ...]] = [("L", "samples", "mean T", "median T", "width of T")]
    for size in found.sizes:
        numbers = zip((size.mean, size.median, size.width), size.errors, strict=True)
        cells = (format_with_error(value, float(error)) for value, error in numbers)
        rows.append((str(size.L), str(size.samples), *cells))
    parts = [aligned(rows)] if found.sizes else []
    if found.extrapolations:
        parts.append(
            aligned(
                [
                    ("p_c", "", "1/nu", "correction", "chi2/dof", "p-value"),
                    *(
                        (
                            format_with_error(item.threshold, item.threshold_error),
                            f"{item.estimator} T",
                            format_with_error(item.y_t, item.y_t_error),
                            "L^-omega" if item.with_correction else "none",
                            *_quality_cells(item.chi_square),
                        )
                        for item in found.extrapolations
                    ),
                ]
            )
        )
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
        shown, difference = f"{number} ({known.reference})", f"{item.difference:+.1f} sigma"
    quality = _quality_cells(item.law.chi_square) if item.law else ("", "")
    return (
        item.name,
        format_with_error(item.value, item.error),
        item.source,
        str(item.law.min_size) if item.law else "",
        *quality,
        shown,
        difference,
    )


def quantity_table(found: QuantityAnalysis, *, every: bool = False) -> str:
    """Render p_c with both errors, the numbers of each quantity, the table of fits and the notes.

    every: show all models of every cut-off.
    """
    shown = [trial for trial in found.trials if every or trial.shown]
    parts = [
        aligned(_joint_headline(found)),
        aligned(_quantity_rows(found)),
        aligned([_fit_head(), *(_fit_row(trial, found.chosen) for trial in shown)]),
        aligned(_value_rows(found, shown, "Q_c")),
    ]
    if any(trial.fit.choice.corrections != "none" for trial in shown):
        parts.append(aligned(_value_rows(found, shown, "b")))
    if len(found.quantities) > 1:
        parts.insert(2, aligned(_alone_rows(found)))
    return "\n\n".join([*parts, *_notes(found.notes)])


def _joint_headline(found: QuantityAnalysis) -> list[tuple[str, ...]]:
    fit, mean = found.chosen.fit, found.mean
    kind = "statistical error" if len(found.quantities) == 1 else "joint fit, statistical error"
    rows: list[tuple[str, ...]] = [
        ("p_c", format_with_error(fit.threshold, fit.threshold_error), kind)
    ]
    if math.isfinite(found.systematic_error):
        text = f"+- {found.systematic_error:.2g}"
        rows.append(("", text, f"systematic: spread of {found.compared} other accepted fits"))
    else:
        rows.append(("", "", "no other fit is accepted that could tell of a systematic error"))
    if mean is not None:
        rows += [
            ("", format_with_error(mean.threshold, mean.error), "mean of the quantities alone"),
            ("", f"+- {mean.spread:.2g}", "their spread about it"),
        ]
    quality = fit.chi_square
    sizes = ", ".join(map(str, fit.sizes))
    rows += [
        ("1/nu", format_with_error(fit.y_t, fit.y_t_error), ""),
        (
            "fit",
            f"chi2/dof {chi_square_text(quality)}",
            f"p-value {p_value_text(quality)}, L = {sizes}, {_terms_of(fit)}",
        ),
    ]
    return rows


def _terms_of(fit: QuantityFit) -> str:
    return f"degree {fit.choice.degree}, corrections {_TERMS[fit.choice.corrections]}"


def _quantity_rows(found: QuantityAnalysis) -> list[tuple[str, ...]]:
    """Return a row for each quantity: its numbers in the joint fit, and theory."""
    has_theory = any(item is not None for item in found.known)
    head = ["quantity", "", "Q_c", "theory", "", "a_1", "b", "omega", "c", "b_2"]
    rows: list[tuple[str, ...]] = [tuple(head)]
    known = found.known or (None,) * len(found.quantities)
    fits = zip(found.quantities, found.chosen.fit.amplitudes, known, strict=True)
    for quantity, own, exact in fits:
        away = (own.critical - exact.value) / own.critical_error if exact else 0.0
        rows.append(
            (
                own.name,
                quantity.symbol,
                format_with_error(own.critical, own.critical_error),
                f"{exact.value:.6g}" if exact else "",
                f"{away:+.1f} sigma" if exact else "",
                format_with_error(own.slopes[0], own.slope_errors[0]),
                format_with_error(own.correction, own.correction_error),
                _omega(own),
                format_with_error(own.mixed, own.mixed_error),
                format_with_error(own.second, own.second_error),
            )
        )
    # A column in which no quantity has anything is left out.
    keep = [
        column
        for column in range(len(head))
        if any(row[column] not in ("", "-") for row in rows[1:])
        and (has_theory or column not in (3, 4))
    ]
    return [tuple(row[column] for column in keep) for row in rows]


def _alone_rows(found: QuantityAnalysis) -> list[tuple[str, ...]]:
    """Return a row for the chosen fit of each quantity alone."""
    head = (
        "alone",
        "p_c",
        "weight",
        "L_min",
        "degree",
        "corrections",
        "omega",
        "chi2/dof",
        "p-value",
    )
    rows: list[tuple[str, ...]] = [(*head, "")]
    for index, (quantity, trial) in enumerate(zip(found.quantities, found.alone, strict=True)):
        if trial is None:
            rows.append((quantity.name, *["-"] * 8, ""))
            continue
        fit = trial.fit
        weight = f"{found.mean.weights[index]:.2f}" if found.mean and trial.accepted else "-"
        rows.append(
            (
                quantity.name,
                format_with_error(fit.threshold, fit.threshold_error),
                weight,
                str(fit.min_size),
                str(fit.choice.degree),
                _TERMS[fit.choice.corrections],
                _omegas(fit),
                chi_square_text(fit.chi_square),
                p_value_text(fit.chi_square),
                "" if trial.accepted else "rejected",
            )
        )
    return rows


def _omega(own: Amplitudes) -> str:
    if not math.isfinite(own.correction):
        return "-"
    return format_with_error(own.omega, own.omega_error)


def _fit_head() -> tuple[str, ...]:
    return (
        "L_min", "degree", "corrections", "omega", "p_c", "1/nu", "chi2/dof", "p-value", "drop", "",
    )  # fmt: skip


def _fit_row(trial: QuantityTrial, chosen: QuantityTrial) -> tuple[str, ...]:
    fit = trial.fit
    marks = [
        "chosen" if trial is chosen else "",
        "" if trial.accepted else "rejected",
    ]
    return (
        str(fit.min_size),
        str(fit.choice.degree),
        _TERMS[fit.choice.corrections],
        _omegas(fit),
        format_with_error(fit.threshold, fit.threshold_error),
        format_with_error(fit.y_t, fit.y_t_error) + ("" if fit.choice.y_t is None else " held"),
        chi_square_text(fit.chi_square),
        p_value_text(fit.chi_square),
        f"{trial.drop:.2g}" if math.isfinite(trial.drop) else "-",
        " ".join(mark for mark in marks if mark),
    )


def _omegas(fit: QuantityFit) -> str:
    """Write the different omegas of a fit."""
    if fit.choice.corrections == "none":
        return "-"
    return ", ".join(dict.fromkeys(_omega(own) for own in fit.amplitudes))


def _value_rows(
    found: QuantityAnalysis, shown: list[QuantityTrial], what: str
) -> list[tuple[str, ...]]:
    """Return Q_c or b of every quantity for every row of the table of fits."""
    rows: list[tuple[str, ...]] = [
        ("L_min", "degree", "corrections", *(f"{what} {item.name}" for item in found.quantities))
    ]
    for trial in shown:
        fit = trial.fit
        numbers = [
            (own.critical, own.critical_error)
            if what == "Q_c"
            else (own.correction, own.correction_error)
            for own in fit.amplitudes
        ]
        rows.append(
            (
                str(fit.min_size),
                str(fit.choice.degree),
                _TERMS[fit.choice.corrections],
                *(format_with_error(*pair) for pair in numbers),
            )
        )
    return rows


def spin_table(found: SpinFit, *, every: bool = False) -> str:
    """Render the transition of spins: p_c, coupling and T, exponents, the joint fit, and warnings.

    every: show all models of every cut-off.
    """
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
    parts.append(quantity_table(found.joint, every=every))
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
    quality = chi_square_text(found.joint.chosen.fit.chi_square)
    return [f"{'  '.join(texts)}  (chi2/dof {quality}, from {names})", *_start_notes(found)]


_SPIN_HEAD = ("exponent", "value", "L_min", "published", "")


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
    known = ("", "")
    if item.known is not None:
        sigma = (item.value - item.known.value) / math.hypot(item.error, item.known.error)
        known = f"{item.known.value:.6g}", f"{sigma:+.1f} sigma"
    return (item.name, format_with_error(item.value, item.error), str(item.smallest_size), *known)


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
    if found.limit is not None:
        limit = found.limit
        value = format_with_error(limit.value, limit.error)
        about = f"L >= {limit.smallest_size}, chi2/dof {chi_square_text(limit.chi_square)}"
        lines += ["", f"weight/site of the infinite lattice  {value}  ({about})"]
    for letter, line in found.exponents.items():
        value = format_with_error(line.z, line.error)
        about = f"L >= {line.smallest_size}, chi2/dof {chi_square_text(line.chi_square)}"
        lines.append(f"path_{letter} ~ L^D  D = {value}  ({about})")
    return "\n".join([*lines, *_notes(found.notes)])


def _mean_text(mean: Mean) -> str:
    return format_with_error(mean.value, mean.error)
