"""Figures of stored results: what is drawn for a study, from its results alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from percolab.analysis import AnalysisError, ThresholdFit
from percolab.model import Model
from percolab.plots import Exact, plot_spanning
from percolab.plots_maxima import plot_maxima
from percolab.spanning import cluster_curves_of, curves_of, default_observable, estimates_of
from percolab.storage import Results
from percolab.structure import Structure
from percolab.study import Study


def study_figure(
    results: Results,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    bootstrap: int = 200,
) -> tuple[Any, dict[str, Any]]:
    """Return the figure of a study and every number drawn.

    Sizes that scale are drawn as :func:`spanning_figure`; those of a graph or of a Bethe lattice by
    their clusters, with the thresholds of each size alone.  AnalysisError: nothing is there yet.
    """
    study = results.study
    clusters = cluster_curves_of(results)
    if study.lattice.is_scalable or not clusters:
        if not study.boundary:
            raise AnalysisError("no samples yet")
        return spanning_figure(results, observable=observable, fitted=fitted)
    return plot_maxima(
        clusters,
        curves_of(results) if study.boundary else (),
        estimates_of(results, bootstrap=bootstrap),
        title=_title(study),
        exact=_exact(study.lattice, study.model),
    )


def _title(study: Study) -> str:
    # A dollar sign in a file's name begins no mathematics.
    name = study.lattice.title.replace("$", r"\$")
    return f"{Model.parse(study.model).title}, {name}"


def _exact(structure: Structure, model: str) -> Exact | None:
    """Return the published threshold and what is said of it, if there is one."""
    known = structure.threshold(model)
    if known is None:
        return None
    return known.value, f"{known.expression or 'published'} [{known.cite or known.reference}]"


def spanning_figure(
    results: Results,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    sizes: Sequence[int] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Return the figure of the spanning curves with the fit, and every number drawn.

    Without an estimate (one size, too few points) the curves are drawn alone.  ``sizes`` limits
    the curves drawn, not those fitted.
    """
    study = results.study
    name = observable or default_observable(results)
    try:
        fit = fitted()
        shown = tuple(curve for curve in fit.curves if sizes is None or curve.L in sizes)
        drawn: Any = replace(fit, curves=shown)
    except AnalysisError:
        drawn = curves_of(results, name)
    figure, numbers = plot_spanning(
        drawn,
        title=_title(study),
        axis_label=f"spanning probability ${_symbol_of(name)}(p)$",
        exact=_exact(study.lattice, study.model),
        num_sites={item.task.size: item.task.num_points for item in results.tasks.values()},
    )
    return figure, numbers | {"observable": name}


def _symbol_of(observable: str) -> str:
    """Return R, or R_x with what follows spanning_ as its index."""
    index = observable.removeprefix("spanning").removeprefix("_")
    return f"R_{{{index}}}" if index else "R"
