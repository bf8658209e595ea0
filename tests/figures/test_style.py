"""What all figures share: colours that print and every eye tell apart, titles that fit, p >= 0."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from percolab.configurations import random_configuration
from percolab.figures.colours import LARGEST, MUTED, SPANNING, choose_colours
from percolab.figures.elements import keep_to_probabilities, letter_panels, set_title
from percolab.figures.networks import open_inwards
from percolab.figures.style import COLOURS, new_figure
from percolab.lattices.bethe import BetheLattice, parents, site_numbers

#: What the eye of a reader sees of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "normal": np.eye(3),
    "deuteranope": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanope": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
#: Linear RGB to CIE XYZ (IEC 61966-2-1).
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab_of(colours, sight="normal"):
    """Return CIELAB coordinates (n, 3) of colours as someone with this sight sees them."""
    encoded = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ SIGHTS[sight].T, 0, 1)
    t = seen @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
    )


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_of_curves_are_told_apart_by_every_eye(sight):
    lab = lab_of(COLOURS, sight)
    assert min(np.linalg.norm(one - other) for one, other in combinations(lab, 2)) > 20
    muted = lab_of(MUTED, sight)
    assert min(np.linalg.norm(one - other) for one, other in combinations(muted, 2)) > 13


def test_colours_of_curves_differ_in_grey():
    lightness = lab_of(COLOURS)[:, 0]
    assert np.diff(np.sort(lightness)).min() > 6
    assert np.diff(np.sort(lightness[:4])).min() > 14, "most studies have four sizes"
    assert min(abs(one - other) for one, other in pairwise(lightness)) > 15
    assert lightness.max() < 76, "on white paper"
    muted = lab_of(MUTED)[:, 0]
    assert np.diff(np.sort(muted)).min() > 4
    assert muted.min() > lab_of([LARGEST, *SPANNING])[:, 0].max() + 7


@pytest.mark.parametrize("numbering", ["standard", "random"])
@pytest.mark.parametrize("p", [0.3, 0.75])
def test_clusters_of_a_bethe_lattice_that_touch_have_different_colours(numbering, p):
    lattice, shells = BetheLattice(3, numbering), 7
    clusters = random_configuration(lattice, shells, p).label()
    colours = choose_colours(clusters, grey_singles=False)
    sites = site_numbers(len(clusters.labels), numbering)
    inner = sites[parents(len(sites), 3)]
    closed = ~open_inwards(clusters, sites, parents(len(sites), 3))
    of_sites = colours.of_sites
    assert closed.sum() > 50
    assert not (of_sites[sites[1:]] == of_sites[inner])[closed].any()


@pytest.mark.parametrize(
    "title",
    [
        "Site-bond percolation, $p_{site} = 0.9$, triangular, $L = 24$, $p = 0.6$, seed 12345, "
        "periodic along x and y",
        r"Bond percolation, \$a graph with a name of many words and commas, and a dollar\$",
        "short",
    ],
)
def test_a_title_is_as_wide_as_the_figure_at_most(title):
    with new_figure(3.5, 3) as figure:
        figure.subplots()
        set_title(figure, title)
    figure.draw_without_rendering()
    (text,) = [item for item in figure.texts if item.get_text() == figure.get_suptitle()]
    box = text.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert figure.get_suptitle().replace("\n", " ") == title
    assert ("\n" in figure.get_suptitle()) == (title != "short")


def test_axes_of_probabilities_end_at_0_and_1_with_whole_markers():
    with new_figure(3, 3) as figure:
        axes, other = figure.subplots(1, 2)
    for panel, p in ((axes, [0.0, 0.5, 1.0]), (other, [0.4, 0.5])):
        panel.plot(p, p, marker="o")
    wide = other.get_xlim()
    keep_to_probabilities(axes, other)
    assert axes.get_xlim() == (0, 1)
    assert not axes.lines[0].get_clip_on()
    assert other.get_xlim() == wide
    assert other.lines[0].get_clip_on()


def test_a_single_panel_has_no_letter():
    with new_figure(3, 3) as figure:
        one, two = figure.subplots(1, 2)
    letter_panels([one])
    assert not one.texts
    letter_panels([one, two])
    assert [panel.texts[0].get_text() for panel in (one, two)] == ["(a)", "(b)"]
