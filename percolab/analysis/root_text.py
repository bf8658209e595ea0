"""p_c from roots of P(two directions) - P(none wraps): which files ask for it, and its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from percolab.analysis.roots import RootFit, why_no_roots
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.theory.potts import critical_bond_probability
from percolab.analysis.value import Value, format_with_error, published_text
from percolab.bonds.model import Model
from percolab.lattices.lattice import library_name
from percolab.lattices.shown import Table
from percolab.lattices.structure import Structure
from percolab.store.results import StoredResults
from percolab.tasks.study import Study

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
    return made and all(len(result.task.p) == 1 for result in results.tasks.values())


def asks_for_roots(results: StoredResults) -> bool:
    """Return whether results were made by ``percolab threshold`` in two dimensions."""
    return was_searched(results) and not why_no_roots(results.study)


def difference_text(model: str) -> str:
    """Return what vanishes at a root, in words."""
    states = Model.parse(model).states
    times = f"{states} " if states > 1 else ""
    return f"P(two directions) - {times}P(none wraps)"


def known_threshold(structure: Structure, model: str) -> Known | None:
    """Return the published p_c of a model, or None; of spins that of the open bonds."""
    draw = Model.parse(model)
    if draw.has_spins:
        return critical_bond_probability(library_name(structure), draw.states)
    known = structure.threshold(model)
    if known is None:
        return None
    return Known(known.value, known.error, known.expression, known.reference)


def coupling_record(value: Value, model: str) -> dict[str, Any]:
    """Return J / kT and kT / J at p_c with their errors, as plain JSON values; {} without spins."""
    draw = Model.parse(model)
    if not draw.has_spins:
        return {}
    coupling = draw.p_to_coupling(value.value)
    error = value.error / (1 - value.value) / (2 if draw.name == "ising" else 1)
    record = {"coupling_name": draw.coupling_symbol, "coupling": coupling, "coupling_error": error}
    return record | {"temperature": 1 / coupling, "temperature_error": error / coupling**2}


def coupling_rows(value: Value, model: str) -> list[tuple[str, str, str]]:
    """Return name, value and convention of J / kT and of kT / J at p_c; [] without spins."""
    record, draw = coupling_record(value, model), Model.parse(model)
    if not record:
        return []
    coupling, temperature = (
        format_with_error(record[name], record[f"{name}_error"])
        for name in ("coupling", "temperature")
    )
    symbol = f"{draw.coupling_symbol}_c"
    return [(symbol, coupling, describe_coupling(draw)), ("T_c", temperature, "kT / J")]


def describe_coupling(model: Model) -> str:
    """Return the convention of a spin model's coupling, in formulae."""
    if model.name == "ising":
        return "H = -J sum s s', K = J / kT, p = 1 - exp(-2 K)"
    return "H = -J sum delta(s, s'), beta = J / kT, p = 1 - exp(-beta)"


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
    if fit.problem is None:
        rows += coupling_rows(fit.threshold, model)
    known = known_threshold(structure, model)
    if known is not None:
        rows.append(("", "", published_text(known, fit.threshold if fit.problem is None else None)))
    roots = [
        (root.size, str(root.value), f"{weight:.2f}", f"{root.slope:.4g}", root.samples)
        for root, weight in zip(fit.roots, fit.weights, strict=True)
    ]
    heads = ("L", "root", "weight", "dD/dp", "samples")
    tables = Table((), rows).to_text(), Table(heads, roots, fit.notes).to_text()
    return "\n\n".join([*filter(None, [fit.problem]), *tables])


def root_record(study: Study, fit: RootFit) -> dict[str, Any]:
    """Return the answer as plain JSON values; of spins with J / kT and kT / J."""
    own = {"lattice": study.structure.name, "model": study.model}
    couplings = {} if fit.problem else coupling_record(fit.threshold, study.model)
    return own | fit.to_dict() | couplings


def describe_drift(fit: RootFit) -> str:
    """Return the drift whose amplitudes have priors, in a formula."""
    fourth, second = fit.drift.fourth, fit.drift.second
    if not second:
        return f"C/L^4, C = 0 +- {fourth:g}"
    return f"C/L^4 + (A + B ln L)/L^2, C = 0 +- {fourth:g}, A and B = 0 +- {second:g}"
