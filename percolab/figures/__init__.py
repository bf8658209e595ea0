"""Stored results as figures: one function a figure, which also returns every number drawn.

matplotlib and scipy load when a figure is made.

kinds/      one file a kind that results give: curves, drift, collapse, clusters, ...
study_view  stored results as the kinds ask of them, and what a kind declares
report      all that results give on one page; page, its HTML
lattice     a lattice and its bonds
bethe, configuration, colours, legend: one sample, coloured by cluster
tree        a minimum spanning tree and its trunk
timing      the time per sample of labelers
style       the look of all figures, and a new figure that has it
sheet       what is drawn on: a new figure, or one panel of a user
notebook    a figure that a notebook shows
axes        names of sizes, the published threshold, ticks and legends
math_text   symbols in mathematics
files       how a figure is written
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
