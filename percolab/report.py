"""Figures of stored results: what is drawn for a study, from its results alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from percolab.analysis import AnalysisError, ThresholdFit
from percolab.plots import plot_spanning
from percolab.storage import Results
from percolab.sweep import curves_of, default_observable


def spanning_figure(
    results: Results,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    sizes: Sequence[int] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Return the figure of the spanning curves with the fit, and every number drawn.

    Without an estimate (one size, too few points) the curves are drawn alone.
    """
    study = results.study
    name = observable or default_observable(results)
    known = study.lattice.threshold(study.model)
    exact = None
    if known is not None:
        exact = (known.value, f"{known.expression or 'published'} [{known.reference}]")
    try:
        drawn: Any = fitted()
    except AnalysisError:
        drawn = curves_of(results, name)
    figure, numbers = plot_spanning(
        drawn,
        title=f"Bond percolation, {study.lattice.title}",
        axis_label=name.removeprefix("spanning_"),
        exact=exact,
        num_sites={item.task.size: item.task.num_points for item in results.tasks.values()},
    )
    return figure, numbers | {"observable": name}
