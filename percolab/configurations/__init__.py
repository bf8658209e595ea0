"""Configurations that are labeled one at a time: a user's own, or one sample of a sweep.

Nothing that is read is unpickled or evaluated, an array's header is checked before memory is taken
for it, and a file that cannot be used is refused in one line.  docs/labels.md is the user's page.

    array_files    arrays in NPY and HDF5 files and in PNG and TIFF images; Otsu's threshold
    configuration  Configuration, the sites and the open bonds, and three ways to get one
    label          masks, samples and graphs as arrays of labels: percolab.label
    picture        the picture of a configuration's clusters
    label_files    labels to and from NPY and HDF5
    tree           the minimum spanning tree of given weights, or of a sample: percolab.tree
    tree_files     such a tree as a file
"""

from percolab.configurations.configuration import (
    Configuration,
    bond_configuration,
    random_configuration,
    site_configuration,
)
from percolab.configurations.label_files import LabelFile, read_labels, write_labels
from percolab.measure.clusters import Clusters

__all__ = [
    "Clusters",
    "Configuration",
    "LabelFile",
    "bond_configuration",
    "random_configuration",
    "read_labels",
    "site_configuration",
    "write_labels",
]
