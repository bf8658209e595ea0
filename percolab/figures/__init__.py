"""Stored results as figures: one function a figure, which also returns every number drawn.

matplotlib and scipy load when a figure is made.

style       the look of all figures, and a new figure that has it
axes        names of sizes, the published threshold, ticks and legends
files       how a figure is written
spanning    R_L(p) with its threshold, and the drift of the crossings
inset       the crossings close up
collapse    curves before and after they are scaled by the fit
clusters    largest clusters, mean size and number of clusters against p
sizes       the cluster numbers n_s
gyration    radii of clusters, and the correlation length
wrapping    the ways to wrap around periodic axes
maxima      cluster sizes of a graph with the estimators of its threshold
thresholds  the distribution of T of single samples
timing      the time per sample of labelers
"""

from percolab.figures.axes import Exact
from percolab.figures.files import FORMATS, save_figure, svg_text
from percolab.figures.style import COLOURS, MARKERS, STYLE, new_figure

__all__ = [
    "COLOURS",
    "FORMATS",
    "MARKERS",
    "STYLE",
    "Exact",
    "new_figure",
    "save_figure",
    "svg_text",
]
