"""p_c from roots of P(two directions) - P(none wraps): which files ask for it, and its table."""

from __future__ import annotations

from collections.abc import Mapping

from percolab.analysis.roots import RootFit, why_no_roots
from percolab.lattices.shown import Table
from percolab.lattices.structure import Structure
from percolab.store.results import StoredResults

#: Why a threshold study has no curves: its p are few, and near p_c.
NO_CURVES = (
    "the samples are at a few p next to p_c, for the roots of P(two directions) - P(none wraps); "
    "a curve takes percolab sweep --boundary periodic"
)


def was_searched(results: StoredResults) -> bool:
    """Return whether results were made by ``percolab threshold``, and hold nothing else.

    Such a file may be extended by a sweep over many p; then its curves are of use as well.
    """
    made = any(
        isinstance(run.get("asked"), Mapping) and "threshold" in run["asked"]
        for run in results.runs
    )
    return made and all(len(item.task.p) == 1 for item in results.tasks.values())


def asks_for_roots(results: StoredResults) -> bool:
    """Return whether results were made by ``percolab threshold`` in two dimensions."""
    return was_searched(results) and not why_no_roots(results.study)


def root_table(fit: RootFit, structure: Structure, model: str) -> str:
    """Render p_c with both parts of its error, the published value, the roots, and notes."""
    value, statistical, systematic = fit.threshold.cells
    rows = [
        ("p_c", value, "whole error"),
        ("", statistical, "of it statistical"),
        ("", systematic, f"systematic: drift of the roots, {describe_drift(fit)}"),
    ]
    if fit.problem is not None:
        rows = [("p_c", f"{fit.threshold.value:.4g}?", "no answer, see above")]
    elif fit.threshold.quality.dof:
        rows.append(("roots", "", f"agree with this drift, {fit.threshold.quality}"))
    known = structure.threshold(model)
    if known is not None:
        named = f"{known.expression}  ({known.reference})".strip()
        away = (fit.threshold.value - known.value) / fit.threshold.error
        shown = f": {away:+.1f} sigma" if fit.problem is None else ""
        rows.append(("published", f"{known.value:.12g}", f"{named}{shown}"))
    roots = [
        (root.size, str(root.value), f"{weight:.2f}", f"{root.slope:.4g}", root.samples)
        for root, weight in zip(fit.roots, fit.weights, strict=True)
    ]
    tables = [
        Table((), rows).to_text(),
        Table(("L", "root", "weight", "dD/dp", "samples"), roots, fit.notes).to_text(),
    ]
    return "\n\n".join([*([fit.problem] if fit.problem else []), *tables])


def describe_drift(fit: RootFit) -> str:
    """Return the drift whose amplitudes have priors, in a formula."""
    fourth, second = fit.drift.fourth, fit.drift.second
    if not second:
        return f"C/L^4, C = 0 +- {fourth:g}"
    return f"C/L^4 + (A + B ln L)/L^2, C = 0 +- {fourth:g}, A and B = 0 +- {second:g}"
