"""The distribution of T, the p at which a sample begins to span, for all sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.value import format_with_error
from percolab.bonds.words import NEVER, TOP
from percolab.figures import elements
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLOURS, PAGE_WIDTH, Axes, choose_looks

#: If deviations differ by more than this factor, the axis of densities is logarithmic.
_WIDE = 4.0
#: Largest and smallest number of bins, and the fraction of T on either side without bins.
_MOST_BINS, _FEWEST_BINS, _TAIL = 28, 5, 0.002


@dataclass(frozen=True, eq=False)
class ThresholdSample:
    """T of all samples of one size.

    thresholds: float64 (n,), ascending, in [0, 1].  never: number of samples that span at no p,
    which are not in the results below.
    """

    L: int
    num_sites: int
    thresholds: Floats
    never: int = 0

    def moments(self) -> dict[str, float]:
        """Return mean, median and standard deviation of T, with standard errors; NaN without T.

        The error of the median is half the width of its 68 % interval of order statistics; the
        error of the deviation is from the fourth moment.  Source: A. Stuart and J. K. Ord,
        Kendall's Advanced Theory of Statistics, vol. 1 (1994), chapters 10 and 14.
        """
        t, count = self.thresholds, self.thresholds.size
        if count < 2:
            names = ("mean", "mean_error", "median", "median_error", "deviation", "deviation_error")
            known = dict.fromkeys(("mean", "median"), float(t[0])) if count else {}
            return dict.fromkeys(names, float("nan")) | known
        mean, deviation = float(t.mean()), float(t.std(ddof=1))
        reach = 0.5 / np.sqrt(count)
        low, high = np.quantile(t, [max(0.5 - reach, 0.0), min(0.5 + reach, 1.0)])
        fourth = float(((t - mean) ** 4).mean())
        spread = max(fourth - deviation**4, 0.0) / count
        return {
            "mean": mean,
            "mean_error": deviation / count**0.5,
            "median": float(np.median(t)),
            "median_error": float(high - low) / 2,
            "deviation": deviation,
            "deviation_error": spread**0.5 / (2 * deviation) if deviation > 0 else 0.0,
        }

    def histogram(self) -> dict[str, Floats]:
        """Return edges (k + 1,) of the bins, and the density of T (k,) with its errors.

        Errors are those of binomial counts.
        """
        t, count = self.thresholds, self.thresholds.size
        low, high = np.quantile(t, [_TAIL, 1 - _TAIL])
        # The width of bins follows the cube root rule (Scott 1979), within limits of their number.
        most = int(2 * count ** (1 / 3))
        bins = int(np.clip(most, _FEWEST_BINS, _MOST_BINS))
        edges = np.linspace(low, high, bins + 1) if high > low else np.array([low, low + 1e-12])
        part = np.histogram(t, edges)[0] / count
        width = np.diff(edges)
        return {
            "edges": edges,
            "density": part / width,
            "density_error": np.sqrt(part * (1 - part) / count) / width,
        }


def plot_thresholds(
    samples: Sequence[ThresholdSample], figures: StudyView, into: Target = NEW_FIGURE
) -> Drawn:
    """Draw the density of T of every size with its normal fit, and mean and median against L.

    For a single size, mean and median are marked on the axis of T.

    samples: one per size, ascending in L, at least one with samples that span.  The normal fit has
    the mean and the deviation of the T.
    """
    exact, symbol = figures.exact, f"T{figures.symbol[1:]}"
    drawn = [one for one in samples if one.thresholds.size]
    sites = {one.L: one.num_sites for one in drawn}
    numbers = []
    several = len(drawn) > 1
    with into.sheet(PAGE_WIDTH if several else 4.8, 4.1) as sheet:
        panels: Any = sheet.subplots(1, 2, width_ratios=[1.75, 1]) if several else None
        main, side = panels if several else (sheet.subplots(), None)
        for sample, look, _ in choose_looks(drawn):
            numbers.append(_draw_density(main, sample, look, sites))
        moments = [one.moments() for one in drawn]
        if side is not None:
            _draw_moments(side, [one.L for one in drawn], moments)
            side.set(ylabel=f"${symbol}$", title="mean and median")
            elements.draw_exact(side, exact, across=True, labelled=False)
            elements.letter_panels(panels)
        elif np.isfinite(moments[0]["median_error"]):
            _mark_moments(main, moments[0])
        main.set(xlabel=f"${symbol}$", ylabel=f"density of ${symbol}$")
        sheet.set_title(figures.title)
        widths = [one["deviation"] for one in moments if one["deviation"] > 0]
        if widths and max(widths) > _WIDE * min(widths):
            # For narrow next to wide distributions; normal ones are parabolas on this scale.
            lowest = min(min(filter(None, number["density"]), default=1.0) for number in numbers)
            main.set_yscale("log")
            main.set_ylim(bottom=0.5 * lowest)
            elements.plain_ticks(main)
        else:
            main.set_ylim(bottom=0.0)
        elements.draw_exact(main, exact)
        elements.keep_to_probabilities(main)
        entries = elements.legend_entries(*sheet.panels)
        about = "Points: histogram, lines: normal distribution;"
        about += f"{' ' if several else chr(10)}error bars: one standard error"
        sheet.add_legend(entries, ncols=3 if several else 1, title=about)
    return sheet.figure, {"sizes": numbers, "observable": figures.name}


def _draw_density(
    axes: Axes, sample: ThresholdSample, look: dict[str, Any], sites: Mapping[int, int]
) -> dict[str, Any]:
    """Draw one histogram with its normal fit, mean and median; return its numbers."""
    columns, moments = sample.histogram(), sample.moments()
    middle = (columns["edges"][1:] + columns["edges"][:-1]) / 2
    style: dict[str, Any] = {"markersize": 3.2, "elinewidth": 0.7, "zorder": 3}
    style |= {"label": elements.size_label(sample.L, sites)}
    elements.draw_bars(axes, middle, columns["density"], columns["density_error"], look, **style)
    deviation = moments["deviation"]
    line: dict[str, Any] = {"T": [], "density": []}
    if deviation > 0:
        reach = np.linspace(-3.5, 3.5, 200)
        top = 1 / (deviation * np.sqrt(2 * np.pi))
        line = {"T": moments["mean"] + deviation * reach, "density": top * np.exp(-(reach**2) / 2)}
        axes.plot(line["T"], line["density"], color=look["color"], linewidth=0.9, zorder=2)
    count = sample.thresholds.size + sample.never
    head = {"L": sample.L, "num_sites": sample.num_sites, "samples": count}
    numbers: dict[str, Any] = plain(
        head | {"never": sample.never} | moments | columns | {"normal": line}
    )
    return numbers


def _mark_moments(axes: Axes, moments: Mapping[str, float]) -> None:
    """Mark mean and median of the only size on the axis of T, the median with its error."""
    marks = (("mean", COLOURS[2], (0, (6, 2))), ("median", COLOURS[1], (0, (1, 1.5))))
    for name, colour, dashes in marks:
        value, error = moments[name], moments[f"{name}_error"]
        label = f"{name}: {format_with_error(value, error)}"
        axes.axvline(value, color=colour, linestyle=dashes, linewidth=1.2, label=label, zorder=1)
    elements.draw_band(axes, value, error)


def _draw_moments(axes: Axes, sizes: Sequence[int], moments: Sequence[dict[str, float]]) -> None:
    for number, name in enumerate(("mean", "median")):
        errors = np.array([each[f"{name}_error"] for each in moments])
        # Shift the points, so that neither error bar hides the other.
        x, values = np.array(sizes) * (0.97, 1.03)[number], [each[name] for each in moments]
        look = {"marker": "os"[number], "markerfacecolor": ("black", "white")[number]}
        look |= {"color": "black", "label": f"{name} of each size"}
        elements.draw_bars(axes, x, values, errors, look, capsize=2.0)
    elements.place_sizes(axes, sizes)
    elements.few_ticks(axes, number=6)


def _draw(figures: StudyView, into: Target) -> Drawn:
    samples, stored = [], _thresholds(figures)
    for size in dict.fromkeys(each for each, _ in stored):
        # Tasks with other seeds are joined.
        thresholds = np.concatenate([own for each, own in stored if each == size])
        spanning = np.sort(thresholds[thresholds != np.uint64(NEVER)]) / TOP
        never = thresholds.size - spanning.size
        samples.append(ThresholdSample(size, figures.num_sites[size], spanning, never))
    return plot_thresholds(samples, figures, into)


def _thresholds(figures: StudyView) -> list[tuple[int, NDArray[np.uint64]]]:
    tasks = figures.measured("threshold")
    return [(task.task.size, task.thresholds(figures.name).ravel()) for task in tasks]


def _no_thresholds(figures: StudyView) -> str | None:
    if not figures.measured("threshold"):
        return "T of single samples is found by method threshold, not on a grid of p"
    spans = any((own != np.uint64(NEVER)).any() for _, own in _thresholds(figures))
    return None if spans else "no sample spans, even with all bonds open"


THRESHOLDS = FigureKind(
    help="distribution of T, the p at which a sample begins to span",
    meaning=(
        "Distribution of T, the p at which a sample begins to span, with the normal distribution "
        "of the same mean and deviation; mean and median of T against L."
    ),
    errors=(
        "Error bars of the histogram are binomial; those of the mean one standard error, those of "
        "the median its 68 % interval of order statistics."
    ),
    problems=(_no_thresholds,),
    draw=_draw,
    alt=lambda numbers: [
        f"T of L = {sample['L']}: one peak with median {sample['median']:.5g}, "
        f"{sample['deviation'] or 0:.3g} wide."
        for sample in numbers["sizes"]
    ],
)
