"""Figures of stored results: what is drawn for a study, from its results alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from percolab.analysis import AnalysisError, ThresholdFit
from percolab.plots import plot_spanning
from percolab.spanning import curves_of, default_observable
from percolab.storage import Results


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
    known = study.lattice.threshold(study.model)
    exact = None
    if known is not None:
        exact = (
            known.value,
            f"{known.expression or 'published'} [{known.cite or known.reference}]",
        )
    try:
        fit = fitted()
        shown = tuple(curve for curve in fit.curves if sizes is None or curve.L in sizes)
        drawn: Any = replace(fit, curves=shown)
    except AnalysisError:
        drawn = curves_of(results, name)
    figure, numbers = plot_spanning(
        drawn,
        title=f"Bond percolation, {study.lattice.title}",
        axis_label=f"spanning probability $R_{{{name.removeprefix('spanning_')}}}(p)$",
        exact=exact,
        num_sites={item.task.size: item.task.num_points for item in results.tasks.values()},
    )
    return figure, numbers | {"observable": name}
