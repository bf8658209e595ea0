"""The figures of what is not a curve of one number: cluster numbers, and the ways to wrap."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.analysis import AnalysisError
from percolab.analysis.radii import fit_radius
from percolab.analysis.stored_data import gyration_sums_of, has_sizes, size_counts_of
from percolab.analysis.stored_fits import tau_at
from percolab.analysis.theory.critical import critical_probability
from percolab.errors import InputError
from percolab.figures.cluster_numbers import plot_sizes
from percolab.figures.math_text import symbol_text
from percolab.figures.radii import plot_gyration
from percolab.figures.study_view import StudyView
from percolab.figures.wrapping import WrappingCurve, WrappingPanel, plot_wrapping
from percolab.measure.observables import observables_of, wrapping_names

Drawn = tuple[Any, dict[str, Any]]


def _how_to_measure(figures: StudyView, word: str) -> str:
    """Return how a sweep measures what a word of --measure stands for."""
    by_grid = " and --method grid" if figures.study.method == "threshold" else ""
    return f"sweep with --measure {word}{by_grid}"


def no_sizes(figures: StudyView) -> str | None:
    """Return why cluster numbers cannot be drawn, or None if they can."""
    if any(map(has_sizes, figures.measured())):
        return None
    return f"clusters of every size were not counted: {_how_to_measure(figures, 'sizes')}"


def draw_sizes(figures: StudyView) -> Drawn:
    """Draw n_s at the p_c of the fit with its tau; without a fit at a p of the grid."""
    counts = size_counts_of(figures.results)
    try:
        fit = figures.fit
    except (AnalysisError, InputError):
        threshold, source = _taken_for_threshold(figures)
        error = y_t = quality = None
        try:
            fisher = tau_at(figures.results, threshold)
        except AnalysisError:
            fisher = None
    else:
        threshold, error, y_t = fit.threshold, fit.threshold_error, fit.y_t
        quality = fit.chi_square
        source = "the fit of all sizes"
        fisher = figures.exponents.tau_fit if figures.exponents is not None else None
    figure, numbers = plot_sizes(
        counts,
        threshold=threshold,
        error=error,
        title=figures.head["title"],
        fisher=fisher,
        y_t=y_t,
        quality=quality,
    )
    return figure, numbers | {"threshold_source": source}


def _taken_for_threshold(figures: StudyView) -> tuple[float, str]:
    """Return the grid point of the largest size that is taken for p_c, and why it is."""
    largest = figures.measured("grid")[-1]
    p = np.array(largest.task.p)
    known = figures.head["exact"]
    if known is not None and p[0] <= known[0] <= p[-1]:
        at = int(np.argmin(np.abs(p - known[0])))
        return float(p[at]), "the p nearest to the published threshold, without an error"
    at = int(np.argmax(largest.column("second_largest").sum(axis=0)))
    return float(p[at]), "the p at which the second largest cluster is largest, without an error"


def no_gyration(figures: StudyView) -> str | None:
    """Return why radii cannot be drawn, or None if they can."""
    if not figures.study.lattice.is_scalable:
        return f"{figures.study.lattice.name} has no coordinates"
    if not any("gyration" in item.task.measure for item in figures.measured()):
        return f"radii of clusters were not measured: {_how_to_measure(figures, 'gyration')}"
    # A cluster of two sites that neither wraps nor spans has a radius; single sites have none.
    if not any(item.spreads.any() for item in gyration_sums_of(figures.results)):
        return "no cluster of two sites or more ends inside the lattice, so there are no radii"
    return None


def draw_gyration(figures: StudyView) -> Drawn:
    """Draw R_s at the p nearest to p_c with its d_f, of the largest size, and xi at every p."""
    sums = gyration_sums_of(figures.results)
    try:
        threshold, source = figures.fit.threshold, "the fit of all sizes"
    except (AnalysisError, InputError):
        threshold, source = _taken_for_threshold(figures)
    try:
        dimension = figures.study.lattice.dimension
        radius = fit_radius(sums[-1], threshold=threshold, dimension=dimension)
    except AnalysisError:
        radius = None
    figure, numbers = plot_gyration(sums, threshold=threshold, radius=radius, **figures.head)
    return figure, numbers | {"threshold_source": source}


def no_wrapping(figures: StudyView) -> str | None:
    """Return why the ways to wrap cannot be drawn, or None if they can."""
    if not wrapping_names(figures.study.boundary):
        return "no axis is periodic"
    if not figures.measured("grid"):
        return "what wraps is measured on a grid of p, not by method threshold"
    return None if _wrapping(figures) else "the file is from before wrapping was measured"


def _wrapping(figures: StudyView) -> list[str]:
    """Return the wrapping observables that all tasks have."""
    known = wrapping_names(figures.study.boundary)
    items = figures.measured("grid")
    stored = [{each.name for each in item.observables} for item in items]
    return [name for name in known if items and all(name in own for own in stored)]


def draw_wrapping(figures: StudyView) -> Drawn:
    """Draw the probability of every way to wrap, with its exact value at p_c in two dimensions."""
    study = figures.study
    known = {item.name: item for item in observables_of(study.boundary)}
    panels = [
        WrappingPanel(
            name=name,
            meaning=known[name].meaning,
            symbol=symbol_text(known[name].symbol),
            curves=[
                WrappingCurve(
                    item.task.size,
                    item.num_samples,
                    np.array(item.task.p),
                    item.column(name).sum(axis=0),
                )
                for item in figures.measured("grid")
            ],
            known=critical_probability(study.lattice, study.boundary, name),
        )
        for name in _wrapping(figures)
    ]
    sites = {item.task.size: item.task.num_sites for item in figures.measured()}
    return plot_wrapping(panels, num_sites=sites, **figures.head)
