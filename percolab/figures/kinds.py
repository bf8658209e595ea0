"""Figures of stored results: which there are, and what is drawn, from the results alone.

A kind of figure is one entry of KINDS: what it shows, why results may not give it, how it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from percolab.analysis import AnalysisError, ThresholdFit
from percolab.analysis.stored_data import cluster_curves_of, curves_of, default_observable
from percolab.analysis.stored_fits import estimates_of
from percolab.bonds.words import NEVER
from percolab.errors import InputError, nearest
from percolab.figures.cluster_sizes import plot_clusters
from percolab.figures.collapse import plot_collapse
from percolab.figures.data import cluster_means, threshold_sample
from percolab.figures.maxima import plot_maxima
from percolab.figures.size_kinds import (
    Drawn,
    draw_gyration,
    draw_sizes,
    draw_wrapping,
    no_gyration,
    no_sizes,
    no_wrapping,
)
from percolab.figures.spanning import plot_drift, plot_spanning
from percolab.figures.study_view import StudyView
from percolab.figures.thresholds import plot_thresholds
from percolab.store.results import Results


@dataclass(eq=False)
class StudyFigures(StudyView):
    """The figures that stored results give, by kind."""

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
        return figure, {"kind": kind} | numbers | {"notes": self.notes}


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
    is_spanning = results.study.lattice.is_scalable or not figures.measured("grid")
    figure, numbers = (_draw_spanning if is_spanning else _draw_maxima)(figures)
    return figure, numbers | {"notes": figures.notes}


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
        figures.fit, collapses, axis_label=f"${figures.symbol}(p)$", **figures.head
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
    figure, numbers = plot_thresholds(samples, symbol=f"T{figures.symbol[1:]}", **figures.head)
    return figure, numbers | {"observable": figures.name}


def _axis_label(figures: StudyFigures) -> str:
    return f"{figures.name.partition('_')[0]} probability ${figures.symbol}(p)$"


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
        "Probability to span or to wrap against p, of a single p against L; where sizes are fitted "
        "together, with p_c and, close up, their crossings.",
        "Error bars are 68 % Wilson intervals; lines are the fit of all sizes, in the close-up and "
        "where there is no such fit of each size alone; the band is p_c with its error, a dotted "
        "line what theory says of the curves at p_c.",
        _nothing_spans,
        lambda figures: _draw_spanning(figures, with_drift=False),
    ),
    "drift": Kind(
        "Crossings p* of neighbouring sizes against a power of their mean size, extrapolated to "
        "infinite size.",
        "Error bars are one-sigma errors of a bootstrap over blocks; the band is p_c of the fit of "
        "all sizes with its error.",
        _no_crossing,
        _draw_drift,
    ),
    "collapse": Kind(
        "Probability to span or to wrap, and cluster sizes, before and after they are scaled by "
        "the fitted p_c and exponents.",
        "Error bars are one standard error of each point, without those of p_c and the exponents. "
        "S is the mean squared distance of a point from the other sizes in units of its error.",
        _no_collapse,
        _draw_collapse,
    ),
    "clusters": Kind(
        "Largest cluster, mean cluster size without it, second largest cluster and number of "
        "clusters, each per site, against p, of a single p against L.",
        "Error bars are one standard error, of a jackknife over blocks.",
        _no_grid,
        _draw_clusters,
    ),
    "sizes": Kind(
        "Cluster numbers n_s at p_c, clusters of s sites per site, with the exponent tau; "
        "s^tau n_s against s, against s in units of L^d_f, and off p_c.",
        "Error bars are one standard error, of a jackknife over blocks, without that of tau. At "
        "p_c n_s is interpolated between the p of the grid; bins with fewer than 10 clusters are "
        "not drawn.",
        no_sizes,
        draw_sizes,
    ),
    "gyration": Kind(
        "Radii of gyration R_s at the p nearest to p_c against s, with d_f from the largest size; "
        "correlation length xi against p; both over clusters that neither wrap nor span.",
        "Error bars are one standard error, of a jackknife over blocks; that of d_f leaves out the "
        "error of p_c.",
        no_gyration,
        draw_gyration,
    ),
    "wrapping": Kind(
        "Probabilities of every way to wrap around the periodic axes, against p, of a single p "
        "against L; dotted, where it is known, what theory says of them at p_c.",
        "Error bars are 68 % Wilson intervals.",
        no_wrapping,
        draw_wrapping,
    ),
    "maxima": Kind(
        "Largest clusters of a graph against p, with the thresholds of a single size.",
        "Error bars are one standard error, of a jackknife over blocks, those of R 68 % Wilson "
        "intervals; bands are the errors of the thresholds, of a bootstrap over blocks.",
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
