"""Single configurations that are labeled: a user's own, or one sample of a sweep.

No file is unpickled or evaluated, an array's header is checked before memory is allocated for it,
and a file that cannot be used is refused with one line.  docs/labels.md is the user's page.
"""

from percolab.configurations.configuration import (
    Configuration,
    random_configuration,
    site_configuration,
)
from percolab.configurations.label_array import LabeledClusters
from percolab.configurations.label_files import read_labels, write_labels
from percolab.measure.clusters import Clusters

__all__ = [
    "Clusters",
    "Configuration",
    "LabeledClusters",
    "random_configuration",
    "read_labels",
    "site_configuration",
    "write_labels",
]
