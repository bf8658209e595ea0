"""Minimum spanning trees: accepted bonds, degrees, weight per site, and paths across."""

from typing import Any

import numpy as np

from percolab.analysis.trees import TreeFit, TreeMeans, fit_trees
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import DASHES, EXACT_LINE, PAGE_WIDTH, size_look
from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import counted
from percolab.measure.trees import WEIGHT_BINS

#: A degree with a smaller share of the sites is not drawn.
_LEAST_SHARE = 1e-7


def _draw(figures: StudyView, into: Target) -> Drawn:
    fit = fit_trees(figures.results)
    means = fit.means
    letters = list(means[0].paths)
    rows, columns = (2, 2) if letters else (1, 3)
    with into.sheet(PAGE_WIDTH, 2.8 * rows + 0.4) as sheet:
        panels: Any = sheet.subplots(rows, columns).ravel()
        structure = figures.study.structure
        is_self_dual = isinstance(structure, Lattice) and structure.name == "square"
        _draw_accepted(panels[0], means, is_self_dual=is_self_dual)
        _draw_degrees(panels[1], means)
        _draw_weights(panels[2], fit, periodic=set(figures.study.boundary) == {"periodic"})
        if letters:
            _draw_paths(panels[3], fit, letters[-1])
        elements.letter_panels(panels)
        sheet.set_title(f"Minimum spanning trees, {figures.structure_title}")
        entries, about = elements.legend_entries(panels[1]), f"{elements.ERROR_BARS} over samples"
        sheet.add_legend(entries, ncols=min(len(means), 6), title=about)
    return sheet.figure, fit.to_dict()


def _draw_accepted(axes: Any, means: tuple[TreeMeans, ...], *, is_self_dual: bool) -> None:
    """Draw f(w), the fraction of bonds with weight w that are in the tree."""
    middles = (np.arange(WEIGHT_BINS) + 0.5) / WEIGHT_BINS
    for n, mean in enumerate(means):
        line = {"color": size_look(n)["color"], "linestyle": DASHES[n % len(DASHES)]}
        line |= {"linewidth": 1.0, "elinewidth": 0.7, "label": elements.size_label(mean.L, {})}
        elements.draw_bars(axes, middles, mean.accepted, mean.accepted_errors, line)
    if is_self_dual:
        last = means[-1].accepted
        ring: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": "black"}
        ring |= {"marker": "o", "markersize": 3.2, "markeredgewidth": 0.7, "linestyle": "none"}
        (mirrored,) = axes.plot(middles[::2], 1 - last[::-1][::2], **ring)
        axes.legend([mirrored], [f"$1 - f(1 - w)$ of $L = {means[-1].L}$"], loc="lower left")
    axes.set(xlabel="weight $w$", ylabel="share in the tree $f(w)$", xlim=(0, 1), ylim=(0, 1.05))


def _draw_degrees(axes: Any, means: tuple[TreeMeans, ...]) -> None:
    largest = 1
    for n, mean in enumerate(means):
        degrees = np.flatnonzero(mean.degrees > _LEAST_SHARE)
        largest = max(largest, int(degrees[-1]))
        label = elements.size_label(mean.L, {})
        axes.plot(degrees, mean.degrees[degrees], **size_look(n), linewidth=0.8, label=label)
    axes.set_yscale("log")
    elements.plain_ticks(axes)
    elements.few_ticks(axes, number=min(largest + 1, 9))
    axes.set(xlabel="degree $k$ of a site in the tree", ylabel="share of the sites")


def _draw_weights(axes: Any, fit: TreeFit, *, periodic: bool) -> None:
    def place(mean: TreeMeans) -> float:
        return 1 / mean.sites if periodic else 1 / mean.L

    for n, mean in enumerate(fit.means):
        elements.draw_bars(axes, place(mean), mean.weight.value, mean.weight.error, size_look(n))
    if fit.limit is not None and not fit.limit.rejected:
        value, error = fit.limit.value, fit.limit.error
        elements.draw_bars(axes, 0, value, error, {"color": "black", "marker": "_"}, markersize=9)
        axes.axhline(value, **EXACT_LINE)
        shown = f"$L \\to \\infty$: {fit.limit}"
        # Place the text where no point is: on a torus points are below the limit, else above it.
        corner, side = ((0.06, 0.06), "bottom") if periodic else ((0.06, 0.94), "top")
        axes.annotate(shown, corner, None, "axes fraction", va=side, fontsize=8)
    axes.set_xlim(left=min(0, -0.04 * max(place(mean) for mean in fit.means)))
    elements.few_ticks(axes, number=5)
    axes.set(xlabel="$1 / N$" if periodic else "$1 / L$", ylabel="weight of the tree per site")


def _draw_paths(axes: Any, fit: TreeFit, letter: str) -> None:
    for n, mean in enumerate(fit.means):
        path = mean.paths[letter]
        elements.draw_bars(axes, mean.L, path.value, path.error, size_look(n))
    if any(mean.paths[letter].value > 0 for mean in fit.means):
        axes.set(xscale="log", yscale="log")
    law = fit.exponents.get(letter)
    if law is not None:
        sizes = np.geomspace(fit.means[0].L, fit.means[-1].L, 50)
        axes.plot(sizes, law(sizes), color="black", linewidth=0.7, zorder=0)
        shown = f"$L^D$, $D$ = {law.exponent}"
        axes.annotate(shown, (0.04, 0.94), None, "axes fraction", va="top", fontsize=8)
    elements.place_sizes(axes, [mean.L for mean in fit.means])
    elements.plain_ticks(axes)
    axes.set(xlabel="$L$", ylabel=f"bonds on the path along ${letter}$")


def _problem(figures: StudyView) -> str | None:
    has_trees = any(
        each.has("tree_weight") or each.has("tree_bonds") for each in figures.measured()
    )
    return None if has_trees else "there are no trees (percolab tree)"


def _describe(numbers: Numbers) -> list[str]:
    sizes = [mean["L"] for mean in numbers["sizes"]]
    limit = numbers.get("limit")
    end = f" Their weight a site tends to {limit['value']:.4g}." if limit else ""
    return [f"Trees of {counted(len(sizes), 'size')} up to L = {sizes[-1]}.{end}"]


TREE = FigureKind(
    help="minimum spanning trees: weights, degrees and paths",
    meaning=(
        "Minimum spanning trees of samples, whose bonds have their uniform numbers as weights: "
        "the share of the bonds with a weight that are in the tree, which on the square lattice is "
        "one less that of the weight's mirror image; sites by their degree in the tree; the weight "
        "of the tree per site, and its limit; and the length of the path from side to side."
    ),
    errors="Error bars are one standard error of the mean over samples.",
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
