"""Figures of stored results: which there are, and what is drawn, from the results alone.

A kind of figure is one entry of KINDS: what it shows, why results may not give it, how it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from percolab.analysis import AnalysisError, Collapse, ExponentFit, ThresholdFit
from percolab.analysis.exponents import MIN_REPLICAS
from percolab.figure_data import cluster_means, threshold_sample
from percolab.kernels.open_bonds import NEVER
from percolab.model import Model
from percolab.plots import Exact
from percolab.plots_clusters import plot_clusters
from percolab.plots_collapse import plot_collapse
from percolab.plots_maxima import plot_maxima
from percolab.plots_spanning import plot_drift, plot_spanning
from percolab.plots_thresholds import plot_thresholds
from percolab.spanning import (
    cluster_curves_of,
    collapse_of,
    curves_of,
    default_observable,
    estimates_of,
    exponents_of,
)
from percolab.storage import Results
from percolab.stored_tasks import TaskResult
from percolab.structure import Structure
from percolab.study import Study
from percolab.toml_input import InputError, nearest

Drawn = tuple[Any, dict[str, Any]]

#: Cluster sizes that are collapsed: the exponent that does it, and its sign as a power of L.
_COLLAPSED = {"largest": ("beta/nu", -1), "chi": ("gamma/nu", 1)}


@dataclass(eq=False)
class StudyFigures:
    """Stored results with the options that their figures share.

    observable: a spanning observable, None for the default.  fitted: gives the fit, or raises
    AnalysisError; called once at most.  bootstrap: replicas of the thresholds of single sizes.
    """

    results: Results
    fitted: Callable[[], ThresholdFit]
    observable: str | None = None
    bootstrap: int = 200

    @property
    def study(self) -> Study:
        """What was sampled."""
        return self.results.study

    @cached_property
    def name(self) -> str:
        """The probability drawn; InputError where there is none."""
        return self.observable or default_observable(self.results)

    @property
    def letter(self) -> str:
        """R of a spanning probability, W of one of wrapping."""
        return "W" if self.name.startswith("wrapping") else "R"

    @cached_property
    def symbol(self) -> str:
        """Its index in mathematics: "_{y}" of spanning_y, nothing of spanning."""
        index = self.name.removeprefix("spanning").removeprefix("wrapping").removeprefix("_")
        return f"_{{{index}}}" if index else ""

    @cached_property
    def fit_or_problem(self) -> ThresholdFit | str:
        """The fit, or one line on why there is none."""
        try:
            return self.fitted()
        except AnalysisError as error:
            return str(error)

    @property
    def fit(self) -> ThresholdFit:
        """The fit; AnalysisError if there is none."""
        if isinstance(self.fit_or_problem, str):
            raise AnalysisError(self.fit_or_problem)
        return self.fit_or_problem

    @cached_property
    def head(self) -> dict[str, Any]:
        """What every figure is given: its title, and the published threshold."""
        return {
            "title": _title(self.study),
            "exact": _exact(self.study.lattice, self.study.model),
        }

    @cached_property
    def exponents(self) -> ExponentFit | None:
        """The exponents at p_c where a fit and cluster sizes give them."""
        try:
            replicas = max(self.bootstrap, MIN_REPLICAS)
            return exponents_of(self.results, self.fit, bootstrap=replicas)
        except AnalysisError:
            return None

    @cached_property
    def collapses(self) -> list[tuple[Collapse, float]] | str:
        """What is collapsed with the fit's p_c and 1/nu, or one line on why nothing can be.

        Cluster sizes are collapsed over the same range of x, with the exponents read off at p_c,
        whose errors are the second of each pair.
        """
        found: list[tuple[Collapse, float]] = []
        try:
            first = self._collapsed(self.name, 0.0)
            found.append((first, 0.0))
            reach = float(np.abs(first.x).max())
            exponents = self.exponents.exponents if self.exponents is not None else ()
            for name, (exponent, sign) in _COLLAPSED.items():
                # Few samples can leave an exponent without a value.
                read_off = [
                    each for each in exponents if each.name == exponent and np.isfinite(each.value)
                ]
                for each in read_off[:1]:
                    item = self._collapsed(name, sign * each.value, reach=reach)
                    found.append((item, each.error))
        except AnalysisError as error:
            return found or str(error)
        return found

    def _collapsed(self, name: str, exponent: float, *, reach: float | None = None) -> Collapse:
        fit = self.fit
        return collapse_of(
            self.results,
            name,
            threshold=fit.threshold,
            y_t=fit.y_t,
            exponent=exponent,
            min_size=min(fit.sizes),
            reach=reach,
            bootstrap=0,
        )

    def measured(self, method: str | None = None) -> list[TaskResult]:
        """Return the tasks that have blocks, of one method or all, ascending in L."""
        found = [
            item
            for item in self.results.tasks.values()
            if item.blocks and method in (None, item.task.method)
        ]
        return sorted(found, key=lambda item: (item.task.size, item.task.seed))

    def problem(self, kind: str) -> str | None:
        """Return why a kind of figure cannot be drawn, in a few words, or None if it can."""
        return KINDS[kind].problem(self) if self.measured() else "no samples yet"

    def kinds(self) -> list[str]:
        """Return the kinds of figures that these results give."""
        return [kind for kind in KINDS if self.problem(kind) is None]

    def draw(self, kind: str) -> Drawn:
        """Return a figure and every number drawn; InputError if the results do not give it."""
        if kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}; {nearest(kind, KINDS)}")
        problem = self.problem(kind)
        if problem is not None:
            others = ", ".join(self.kinds()) or "nothing"
            raise InputError(f"kind {kind}: {problem}; these results give: {others}")
        figure, numbers = KINDS[kind].draw(self)
        return figure, {"kind": kind} | numbers


def study_figure(
    results: Results,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    bootstrap: int = 200,
    kind: str | None = None,
) -> Drawn:
    """Return a figure of a study and every number drawn.

    kind: one of KINDS, InputError if the results do not give it.  None is the overview: sizes that
    scale as :func:`spanning_figure`; those of a graph or of a Bethe lattice by their clusters,
    with the thresholds of each size alone.  AnalysisError: nothing is there yet.
    """
    figures = StudyFigures(results, fitted, observable, bootstrap)
    if kind is not None:
        return figures.draw(kind)
    if not figures.measured():
        raise AnalysisError("no samples yet")
    if results.study.lattice.is_scalable or not figures.measured("grid"):
        return spanning_figure(results, observable=observable, fitted=fitted)
    return _draw_maxima(figures)


def spanning_figure(
    results: Results,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    sizes: Sequence[int] | None = None,
) -> Drawn:
    """Return the figure of the spanning curves with the fit, and every number drawn.

    Without an estimate (one size, too few points) the curves are drawn alone.  ``sizes`` limits
    the curves drawn, not those fitted.
    """
    return _draw_spanning(StudyFigures(results, fitted, observable), sizes=sizes)


def _draw_spanning(
    figures: StudyFigures, *, sizes: Sequence[int] | None = None, with_drift: bool = True
) -> Drawn:
    drawn: Any = curves_of(figures.results, figures.name)
    if not isinstance(figures.fit_or_problem, str):
        fit = figures.fit
        shown = tuple(curve for curve in fit.curves if sizes is None or curve.L in sizes)
        drawn = replace(fit, curves=shown)
    figure, numbers = plot_spanning(
        drawn,
        axis_label=_axis_label(figures),
        num_sites={item.task.size: item.task.num_sites for item in figures.measured()},
        with_drift=with_drift,
        **figures.head,
    )
    return figure, numbers | {"observable": figures.name}


def _draw_drift(figures: StudyFigures) -> Drawn:
    figure, numbers = plot_drift(figures.fit, **figures.head)
    return figure, numbers | {"observable": figures.name}


def _draw_collapse(figures: StudyFigures) -> Drawn:
    collapses: Any = figures.collapses
    figure, numbers = plot_collapse(
        figures.fit, collapses, axis_label=f"${figures.letter}{figures.symbol}(p)$", **figures.head
    )
    return figure, numbers | {"observable": figures.name}


def _draw_clusters(figures: StudyFigures) -> Drawn:
    means = [cluster_means(figures.study, item) for item in figures.measured("grid")]
    return plot_clusters(means, **figures.head)


def _draw_maxima(figures: StudyFigures) -> Drawn:
    results = figures.results
    return plot_maxima(
        cluster_curves_of(results),
        curves_of(results) if results.study.boundary else (),
        estimates_of(results, bootstrap=figures.bootstrap),
        **figures.head,
    )


def _draw_thresholds(figures: StudyFigures) -> Drawn:
    items = figures.measured("threshold")
    sizes = sorted({item.task.size for item in items})
    samples = [
        threshold_sample([item for item in items if item.task.size == size], figures.name)
        for size in sizes
    ]
    figure, numbers = plot_thresholds(samples, symbol=f"T{figures.symbol}", **figures.head)
    return figure, numbers | {"observable": figures.name}


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


def _axis_label(figures: StudyFigures) -> str:
    return f"{figures.name.partition('_')[0]} probability ${figures.letter}{figures.symbol}(p)$"


def _nothing_spans(figures: StudyFigures) -> str | None:
    try:
        default_observable(figures.results)
    except InputError as error:
        return str(error)
    return None


def _no_fit(figures: StudyFigures) -> str | None:
    problem = _nothing_spans(figures)
    if problem is None and isinstance(figures.fit_or_problem, str):
        return figures.fit_or_problem
    return problem


def _no_collapse(figures: StudyFigures) -> str | None:
    problem = _no_fit(figures)
    if problem is None and isinstance(figures.collapses, str):
        return figures.collapses
    return problem


def _no_crossing(figures: StudyFigures) -> str | None:
    problem = _no_fit(figures)
    if problem is None and not any(item.found for item in figures.fit.by_size.crossings):
        return "the curves of neighbouring sizes do not cross"
    return problem


def _no_grid(figures: StudyFigures) -> str | None:
    if figures.measured("grid"):
        return None
    return "cluster sizes are measured on a grid of p, not by method threshold"


def _no_maxima(figures: StudyFigures) -> str | None:
    if figures.study.lattice.is_scalable:
        return "it is for graphs and Bethe lattices, whose sizes do not scale"
    return _no_grid(figures)


def _no_thresholds(figures: StudyFigures) -> str | None:
    if not figures.measured("threshold"):
        return "T of single samples is found by method threshold, not on a grid of p"
    spans = any(
        (item.thresholds(figures.name) != np.uint64(NEVER)).any()
        for item in figures.measured("threshold")
    )
    return None if spans else "no sample spans, even with all bonds open"


@dataclass(frozen=True)
class Kind:
    """A kind of figure: what it shows, whence its error bars, and how it is drawn.

    problem: why results do not give it, in one line, or None if they do.  A kind asks for nothing
    but the stored results, so that a figure can be made from a file alone.
    """

    meaning: str
    errors: str
    problem: Callable[[StudyFigures], str | None]
    draw: Callable[[StudyFigures], Drawn]


#: By the name that --kind takes, in the order of a report.
KINDS = {
    "curves": Kind(
        "Spanning probability against p, with p_c and, close up, the crossings of the sizes.",
        "Error bars are 68 % Wilson intervals; lines are the fit of all sizes, in the close-up of "
        "each size alone; the band is p_c with its error.",
        _nothing_spans,
        lambda figures: _draw_spanning(figures, with_drift=False),
    ),
    "drift": Kind(
        "Crossings p* of neighbouring sizes against their mean size, extrapolated to infinite "
        "size.",
        "Error bars are one-sigma errors of a bootstrap over blocks; the band is p_c of the fit of "
        "all sizes with its error.",
        _no_crossing,
        _draw_drift,
    ),
    "collapse": Kind(
        "Spanning probability and cluster sizes before and after they are scaled by the fitted "
        "p_c and exponents.",
        "Error bars are one standard error of each point, without those of p_c and the exponents. "
        "Q is the mean squared distance of a point from the other sizes in units of its error.",
        _no_collapse,
        _draw_collapse,
    ),
    "clusters": Kind(
        "Largest cluster, mean cluster size without it, second largest cluster and number of "
        "clusters, each per site, against p.",
        "Error bars are one standard error, of a jackknife over blocks.",
        _no_grid,
        _draw_clusters,
    ),
    "maxima": Kind(
        "Largest clusters of a graph against p, with the thresholds of each size alone.",
        "Error bars are one standard error, of a jackknife over blocks; bands are the errors of "
        "the thresholds, of a bootstrap over blocks.",
        _no_maxima,
        _draw_maxima,
    ),
    "thresholds": Kind(
        "Distribution of T, the p at which a sample begins to span, with the normal distribution "
        "of the same mean and deviation; mean and median of T against L.",
        "Error bars of the histogram are binomial; those of the mean one standard error, those of "
        "the median its 68 % interval of order statistics.",
        _no_thresholds,
        _draw_thresholds,
    ),
}
