"""Every fit of stored results: p_c, exponents, collapses, single thresholds, several quantities.

Options that are not given follow from the dimension and boundary of the study.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

import percolab.analysis.stored_data as stored
from percolab.analysis.collapse import CLUSTER_QUANTITIES, Collapse, Measured, collapse_curves
from percolab.analysis.crossings import RatioCrossings, ratio_crossings, transition_width
from percolab.analysis.exponents import ExponentFit, GivenThreshold, fit_exponents
from percolab.analysis.maxima import (
    MOST_BONDS,
    SizeEstimates,
    estimate_size,
    measure_robustness,
    network_bounds,
)
from percolab.analysis.quantities import (
    PROBABILITY,
    BlockMoments,
    Quantity,
    choose_quantities,
    correction_exponents,
    find_block_lack,
    find_lack,
    least_sizes,
)
from percolab.analysis.quantity_fits import JointInput, QuantityAnalysis, analyse_quantities
from percolab.analysis.sample_thresholds import SampleThresholds, analyse_samples
from percolab.analysis.study_kinds import find_analysis
from percolab.analysis.tau import TauFit, fit_tau
from percolab.analysis.theory.critical import critical_probability
from percolab.analysis.theory.known_exponents import Known, correction_exponent
from percolab.analysis.theory.potts import CONJECTURE, potts_exponents
from percolab.analysis.threshold import ThresholdFit, fit_threshold
from percolab.analysis.value import Value
from percolab.errors import AnalysisError, InputError
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.removal import ADAPTIVE, RANDOM, has_one_order
from percolab.measure.columns import axis_observables, open_axes
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: Whether the 1/nu of the universality class, where one is known, is a prior of p_c.
Prior = Literal["known", "free"]


def fit_results(
    results: StoredResults,
    observable: str | None = None,
    *,
    omega: float | None = None,
    nu: Prior = "known",
    **options: Any,
) -> ThresholdFit:
    """Fit p_c to stored results (see :func:`percolab.analysis.fit_threshold` for the options).

    omega: exponent of the leading correction, by default
    :func:`percolab.analysis.theory.known_exponents.correction_exponent`.  nu: "known" takes 1/nu of
    the universality class as a prior of p_c, "free" does not.
    """
    study = results.study
    _check_scalable(study)
    name = stored.choose_observable(results, observable)
    omega, source = _correction(study.boundary, omega)
    y_t, class_notes = class_exponent(study, nu)
    fit = fit_threshold(stored.read_curves(results, name), omega=omega, y_t=y_t, **options)
    known = critical_probability(study.structure, study.boundary, name, study.model)
    notes = (*list_notes(results), *class_notes, *fit.notes)
    return replace(fit, known_probability=known, omega_source=source, notes=notes)


def class_exponent(study: Study, nu: Prior) -> tuple[Known | None, tuple[str, ...]]:
    """Return the known 1/nu of the universality class, None if free, and notes."""
    if not isinstance(nu, str) or nu not in ("known", "free"):
        raise InputError(f"nu = {nu!r}, but it must be 'known' or 'free'")
    if nu == "free":
        return None, ()
    dimension = len(study.boundary)
    known = potts_exponents(dimension, study.states).get("1/nu")
    what = f"{study.model} in {dimension} dimension{'s' * (dimension != 1)}"
    note = f"1/nu of {what} is not known here: it is fitted along with p_c"
    return known, () if known else (note,)


def choose_scaling(study: Study) -> dict[str, Any]:
    """Return omega and the known 1/nu of a default fit, as options of `fit_threshold`."""
    return {"omega": _correction(study.boundary)[0], "y_t": class_exponent(study, "known")[0]}


def list_notes(results: StoredResults) -> tuple[str, ...]:
    """Return the warnings on any p_c of these samples: sizes that cut unit cells differently.

    Then the correction by an open side is not a single function of L, and no fit describes it.
    """
    study = results.study
    if not isinstance(study.structure, Lattice):
        return ()
    sizes = sorted({result.task.size for result in results.measured})
    for axis, (kind, cell) in enumerate(zip(study.boundary, study.structure.cell, strict=True)):
        rests = {study.structure.shape(size)[axis] % cell for size in sizes}
        if kind == "open" and len(rests) > 1:
            return (
                f"L = {', '.join(map(str, sizes))} cut the unit cell of {cell} points differently "
                f"at open sides: p_c may be off by many errors; use multiples of {cell}",
            )
    return ()


def _correction(boundary: Sequence[str], omega: float | None = None) -> tuple[float, str]:
    """Return the exponent of the corrections, and its source in a few words."""
    if omega is not None:
        return omega, "given"
    known = correction_exponent(len(boundary), periodic=not open_axes(boundary))
    return known.value, f"{known.expression} ({known.reference})"


def _check_scalable(
    study: Study, so: str = ": its thresholds are those of each size alone"
) -> None:
    if not study.structure.is_scalable:
        raise AnalysisError(f"{study.structure.name} has no sizes that scale{so}")


def compute_exponents(
    results: StoredResults, fit: ThresholdFit | GivenThreshold, *, bootstrap: int = 200
) -> ExponentFit:
    """Return the exponents at the p_c of a fit; AnalysisError: the fit has a problem."""
    _check_scalable(results.study)
    if isinstance(fit, ThresholdFit) and fit.problem is not None:
        raise AnalysisError(f"no exponents, which are measured at p_c: {fit.problem}")
    return fit_exponents(
        fit,
        stored.read_cluster_curves(results),
        dimension=results.study.structure.dimension,
        numbers=stored.read_size_counts(results),
        flows=stored.read_flow_moments(results),
        is_open=bool(open_axes(results.study.boundary)),
        bootstrap=bootstrap,
    )


def only_threshold(results: StoredResults) -> GivenThreshold | None:
    """Return the p of a study that has only one, which its exponents use as p_c, or None."""
    if find_analysis(results.study).no_curve or not results.study.boundary:
        return None
    results_of_tasks = results.tasks.values()
    grids = {each.task.p for each in results_of_tasks if each.blocks and each.holds_columns}
    given = grids.pop() if len(grids) == 1 else ()
    if len(given) != 1:
        return None
    return GivenThreshold(given[0], _correction(results.study.boundary)[0])


def cross_ratios(
    results: StoredResults, fit: ThresholdFit, *, bootstrap: int = 200
) -> RatioCrossings | None:
    """Return the crossings of <s_1>^2/<s_1^2> near a p_c, None without cluster sizes."""
    clusters = [curve for curve in stored.read_cluster_curves(results) if curve.L in fit.sizes]
    if len({curve.L for curve in clusters}) < 2:
        return None
    return ratio_crossings(
        clusters,
        near=fit.threshold,
        omega=fit.omega,
        y_t=fit.y_t,
        width=transition_width(fit.by_size.fits, fit.threshold, fit.y_t),
        bootstrap=bootstrap,
    )


def read_sample_thresholds(
    results: StoredResults,
    observable: str | None = None,
    *,
    omega: float | None = None,
    min_size: int | None = None,
) -> SampleThresholds | None:
    """Return results from T of single samples, None of other methods; options as fit_results."""
    _check_scalable(results.study)
    if not results.study.kind.codec.holds_thresholds:
        return None
    name = observable or stored.default_observable(results)
    thresholds, curves = stored.read_single_thresholds(results, name, min_size)
    return analyse_samples(thresholds, curves, omega=_correction(results.study.boundary, omega)[0])


def compute_collapse(
    results: StoredResults,
    observable: str | None = None,
    *,
    threshold: float | Value | None = None,
    y_t: float | None = None,
    exponent: float | None = None,
    min_size: int | None = None,
    reach: float | None = None,
    bootstrap: int = 50,
) -> Collapse:
    """Return the data collapse of an observable (:mod:`percolab.analysis.collapse`).

    observable: a probability by its name, or "largest" (P_inf), "second_largest" or "chi".
    threshold, y_t, exponent: p_c, 1/nu and kappa of y = A L^-kappa; those not given are fitted,
    except that a probability has kappa = 0. min_size: smallest L. reach: largest |x|. bootstrap:
    replicas for the errors, 0 for none; the error of a p_c given as a Value enters the others.
    InputError: no such observable. AnalysisError: too few sizes.
    """
    _check_scalable(results.study)
    name = observable or stored.default_observable(results)
    is_cluster = name in CLUSTER_QUANTITIES
    if is_cluster:
        every = [Measured.of_clusters(curve, name) for curve in stored.read_cluster_curves(results)]
    else:
        cut = [Measured.of_spanning(curve) for curve in stored.read_curves(results, name)]
        every = [own for own in cut if own is not None]
    measured = [own for own in every if min_size is None or min_size <= own.L]
    given = threshold if isinstance(threshold, Value) else Value(threshold or 0.0, 0.0)
    p_c, inverse_nu = None if threshold is None else given.value, y_t
    if p_c is None or inverse_nu is None:
        first: str | None = name
        if is_cluster:
            # In a study without an open axis the threshold is that of a wrapping probability.
            wraps = not axis_observables(results.study.boundary)
            first = next(iter(stored.probability_names(results)), None) if wraps else None
        begin = fit_results(results, first, min_size=min_size)
        p_c = begin.threshold if p_c is None else p_c
        inverse_nu = begin.y_t if inverse_nu is None else inverse_nu
    kappa = exponent or 0.0
    if is_cluster and exponent is None and len({own.L for own in measured}) > 1:
        # The slope of ln A(p_c) against ln L.
        at_p_c = np.array([np.interp(p_c, own.p, own.values) for own in measured])
        if (at_p_c <= 0).any():
            zero = ", ".join(str(own.L) for own, value in zip(measured, at_p_c) if value <= 0)
            raise AnalysisError(f"L = {zero}: {name} is 0 at p_c, so that no power of L scales it")
        kappa = float(np.polyfit(np.log([own.L for own in measured]), np.log(at_p_c), 1)[0])
    return collapse_curves(
        measured,
        observable=name,
        start=(p_c, inverse_nu, kappa),
        fixed=(threshold is not None, y_t is not None, exponent is not None or not is_cluster),
        reach=reach,
        bootstrap=bootstrap,
        threshold_error=given.error,
    )


def read_estimates(results: StoredResults, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of every size alone, ascending; AnalysisError: there are no blocks."""
    study, clusters = results.study, stored.read_cluster_curves(results)
    no_curve = find_analysis(study).no_curve
    coupled = bool(study.boundary) and not no_curve
    spanning = stored.read_curves(results) if coupled else []
    items = results.measured
    sites = {result.task.size: result.task.num_sites for result in items}
    if not sites:
        raise AnalysisError("no samples yet")
    if not (clusters or spanning):
        raise AnalysisError(no_curve)
    first, *others = (
        estimate_size(
            [curve for curve in clusters if size == curve.L],
            [curve for curve in spanning if size == curve.L],
            num_sites=num_sites,
            bootstrap=bootstrap,
            steps=study.order != RANDOM,
            is_exact=_is_exact(study),
        )
        for size, num_sites in sorted(sites.items())
    )
    notes, known = (*list_notes(results), *first.notes), _known_of_network(results, items)
    ordered = (replace(other, order=study.order) for other in others)
    return (replace(first, notes=notes, order=study.order, **known), *ordered)


