"""Stored results as figures: one function a figure, which also returns every number drawn.

matplotlib and scipy load when a figure is made.

kinds/      the kinds of figures that results give: curves, collapse, clusters, thermal, ...
study_view  stored results with the options of their figures, and the declaration of a kind
report      all figures and fits of results on one page; page, its HTML
lattice     a lattice and its bonds
configuration, networks: one sample, coloured by cluster; colours, and what legends say of them
bond_maps   a minimum spanning tree and its trunk; the backbone
table       the fit of somebody's table: curves, crossings, collapse
style       the look of all figures, and a new figure that has it
sheet       what is drawn on: a new figure, or one panel of a user
notebook    a figure that a notebook shows
elements    names of sizes, the published threshold, ticks and legends
math_text   symbols in mathematics
files       how a figure is written
"""

from percolab.figures.elements import Exact
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
