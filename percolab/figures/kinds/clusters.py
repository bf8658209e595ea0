"""Sizes and number of clusters against p, and the thresholds from single sizes of a graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.json_values import plain
from percolab.analysis.maxima import Estimate, SizeEstimates
from percolab.analysis.statistics import Floats, mean_of_blocks, standard_error
from percolab.analysis.stored_data import read_cluster_curves, read_curves, read_outbreaks
from percolab.analysis.stored_fits import read_estimates
from percolab.analysis.value import format_with_error
from percolab.figures import elements
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView, sizes_and_range
from percolab.figures.style import COLOURS, PAGE_WIDTH, Axes, choose_looks
from percolab.lattices.removal import RANDOM
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: The panels of figure clusters: the label of the axis, the same as plain text, and its meaning.
PANELS: Mapping[str, tuple[str, str, str]] = {
    "percolation_strength": (
        r"$P_\infty = \langle s_1 \rangle / N$",
        "P_inf = <s_1>/N",
        "part of all sites in the largest cluster",
    ),
    "mean_cluster_size": (
        r"$\chi = \langle \Sigma s^2 - s_1^2 \rangle / N$  (sites)",
        "chi = <sum s^2 - s_1^2>/N",
        "mean cluster size without the largest cluster, in sites",
    ),
    "second_largest": (
        r"$\langle s_2 \rangle / N$",
        "<s_2>/N",
        "part of all sites in the second largest cluster",
    ),
    "cluster_density": (r"$\langle n_c \rangle / N$", "<n_c>/N", "clusters per site"),
}
#: A mean cluster size that grows by more than this factor has a logarithmic axis.
_WIDE = 20.0
_OTHERS = "it is for graphs and Bethe lattices, whose sizes do not scale"
_BARS: dict[str, Any] = {"linewidth": 0.7, "linestyle": "-", "capsize": 1.5}

#: The panels of figure maxima: the label of the axis; the estimator of this name is marked.
_MAXIMA = {
    "largest": r"$\langle s_1 \rangle / N$",
    "second": r"$\langle s_2 \rangle / N$",
    "chi": "$\\chi$ (sites)\n" r"$\langle \Sigma s^2 - s_1^2 \rangle / N$",
    "ratio": r"$\mathrm{var}(s_1) / \langle s_1 \rangle$" "\n(sites)",
}
#: The label, colour and dashes of an estimator.
_MARKS: Mapping[str, tuple[str, str, Any]] = {
    "second": (r"maximum of $\langle s_2 \rangle$", COLOURS[1], "-"),
    "chi": (r"peak of $\chi$", COLOURS[6], (0, (6, 1.5))),
    "ratio": (
        r"peak of $\mathrm{var}(s_1)/\langle s_1 \rangle$", COLOURS[2], (0, (5, 3)),
    ),
    "median": (r"$R = 1/2$", COLOURS[4], (0, (1, 1.5))),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """The means of one task: one size, one p grid, one seed.

    p: float64 (m,), ascending.  means, errors: for every name in PANELS, float64 (m,); errors are
    one sigma, NaN if unknown.
    """

    L: int
    num_sites: int
    samples: int
    p: Floats
    means: Mapping[str, Floats]
    errors: Mapping[str, Floats]


def plot_clusters(
    curves: Sequence[ClusterMeans], figures: StudyView, into: Target = NEW_FIGURE
) -> Drawn:
    """Draw every mean of PANELS against p, a panel for each, with one curve and errors per task.

    curves: at least one; if all have a single p, they are drawn against L.
    """
    sites = {curve.L: curve.num_sites for curve in curves}
    at = elements.only_p(curves)
    with into.sheet(PAGE_WIDTH, 5.9) as sheet:
        panels: Any = sheet.subplots(2, 2, sharex=True)
        for axes, (name, (label, *_)) in zip(panels.flat, PANELS.items(), strict=True):
            for curve, look, new in choose_looks(curves):
                x, errors = curve.p if at is None else [curve.L], curve.errors[name]
                look |= {"label": elements.size_label(curve.L, sites) if new else None}
                elements.draw_bars(axes, x, curve.means[name], errors, look | _BARS, markersize=3.2)
            axes.set_ylabel(label)
            values = np.concatenate([curve.means[name] for curve in curves])
            if name == "mean_cluster_size" and 0 < _WIDE * values.min() < values.max():
                axes.set_yscale("log")
            elif values.max() > 4 * values.min():
                axes.set_ylim(bottom=0.0)
            elements.draw_exact(axes, figures.exact if at is None else None)
        for axes in panels[-1]:
            axes.set_xlabel("$p$")
            if at is not None:
                elements.place_sizes(axes, sorted(sites))
        if at is None and _is_uneven(curves):
            panels.flat[0].set_xscale("log")
        for axes in panels.flat:
            elements.plain_ticks(axes)
        sheet.set_title(elements.title_with_p(figures.title, at))
        elements.letter_panels(panels.flat)
        if at is None:
            elements.keep_to_probabilities(*panels.flat)
        about = elements.jackknife_title(each for curve in curves for each in curve.errors.values())
        sheet.add_legend(elements.legend_entries(panels.flat[0]), ncols=3, title=about)
    return sheet.figure, {
        "meanings": {name: meaning for name, (*_, meaning) in PANELS.items()},
        "curves": [_list_numbers(one, one.samples, one.means, one.errors) for one in curves],
    }


def _is_uneven(curves: Sequence[ClusterMeans] | Sequence[ClusterCurve]) -> bool:
    """Return whether p is denser at its low end, as for a scale-free graph."""
    p = np.unique(np.concatenate([curve.p for curve in curves]))
    steps = np.diff(p)
    return bool(steps.size > 1 and p[0] > 0 and steps[-1] > 10 * steps[0] and p[-1] > 10 * p[0])


def _list_numbers(
    curve: Any, samples: Any, means: Mapping[str, Floats], errors: Mapping[str, Floats]
) -> dict[str, Any]:
    head = {"L": curve.L, "num_sites": curve.num_sites, "samples": samples, "p": curve.p}
    named = {f"{name}_error": values for name, values in errors.items()}
    numbers: dict[str, Any] = plain(head | dict(means) | named)
    return numbers


def _cluster_means(study: Study, task: TaskResult) -> ClusterMeans:
    """Return the means of a task, with the errors of a jackknife over blocks."""
    (curve,) = read_cluster_curves(StoredResults(study, {task.task.id: task}))
    sites = task.task.num_sites
    counts = task.column("clusters") / task.samples[:, None] / sites
    density = mean_of_blocks(counts, task.samples), standard_error(counts, task.samples)
    means, errors = (
        dict(zip(PANELS, (own["largest"] / sites, own["chi"], own["second"] / sites, clusters)))
        for own, clusters in zip((curve.means(), curve.errors()), density)
    )
    return ClusterMeans(curve.L, sites, task.num_samples, curve.p, means, errors)


def _draw_clusters(figures: StudyView, into: Target) -> Drawn:
    means = [_cluster_means(figures.study, task) for task in figures.measured("grid")]
    return plot_clusters(means, figures, into)


def _describe_clusters(numbers: Numbers) -> list[str]:
    curves = numbers["curves"]
    last = curves[-1]
    strength, chi = last["percolation_strength"], last["mean_cluster_size"]
    at = chi.index(max(chi))
    return [
        sizes_and_range(curves),
        f"At L = {last['L']} the largest cluster grows from {strength[0]:.3g} to "
        f"{strength[-1]:.3g} of all sites, and the mean cluster size is largest, {chi[at]:.4g} "
        f"sites, at p = {last['p'][at]:.4g}.",
    ]


def draw_maxima(figures: StudyView, into: Target = NEW_FIGURE) -> Drawn:
    """Draw s_1/N, s_2/N, chi and var(s_1)/s_1 against p, a panel each; above them R, if it exists.

    Below them are the sizes of the source's clusters, if they were counted.
    For a single size the estimators of p_c are marked, with a band of one error on either side.
    """
    results, exact = figures.results, figures.exact
    clusters = read_cluster_curves(results)
    means, errors = [each.means() for each in clusters], [each.errors() for each in clusters]
    has_curve = bool(results.study.boundary) and not figures.of_kind.no_curve
    spanning: Sequence[SpanningCurve] = read_curves(results) if has_curve else ()
    sizes: Sequence[SizeEstimates] = read_estimates(results, bootstrap=figures.bootstrap)
    estimates = {each.name: each for each in sizes[0].estimates} if len(sizes) == 1 else {}
    outbreaks = read_outbreaks(results)
    names = [*(["median"] if spanning else []), *_MAXIMA, *(["source"] if outbreaks else [])]
    with into.sheet(5.2, 1.7 + 1.5 * len(names)) as sheet:
        panels: Any = sheet.subplots(len(names), 1, sharex=True)
        for axes, name in zip(panels, names, strict=True):
            if name == "median":
                for curve, look, _ in choose_looks(spanning):
                    bars = elements.interval_bars(curve)
                    elements.draw_bars(axes, curve.p, curve.probability, bars, look | _BARS)
                axes.set_ylabel("$R$")
            elif name == "source":
                for own, look, _ in choose_looks(outbreaks):
                    share, error = own.mean / own.num_sites, own.error / own.num_sites
                    elements.draw_bars(axes, own.p, share, error, look | _BARS)
                axes.set_ylabel("source\n" r"$\langle s_\mathrm{src} \rangle / N$")
            else:
                sites = {curve.L: curve.num_sites for curve in clusters}
                looks = choose_looks(clusters)
                for (cluster, look, new), mean, error in zip(looks, means, errors, strict=True):
                    unit = float(cluster.num_sites) if name in ("largest", "second") else 1.0
                    is_named = name == "largest" and new
                    look |= {"label": elements.size_label(cluster.L, sites) if is_named else None}
                    shown, width = mean[name] / unit, error[name] / unit
                    elements.draw_bars(axes, cluster.p, shown, width, look | _BARS)
                axes.set_ylabel(_MAXIMA[name])
            top = axes.get_ylim()[1]
            axes.set_ylim(-0.04 * top, top)
            elements.draw_exact(axes, exact, labelled=name == "largest")
            if name in estimates and np.isfinite(estimates[name].p):
                _mark(axes, estimates[name])
        if _is_uneven(clusters):
            panels[0].set_xscale("log")
            elements.plain_ticks(panels[0])
        sheet.set_title(figures.title)
        elements.letter_panels(panels)
        elements.keep_to_probabilities(*panels)
        is_random = figures.study.order == RANDOM
        panels[-1].set_xlabel("$p$" if is_random else "$p$, share that is left")
        known = elements.jackknife_title(each for own in errors for each in own.values())
        intervals = "of $R$ 68 % Wilson intervals" if spanning else ""
        about = "; ".join(filter(None, [known, intervals])) or None
        sheet.add_legend(elements.legend_entries(*panels), ncols=2, title=about)
    return sheet.figure, {
        "curves": [
            _list_numbers(each, each.samples.sum(), mean, error)
            for each, mean, error in zip(clusters, means, errors, strict=True)
        ],
        "spanning": [curve.to_dict() for curve in spanning],
        "sizes": [size.to_dict() for size in sizes],
        "outbreaks": [each.to_dict() for each in outbreaks],
    }


def _mark(axes: Axes, estimate: Estimate) -> None:
    name, colour, dashes = _MARKS[estimate.name]
    where = "end of the grid" if estimate.at_edge else format_with_error(estimate.p, estimate.error)
    label = f"{name}: {where}"
    axes.axvline(estimate.p, color=colour, linestyle=dashes, linewidth=1.0, label=label, zorder=0)
    if np.isfinite(estimate.error):
        elements.draw_band(axes, estimate.p, estimate.error, color=colour, alpha=0.25, linewidth=0)


def _describe_maxima(numbers: Numbers) -> list[str]:
    sentences = [sizes_and_range(numbers["curves"])]
    if len(numbers["sizes"]) == 1:
        located = [each for each in numbers["sizes"][0]["estimates"] if each["p"] is not None]
        sentences += [f"{each['meaning'].capitalize()}: p = {each['p']:.4g}." for each in located]
    for each in numbers["outbreaks"]:
        sentences.append(
            f"The clusters of the source have {each['mean'][0]:.4g} to {each['mean'][-1]:.4g} of "
            f"{each['num_sites']} sites."
        )
    return sentences


CLUSTERS = FigureKind(
    help="P_inf, mean cluster size, second largest cluster, clusters per site",
    meaning=(
        "Largest cluster, mean cluster size without it, second largest cluster and number of "
        "clusters, each per site, against p, of a single p against L."
    ),
    errors="Error bars are one standard error, of a jackknife over blocks.",
    problems=(StudyView.no_grid,),
    draw=_draw_clusters,
    alt=_describe_clusters,
)
MAXIMA = FigureKind(
    help="the p at which clusters of a graph or Bethe lattice are most critical",
    meaning="Largest clusters of a graph against p, with the thresholds of a single size.",
    errors=(
        "Error bars are one standard error, of a jackknife over blocks, those of R 68 % Wilson "
        "intervals; bands are the errors of the thresholds, of a bootstrap over blocks."
    ),
    problems=(
        lambda figures: _OTHERS if figures.study.structure.is_scalable else None,
        StudyView.no_clusters,
    ),
    draw=draw_maxima,
    alt=_describe_maxima,
)