def _is_exact(study: Study) -> bool:
    """Return whether sites or bonds are removed in one known order; that of a file is not known."""
    graph = study.structure
    if study.order in (RANDOM, *ADAPTIVE) or not isinstance(graph, Graph):
        return False
    return graph.content is not None and has_one_order(graph)


def _known_of_network(results: StoredResults, items: Sequence[TaskResult]) -> dict[str, Any]:
    study, graph, codec = results.study, results.study.structure, results.study.kind.codec
    known: dict[str, Any] = {}
    if not isinstance(graph, Graph | Ensemble):
        return known
    if len(items) == 1 and not codec.holds_columns and not codec.holds_thresholds:
        found = measure_robustness(items[0])
        known["robustness"] = Value(found.value, 0.0) if _is_exact(study) else found
    if not isinstance(graph, Graph) or graph.content is None:
        return known
    if study.model in ("bond", "site") and graph.num_bonds <= MOST_BONDS:
        known["bounds"] = network_bounds(graph)
    return known


def tau_at(results: StoredResults, threshold: float) -> TauFit:
    """Return tau from n_s at a given p_c; AnalysisError: no counted sizes, or too few blocks."""
    _check_scalable(results.study, ", and no tau")
    return fit_tau(
        stored.read_size_counts(results),
        threshold=threshold,
        dimension=results.study.structure.dimension,
        is_open=bool(open_axes(results.study.boundary)),
    )


