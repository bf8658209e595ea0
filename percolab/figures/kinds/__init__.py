"""Figures of stored results, by kind: each is a :class:`percolab.figures.study_view.FigureKind`.

matplotlib loads when one is drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from percolab.analysis.threshold import ThresholdFit
from percolab.errors import AnalysisError, InputError, nearest
from percolab.figures import elements
from percolab.figures.kinds import (
    chains,
    clusters,
    collapse,
    curves,
    distributions,
    flow,
    gyration,
    roots,
    sizes,
    thermal,
    thresholds,
    tree,
    wrapping,
)
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import Axes
from percolab.store.results import StoredResults

#: By the name that --kind takes, in the order of a report.
KINDS: dict[str, FigureKind] = {
    "curves": curves.CURVES,
    "drift": curves.DRIFT,
    "roots": roots.ROOTS,
    "crossings": roots.CROSSINGS,
    "collapse": collapse.COLLAPSE,
    "clusters": clusters.CLUSTERS,
    "sizes": sizes.SIZES,
    "gyration": gyration.GYRATION,
    "flow": flow.FLOW,
    "path_lengths": distributions.PATH_LENGTHS,
    "currents": distributions.CURRENTS,
    "wrapping": wrapping.WRAPPING,
    "maxima": clusters.MAXIMA,
    "thresholds": thresholds.THRESHOLDS,
    "binder": thermal.BINDER,
    "energy": thermal.ENERGY,
    "specific_heat": thermal.SPECIFIC_HEAT,
    "order": thermal.ORDER,
    "susceptibility": thermal.SUSCEPTIBILITY,
    "autocorrelation": chains.AUTOCORRELATION,
    "tau": chains.TAU,
    "histogram": chains.HISTOGRAM,
    "correlation_length": thermal.CORRELATION_LENGTH,
    "tree": tree.TREE,
}


@dataclass(eq=False)
class StudyFigures(StudyView):
    """The figures of stored results, by kind."""

    def problem(self, kind: str) -> str | None:
        """Return why a kind of figure cannot be drawn, in a few words, or None if it can."""
        if not self.measured():
            return "no samples yet"
        try:
            return next(filter(None, (check(self) for check in KINDS[kind].problems)), None)
        except AnalysisError as error:
            return str(error)

    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if self.problem(kind) is None]

    def draw(self, kind: str, into: Target = NEW_FIGURE) -> Drawn:
        if not isinstance(kind, str) or kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}; {nearest(str(kind), KINDS)}")
        problem = self.problem(kind)
        if problem is not None:
            others = ", ".join(self.kinds()) or "nothing"
            raise InputError(f"kind {kind}: {problem}; these results give: {others}")
        figure, numbers = KINDS[kind].draw(self, into)
        return figure, {"kind": kind, **self.complete(numbers)}

    def complete(self, numbers: Numbers) -> dict[str, Any]:
        head = {"title": self.title, "exact": elements.exact_record(self.exact)}
        return {**head, **numbers, "notes": self.notes}


def study_figure(
    results: StoredResults,
    *,
    observable: str | None = None,
    fitted: Callable[[], ThresholdFit],
    bootstrap: int = 200,
    kind: str | None = None,
    ax: Axes | None = None,
) -> Drawn:
    """Return a figure of a study and every number drawn.

    kind: one of KINDS, InputError if the results do not give it.  None is the overview: spanning
    curves of sizes that scale; clusters, with the threshold of each size, for a graph or a Bethe
    lattice; Binder ratios for spins; kind "tree" for trees; roots for files of ``percolab
    threshold``.
    ax: axes to draw a figure of one panel into; then their figure is returned, and with kind None
    only the curves are drawn.  InputError: the figure has more panels.
    AnalysisError: there are no samples yet.
    """
    figures = StudyFigures(results, fitted, observable, bootstrap)
    overview = figures.of_kind.overview
    if overview == "wrapping" and not results.study.boundary:
        overview = "maxima"  # of a graph, which has no axes
    if ax is not None:
        usual = "curves" if figures.study.structure.is_scalable else "maxima"
        kind = kind or overview or usual
        return figures.draw(kind, Target(ax, f"kind {kind}"))
    if kind is None and figures.measured():
        kind = overview or None
    if kind is not None:
        return figures.draw(kind)
    if not figures.measured():
        raise AnalysisError("no samples yet")
    is_spanning = results.study.structure.is_scalable or figures.no_clusters() is not None
    figure, numbers = (curves.draw_spanning if is_spanning else clusters.draw_maxima)(figures)
    return figure, figures.complete(numbers)
