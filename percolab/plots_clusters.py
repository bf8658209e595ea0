"""Sizes and number of clusters against p, for all sizes of a lattice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from percolab.plots import (
    EXACT_LINE,
    STYLE,
    Exact,
    add_legend,
    exact_label,
    exact_record,
    legend_entries,
    look_of,
    size_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A panel each: what is drawn, its axis, and what it is, in words.
PANELS: Mapping[str, tuple[str, str]] = {
    "percolation_strength": (
        r"$P_\infty = \langle s_1 \rangle / N$",
        "part of all sites in the largest cluster",
    ),
    "mean_cluster_size": (
        r"$S = \langle \Sigma s^2 - s_1^2 \rangle / N$  (sites)",
        "mean cluster size without the largest cluster",
    ),
    "second_largest": (
        r"$\langle s_2 \rangle / N$",
        "part of all sites in the second largest cluster",
    ),
    "cluster_density": (r"$n_c = \langle n \rangle / N$", "clusters per site"),
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
    curves: Sequence[ClusterMeans], *, title: str, exact: Exact | None = None
) -> tuple[Figure, dict[str, Any]]:
    """Draw every mean of PANELS against p, a panel each, one curve a task with its errors.

    curves: at least one.  Returns the figure and all numbers drawn.
    """
    import matplotlib
    from matplotlib.figure import Figure

    order = sorted({curve.L for curve in curves})
    sites = {curve.L: curve.num_sites for curve in curves}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 5.9), layout="constrained")
        panels: Any = figure.subplots(2, 2, sharex=True)
        for axes, (name, (label, _)) in zip(panels.flat, PANELS.items(), strict=True):
            seen: set[int] = set()
            for curve in curves:
                look = look_of(order.index(curve.L), order.index(curve.L))
                _draw_mean(axes, curve, name, look, None if curve.L in seen else sites)
                seen.add(curve.L)
            axes.set_ylabel(label)
            values = np.concatenate([curve.means[name] for curve in curves])
            if name == "mean_cluster_size" and 0 < _WIDE * values.min() < values.max():
                axes.set_yscale("log")
            elif values.max() > 4 * values.min():
                axes.set_ylim(bottom=0.0)
            if exact:
                axes.axvline(exact[0], label=exact_label(exact), zorder=0, **EXACT_LINE)
        if is_uneven(np.unique(np.concatenate([curve.p for curve in curves]))):
            panels.flat[0].set_xscale("log")
        for axes in panels[-1]:
            axes.set_xlabel("$p$")
        figure.suptitle(title, fontsize=STYLE["axes.titlesize"])
        add_legend(
            figure, legend_entries(panels.flat[0]), loc="outside lower center", ncols=3,
            title=_title_of_errors(curves), title_fontsize=8,
        )  # fmt: skip
    return figure, {
        "title": title,
        "exact": exact_record(exact),
        "meanings": {name: meaning for name, (_, meaning) in PANELS.items()},
        "curves": [_numbers_of(curve) for curve in curves],
    }


def is_uneven(p: NDArray[np.float64]) -> bool:
    """Return whether p, ascending, crowd at their low end, as those of a scale-free graph do."""
    steps = np.diff(p)
    return bool(steps.size > 1 and p[0] > 0 and steps[-1] > 10 * steps[0] and p[-1] > 10 * p[0])


def _draw_mean(
    axes: Axes,
    curve: ClusterMeans,
    name: str,
    look: dict[str, Any],
    sites: Mapping[int, int] | None,
) -> None:
    errors = curve.errors[name]
    axes.errorbar(
        curve.p, curve.means[name], errors if np.isfinite(errors).all() else None, **look,
        markersize=3.2, linewidth=0.7, elinewidth=0.8, capsize=1.5,
        label=None if sites is None else size_label(curve.L, sites),
    )  # fmt: skip


def _title_of_errors(curves: Sequence[ClusterMeans]) -> str | None:
    known = any(np.isfinite(error).all() for curve in curves for error in curve.errors.values())
    return "Error bars: one standard error, jackknife over blocks" if known else None


def _numbers_of(curve: ClusterMeans) -> dict[str, Any]:
    from percolab.analysis.record import plain

    errors = {f"{name}_error": values for name, values in curve.errors.items()}
    head = {"L": curve.L, "num_sites": curve.num_sites, "samples": curve.samples, "p": curve.p}
    return plain(head | dict(curve.means) | errors)