def fit_quantities(
    results: StoredResults,
    names: Sequence[str] = ("all",),
    *,
    omega: float | None = None,
    nu: Prior = "known",
    universal: Prior = "free",
    **options: Any,
) -> QuantityAnalysis:
    """Fit p_c to several dimensionless quantities of stored results at once.

    names: of the quantities (:mod:`percolab.analysis.quantities`), or "all".  omega: exponent of
    the leading correction of all of them; by default that of each kind.  nu: as for
    :func:`fit_results`.  universal: "known" takes the known values of the quantities at p_c
    (:mod:`percolab.analysis.theory.critical`) as priors, "free" does not.  options: of
    :func:`percolab.analysis.quantity_fits.analyse_quantities`.

    InputError: no such quantity.  AnalysisError: the data cannot give a threshold.
    """
    joint = read_joint_input(results, names, omega=omega, nu=nu, universal=universal)
    fit = analyse_quantities(joint, **options)
    quantities = tuple(
        replace(value, known=known_value(results, quantity))
        for value, quantity in zip(fit.quantities, joint.quantities, strict=True)
    )
    return replace(fit, quantities=quantities, notes=(*joint.notes, *fit.notes))


def _with_enough_blocks(
    moments: Sequence[BlockMoments], chosen: Sequence[Quantity]
) -> tuple[list[BlockMoments], list[str | None]]:
    """Return the tasks whose blocks give a covariance of the quantities, and why others do not."""
    few = [find_block_lack(task.grouped(), sum(map(task.has, chosen))) for task in moments]
    return [task for task, lack in zip(moments, few, strict=True) if not lack], few


