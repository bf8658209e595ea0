"""Threshold fits as aligned text, numbers in the field's short form 0.65271(13)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from percolab.analysis.cutoff import Trial, choose_fit
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.maxima import SizeEstimates
from percolab.analysis.result import ThresholdFit


def format_with_error(value: float, error: float) -> str:
    """Write a value with its one-sigma error in units of the last digits, two digits of error.

    An error that is zero or not finite is left out; an absent value is "-".

    >>> format_with_error(0.652706, 0.000131)
    '0.65271(13)'
    >>> format_with_error(12.34, 1.42)
    '12.3(1.4)'
    """
    if not math.isfinite(value):
        return "-"
    if not math.isfinite(error) or error <= 0:
        return f"{value:.6g}"
    # Two digits after rounding: 0.0996 is 0.10, not 0.100.
    exponent = int(f"{error:.1e}".split("e")[1])
    decimals = 1 - exponent
    if decimals < 0:
        return f"{round(value, decimals):.0f}({round(error, decimals):.0f})"
    shown = f"{error:.{decimals}f}" if exponent >= 0 else f"{error * 10**decimals:.0f}"
    return f"{value:.{decimals}f}({shown})"


def fit_table(fit: ThresholdFit) -> str:
    """Render a fit for a terminal: the threshold, the fit, each size, the crossings, the notes."""
    parts = [
        aligned(_headline_rows(fit)),
        aligned([("L", "samples", "points", "p range", "chi2/dof", "p-value"), *_size_rows(fit)]),
        aligned([("L1", "L2", "crossing p", "R at crossing"), *_crossing_rows(fit)]),
    ]
    if fit.notes:
        parts.append("\n".join(f"note: {note}" for note in fit.notes))
    return "\n\n".join(parts)


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
                f"{quality.value:.1f}/{quality.dof}",
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
            f"{own.chi_square.value:.1f}/{own.chi_square.dof}",
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


def _quality(quality: ChiSquare) -> str:
    return f"chi2/dof {quality.value:.1f}/{quality.dof}, p-value {p_value_text(quality)}"


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
