"""A joint fit of dimensionless quantities as text: p_c, the quantities, the table of fits."""

from __future__ import annotations

import math

from percolab.analysis.quantity_fit import Amplitudes, QuantityFit
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.quantity_trials import QuantityTrial
from percolab.analysis.table import aligned, format_with_error, p_value_text

#: What a table calls the corrections.
_TERMS = {"none": "none", "b": "b", "bc": "b, c", "b2": "b, b_2", "bc2": "b, c, b_2"}


def quantity_table(found: QuantityAnalysis, *, every: bool = False) -> str:
    """Render p_c with both errors, the numbers of each quantity, the table of fits and the notes.

    every: show all models of every cut-off.
    """
    shown = [trial for trial in found.trials if every or trial.shown]
    parts = [
        aligned(_headline(found)),
        aligned(_quantity_rows(found)),
        aligned([_fit_head(), *(_fit_row(trial, found.chosen) for trial in shown)]),
        aligned(_value_rows(found, shown, "Q_c")),
    ]
    if any(trial.fit.choice.corrections != "none" for trial in shown):
        parts.append(aligned(_value_rows(found, shown, "b")))
    if len(found.quantities) > 1:
        parts.insert(2, aligned(_alone_rows(found)))
    if found.notes:
        parts.append("\n".join(f"note: {note}" for note in found.notes))
    return "\n\n".join(parts)


def _headline(found: QuantityAnalysis) -> list[tuple[str, ...]]:
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
            f"chi2/dof {quality.value:.1f}/{quality.dof}",
            f"p-value {p_value_text(quality)}, L = {sizes}, {_model(fit)}",
        ),
    ]
    return rows


def _model(fit: QuantityFit) -> str:
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
                f"{fit.chi_square.value:.1f}/{fit.chi_square.dof}",
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
        f"{fit.chi_square.value:.1f}/{fit.chi_square.dof}",
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
