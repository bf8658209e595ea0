"""Sizes and number of clusters against p, for all sizes of a lattice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import plain
from percolab.analysis.stored_data import read_cluster_curves
from percolab.figures.alt_text import Numbers, sizes_and_range
from percolab.figures.axes import (
    Exact,
    bars_if_known,
    draw_exact,
    exact_record,
    jackknife_title,
    keep_to_probabilities,
    legend_entries,
    letter_panels,
    only_p,
    place_sizes,
    plain_ticks,
    size_label,
)
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import PAGE_WIDTH, Axes, Figure, choose_looks
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: A panel each: what is drawn, its axis, the same as plain text, and what it is, in words.
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
    "cluster_density": (
        r"$\langle n_c \rangle / N$",
        "<n_c>/N",
        "clusters per site",
    ),
}
#: A mean cluster size that grows by more than this has a logarithmic axis.
_WIDE = 20.0


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """The means of one task: one size, one p grid, one seed.

    p: float64 (m,), ascending.  means, errors: of every name in PANELS, float64 (m,); errors are
    one sigma, NaN where there is none.
    """

    L: int
    num_sites: int
    samples: int
    p: NDArray[np.float64]
    means: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, NDArray[np.float64]]


def plot_clusters(
    curves: Sequence[ClusterMeans],
    *,
    title: str,
    exact: Exact | None = None,
    into: Target = NEW_FIGURE,
) -> tuple[Figure, dict[str, Any]]:
    """Draw every mean of PANELS against p, a panel each, one curve a task with its errors.

    curves: at least one; of one p alone they are drawn against L.  Returns the figure and all
    numbers drawn.
    """
    sites = {curve.L: curve.num_sites for curve in curves}
    at = only_p(curves)
    with into.sheet(PAGE_WIDTH, 5.9) as sheet:
        panels: Any = sheet.subplots(2, 2, sharex=True)
        for axes, (name, (label, *_)) in zip(panels.flat, PANELS.items(), strict=True):
            for curve, look, new in choose_looks(curves):
                look |= {"label": size_label(curve.L, sites) if new else None}
                _draw_mean(axes, curve, name, look, curve.p if at is None else [curve.L])
            axes.set_ylabel(label)
            values = np.concatenate([curve.means[name] for curve in curves])
            if name == "mean_cluster_size" and 0 < _WIDE * values.min() < values.max():
                axes.set_yscale("log")
            elif values.max() > 4 * values.min():
                axes.set_ylim(bottom=0.0)
            if at is None:
                draw_exact(axes, exact)
        for axes in panels[-1]:
            axes.set_xlabel("$p$")
        if at is not None:
            for axes in panels[-1]:
                place_sizes(axes, sorted(sites))
        elif is_uneven(np.unique(np.concatenate([curve.p for curve in curves]))):
            panels.flat[0].set_xscale("log")
        for axes in panels.flat:
            plain_ticks(axes)
        sheet.set_title(title if at is None else f"{title}, $p = {at:.8g}$")
        letter_panels(panels.flat)
        if at is None:
            keep_to_probabilities(*panels.flat)
        sheet.add_legend(
            legend_entries(panels.flat[0]),
            ncols=3,
            title=jackknife_title(each for curve in curves for each in curve.errors.values()),
        )
    return sheet.figure, {
        "title": title,
        "exact": exact_record(exact),
        "meanings": {name: meaning for name, (*_, meaning) in PANELS.items()},
        "curves": [_numbers_of(curve) for curve in curves],
    }


def is_uneven(p: NDArray[np.float64]) -> bool:
    """Return whether p, ascending, crowd at their low end, as those of a scale-free graph do."""
    steps = np.diff(p)
    return bool(steps.size > 1 and p[0] > 0 and steps[-1] > 10 * steps[0] and p[-1] > 10 * p[0])


def _draw_mean(axes: Axes, curve: ClusterMeans, name: str, look: dict[str, Any], x: Any) -> None:
    axes.errorbar(
        x, curve.means[name], bars_if_known(curve.errors[name]), **look,
        markersize=3.2, linewidth=0.7, elinewidth=0.8, capsize=1.5,
    )  # fmt: skip


def _numbers_of(curve: ClusterMeans) -> dict[str, Any]:
    errors = {f"{name}_error": values for name, values in curve.errors.items()}
    head = {"L": curve.L, "num_sites": curve.num_sites, "samples": curve.samples, "p": curve.p}
    numbers: dict[str, Any] = plain(head | dict(curve.means) | errors)
    return numbers


def cluster_means(study: Study, item: TaskResult) -> ClusterMeans:
    """Return the means of a task, with the errors of a jackknife over blocks."""
    (curve,) = read_cluster_curves(StoredResults(study, {item.task.id: item}))
    sites = item.task.num_sites
    means, errors = curve.means(), curve.errors()
    counts = item.column("clusters") / item.task.block_size / sites
    blocks = len(counts)
    spread = counts.std(axis=0, ddof=1) if blocks > 1 else np.full(curve.p.size, np.nan)
    return ClusterMeans(
        L=curve.L,
        num_sites=sites,
        samples=item.num_samples,
        p=curve.p,
        means={
            "percolation_strength": means["largest"] / sites,
            "mean_cluster_size": means["chi"],
            "second_largest": means["second"] / sites,
            "cluster_density": counts.mean(axis=0),
        },
        errors={
            "percolation_strength": errors["largest"] / sites,
            "mean_cluster_size": errors["chi"],
            "second_largest": errors["second"] / sites,
            "cluster_density": spread / blocks**0.5,
        },
    )


def _draw(figures: StudyView, into: Target) -> Drawn:
    means = [cluster_means(figures.study, item) for item in figures.measured("grid")]
    return plot_clusters(means, **figures.head, into=into)


def _describe(numbers: Numbers) -> list[str]:
    curves = numbers["curves"]
    last = curves[-1]
    strength = last["percolation_strength"]
    chi = last["mean_cluster_size"]
    at = chi.index(max(chi))
    return [
        sizes_and_range(curves),
        f"At L = {last['L']} the largest cluster grows from {strength[0]:.3g} to "
        f"{strength[-1]:.3g} of all sites, and the mean cluster size is largest, {chi[at]:.4g} "
        f"sites, at p = {last['p'][at]:.4g}.",
    ]


CLUSTERS = FigureKind(
    help="P_inf, mean cluster size, second largest cluster, clusters per site",
    meaning=(
        "Largest cluster, mean cluster size without it, second largest cluster and number of "
        "clusters, each per site, against p, of a single p against L."
    ),
    errors="Error bars are one standard error, of a jackknife over blocks.",
    problems=(StudyView.no_grid,),
    draw=_draw,
    alt=_describe,
)
