"""Stored results as figures: one function per figure, which also returns every number drawn.

matplotlib and scipy are imported when a figure is made.

kinds/      the kinds of figures that results give: curves, collapse, clusters, thermal, ...
study_view  stored results with the options of their figures, and the declaration of a kind
report      all figures and fits of results on one page; page, its HTML
lattice     a lattice and its bonds
configuration, networks: one sample, coloured by cluster; colours: the colours and their legends
bond_maps   a minimum spanning tree and its trunk; the backbone
table       the fit of a user's table: curves, crossings, collapse
style       the style of all figures, and a new figure with it
sheet       the drawing surface: a new figure, or one panel of a user's figure
notebook    a figure that a notebook shows
elements    labels of sizes, the published threshold, ticks and legends
math_text   symbols in mathematical notation
files       writing figures to files
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
