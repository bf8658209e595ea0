"""Colours of drawn clusters, and what the legend says of them."""

import numpy as np
import pytest
from helpers import PLANAR
from show_support import colour_of_labels, drawn, hexes, whole_cells

from percolab.configurations import random_configuration, site_configuration
from percolab.figures import save_figure
from percolab.figures.colours import LARGEST, MUTED, NO_SITE, SINGLE, SPANNING, choose_colours
from percolab.lattices.lattice import load_lattice

#: In which no two bonds cross, so that few colours suffice.

pytestmark = pytest.mark.usefixtures("own_directory")


@pytest.mark.parametrize("name", PLANAR)
def test_clusters_that_touch_have_different_colours(name):
    lattice = load_lattice(name)
    size = whole_cells(lattice, 20)
    configuration = random_configuration(lattice, size, 0.8 * lattice.threshold().value, seed=2)
    clusters = configuration.label()
    colours = choose_colours(clusters)
    _, owner, other = configuration.topology.bonds().T
    differ = clusters.labels[owner] != clusters.labels[other]
    large = clusters.sizes[clusters.numbers] > 1
    differ &= large[owner] & large[other]
    assert differ.sum() > 20
    assert not (colours.of_sites[owner] == colours.of_sites[other])[differ].any()


def test_spanning_clusters_and_the_largest_stand_out():
    image = np.zeros((7, 9), bool)
    image[0], image[2, 1:], image[4:, 4:] = True, True, True
    image[2, 0] = True
    image[4, 0] = image[6, 0:2] = True
    np.save("image.npy", image)
    clusters = site_configuration("image.npy").label()
    assert [name for name, found in clusters.spanning.items() if found.size] == ["x"]
    colours = choose_colours(clusters)
    found = colour_of_labels(range(63), hexes(colours.rgb() / 255), clusters.labels)
    top, line, block, single, pair = (0, 18, 40, 36, 54)
    assert found[-1] == NO_SITE
    assert found[block] == LARGEST.lower()
    assert [found[top], found[line]] == [colour.lower() for colour in SPANNING[:2]]
    assert found[single] == SINGLE
    assert found[pair] in MUTED
    _, _, numbers = drawn(site_configuration("image.npy"))
    assert [(item["label"], item["size"], item["spanning"]) for item in numbers["prominent"]] == [
        (block, 15, []),
        (top, 9, ["x"]),
        (line, 9, ["x"]),
    ]


def test_no_two_colours_are_alike():
    assert len({*MUTED, *SPANNING, LARGEST, SINGLE, NO_SITE}) == len(MUTED) + len(SPANNING) + 3


def test_legend_says_what_is_drawn():
    np.save("image.npy", np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]]))
    _, figure, _ = drawn(site_configuration("image.npy"))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "largest cluster, 4 of 7 sites, spans along x",
        "1 other cluster",
        "1 single site",
    ]
    every = random_configuration(load_lattice("square"), 4, 1.0)
    (text,) = drawn(every)[1].legends[0].get_texts()
    assert text.get_text() == "largest cluster, 16 of 16 sites, spans along x and y"


def test_many_spanning_clusters_are_counted_in_the_legend():
    stripes = np.zeros((13, 5), bool)
    stripes[::2] = True
    np.save("image.npy", stripes)
    texts = drawn(site_configuration("image.npy"))[1].legends[0].get_texts()
    assert len(texts) == 4
    assert texts[-1].get_text().endswith(", and 3 more that span")


def test_nothing_can_be_drawn():
    np.save("image.npy", np.zeros((3, 3), bool))
    _, figure, numbers = drawn(site_configuration("image.npy"))
    assert numbers["clusters"] == 0
    assert not figure.legends
    save_figure(figure, "empty.png")
