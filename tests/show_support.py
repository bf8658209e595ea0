"""What the tests of drawn clusters share."""

import numpy as np
from matplotlib.colors import to_hex

from percolab.figures.configuration import plot_clusters


def drawn(configuration, **options):
    """Return the clusters of a configuration on a lattice, their figure, and its numbers."""
    clusters = configuration.label()
    options = {"opened": configuration.opened, **options}
    return clusters, *plot_clusters(clusters, configuration.lattice, **options)


def one(axes, kind):
    (found,) = (item for item in axes.collections if type(item) is kind)
    return found


def whole_cells(lattice, least):
    """Return the smallest size from ``least`` on that cuts no cell."""
    cell = np.lcm.reduce(lattice.cell)
    return int(-(-least // cell) * cell)


def hexes(colours):
    return [to_hex(colour) for colour in colours]


def colour_of_labels(sites, colours, labels):
    """Return the one colour of every label that is drawn; fail if it has two."""
    found = {}
    for site, colour in zip(sites, colours, strict=True):
        assert found.setdefault(int(labels[site]), colour) == colour
    return found