def read_joint_input(
    results: StoredResults,
    names: Sequence[str] = ("all",),
    *,
    omega: float | None = None,
    nu: Prior = "known",
    universal: Prior = "free",
) -> JointInput:
    """Return the input of a joint fit of stored results; options and errors as fit_quantities."""
    study = results.study
    _check_scalable(study, ", so no joint fit")
    chosen = choose_quantities(names, study.boundary, stored.available_quantities(results))
    moments = stored.pool_moments(results, chosen)
    lacks: list[str | None] = []
    if list(names) == ["all"]:
        lacks = [find_lack(each, moments) for each in chosen]
        # If none can be fitted, a fit of all raises the error that says why.
        chosen = tuple(x for x, lack in zip(chosen, lacks, strict=True) if not lack) or chosen
    kept, few = _with_enough_blocks(moments, chosen)
    is_open, least = list(names) == ["all"], least_sizes(moments)
    while is_open and any(few) and len(chosen) > 1 and len({task.L for task in kept}) < least:
        lacks.append(f"quantity {chosen[-1].name!r} ({next(filter(None, few))})")
        chosen = chosen[:-1]
        kept, few = _with_enough_blocks(moments, chosen)
    if len({task.L for task in kept}) < least:
        # The task with the fewest blocks is first: its error says how many quantities they allow.
        kept, few = sorted(moments, key=lambda task: task.samples.size), []
    omegas, conjectured = correction_exponents(chosen, study.boundary), []
    for n, quantity in enumerate(chosen):
        own = find_analysis(study).correction(study, quantity.name)
        if omega is not None:
            omegas[n] = omega
        elif own is not None:
            omegas[n] = own.value
            if own.reference == CONJECTURE:
                conjectured.append(f"omega = {own.value:.3g} of {quantity.name} is {CONJECTURE}")
    y_t, notes = class_exponent(study, nu)
    short = [task.L for task, lack in zip(moments, few) if lack]
    if len(short) > 1 and {task.L for task in kept}.issuperset(short):
        sizes = ", ".join(map(str, sorted(set(short))))
        few = [f"L = {sizes}: p with too few blocks for their covariance"]
    left_out = [f"{lack}: left out" for lack in (*lacks, *few) if lack]
    critical, sources = choose_critical(results, chosen, universal)
    notes = (*list_notes(results), *notes, *conjectured, *sources, *left_out)
    return JointInput(kept, chosen, omegas, y_t, critical, notes)


def choose_critical(
    results: StoredResults, chosen: Sequence[Quantity], universal: Prior
) -> tuple[tuple[Known | None, ...], tuple[str, ...]]:
    """Return the known values at p_c that are priors, and a note on them; InputError: none is."""
    if universal not in ("known", "free"):
        raise InputError(f"universal = {universal!r}, but it must be 'known' or 'free'")
    if universal == "free":
        return (), ()
    critical = tuple(known_value(results, quantity) for quantity in chosen)
    sources = sorted({known.reference for known in critical if known is not None})
    if not sources:
        raise InputError(
            "no value at p_c of these quantities is known for this lattice, model and boundary: "
            "leave universal = known out"
        )
    return critical, (f"values at p_c are priors: {'; '.join(sources)}",)


def known_value(results: StoredResults, quantity: Quantity) -> Known | None:
    """Return the known value of a quantity at p_c, for large L, or None."""
    study = results.study
    if quantity.kind != PROBABILITY or study.states > 1:
        return None
    place = study.structure, study.boundary
    parts = [critical_probability(*place, name, study.model) for name in quantity.needs]
    exact = [part for part in parts if part is not None]
    mean = sum(part.value for part in exact) / len(parts)
    return replace(exact[0], value=mean) if len(exact) == len(parts) else None
