"""Exponents, data collapses and the thresholds of single T as aligned text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from percolab.analysis.collapse import POOR_COLLAPSE, Collapse
from percolab.analysis.exponents import Exponent, ExponentFit
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.ratio_crossings import RatioCrossings
from percolab.analysis.sample_thresholds import SampleThresholds
from percolab.analysis.table import aligned, format_with_error, p_value_text


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
                    *_quality(law.chi_square),
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
    return f"{text}\np_c = {p_c} from their drift, chi2/dof {_quality(found.drift.chi_square)[0]}"


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
                            *_quality(item.chi_square),
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
    quality = _quality(item.law.chi_square) if item.law else ("", "")
    return (
        item.name,
        format_with_error(item.value, item.error),
        item.source,
        str(item.law.min_size) if item.law else "",
        *quality,
        shown,
        difference,
    )


def _quality(quality: ChiSquare) -> tuple[str, str]:
    return f"{quality.value:.1f}/{quality.dof}", p_value_text(quality)


def _notes(notes: Sequence[str]) -> list[str]:
    return ["\n".join(f"note: {note}" for note in notes)] if notes else []
