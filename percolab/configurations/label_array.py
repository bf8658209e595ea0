"""Labels: the array that percolab.label returns, with what is known of its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.configurations.configuration import Configuration
from percolab.configurations.phases import Phase
from percolab.lattices.shown import csv_text
from percolab.measure.clusters import Clusters

if TYPE_CHECKING:
    import pandas


class Labels(np.ndarray):
    """The label of every site, an int32 array, with what is known of the clusters.

    It is used like any array.  What is computed from it (a part, a comparison, a sum) is a plain
    one, and so is :attr:`array`.  A copy or another shape of it has no clusters, nor has what was
    pickled: their attributes raise AttributeError.
    """

    _clusters: Clusters | None
    _serial: bool
    _configuration: Configuration | None

    @classmethod
    def make(
        cls,
        clusters: Clusters,
        shape: tuple[int, ...],
        *,
        serial: bool,
        configuration: Configuration | None = None,
    ) -> Labels:
        """Return the labels of clusters as an array of this shape.

        serial: clusters are numbered 0 ... n - 1 in place of their smallest sites.
        configuration: what was labeled, whose phases are measured.
        """
        labels = (clusters.numbers if serial else clusters.labels).reshape(shape).view(cls)
        labels._clusters, labels._serial, labels._configuration = clusters, serial, configuration
        return labels

    def __array_finalize__(self, source: Any) -> None:
        """Give a view no clusters."""
        self._clusters, self._serial, self._configuration = None, False, None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return what NumPy computed as a plain array."""
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return self.array[key]

    def __reduce__(self) -> Any:
        return self.array.__reduce__()

    @property
    def array(self) -> np.ndarray:
        """The labels as a plain array, which shares its memory."""
        return self.view(np.ndarray)

    @property
    def clusters(self) -> Clusters:
        """The clusters, numbered 0 ... n - 1 by their smallest site."""
        if self._clusters is None:
            raise AttributeError(
                "only the labels that percolab.label returned know their clusters, no copy of them"
            )
        return self._clusters

    @property
    def configuration(self) -> Configuration | None:
        """What was labeled; None of a copy, and of a topology."""
        return self._configuration

    @property
    def num_clusters(self) -> int:
        return int(self.clusters.roots.size)

    @property
    def sizes(self) -> np.ndarray:
        """Sites of every cluster, int64 (num_clusters,), in ascending order of their labels."""
        return self.clusters.sizes

    @property
    def cluster_labels(self) -> np.ndarray:
        """The label of every cluster as it is in the array, ascending: int32 (num_clusters,)."""
        roots = self.clusters.roots
        return np.arange(roots.size, dtype=np.int32) if self._serial else roots

    @property
    def spanning(self) -> dict[str, np.ndarray]:
        """Per open axis, "x", "y" ..., the labels of the clusters that touch both of its sides."""
        return {axis: self.cluster_labels[own] for axis, own in self.clusters.spanning.items()}

    @property
    def wrapping(self) -> dict[str, np.ndarray]:
        """Per periodic axis the labels of the clusters that close on themselves around it."""
        return {axis: self.cluster_labels[own] for axis, own in self.clusters.wrapping.items()}

    @property
    def phases(self) -> list[Phase]:
        """What is measured of every phase of an image; [] of a sample or a graph."""
        chosen, clusters = self._configuration, self.clusters
        return [] if chosen is None else chosen.measure_phases(clusters)

    @property
    def site_names(self) -> tuple[str, ...] | None:
        """The names of a graph's sites, in the order of the labels; None where they are numbers."""
        chosen, _ = self._configuration, self.clusters
        return None if chosen is None else getattr(chosen.lattice, "names", None)

    def summary(self) -> dict[str, Any]:
        """Return what `percolab label --json` says of the clusters, as plain JSON values."""
        return self.clusters.summary()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the clusters as a pandas.DataFrame, one row each.

        Columns: label, sites; of an image the phase; and for every axis whether the cluster spans
        or wraps.  InputError: pandas is not installed.
        """
        from percolab.tables.frames import imported

        header, columns = cluster_columns(
            self.clusters, self.cluster_labels, *_phases(self._configuration, self.clusters)
        )
        return imported("pandas").DataFrame(dict(zip(header, columns)))


def clusters_csv(chosen: Configuration, clusters: Clusters, *, serial: bool) -> bytes:
    """Return the table of the clusters of a configuration as CSV, 1 for yes and 0 for no."""
    labels = np.arange(clusters.roots.size) if serial else clusters.roots
    return csv_text(*cluster_table(clusters, labels, *_phases(chosen, clusters))).encode()


def _phases(
    chosen: Configuration | None, clusters: Clusters
) -> tuple[np.ndarray | None, Sequence[str]]:
    """Return the number of every cluster's phase, and the names; None and () without phases."""
    if chosen is None or chosen.phases is None:
        return None, ()
    return chosen.phases[clusters.roots], chosen.phase_names


def cluster_columns(
    clusters: Clusters, labels: np.ndarray, phases: np.ndarray | None, phase_names: Sequence[str]
) -> tuple[list[str], list[np.ndarray]]:
    """Return headings and columns of a table of clusters, a row each.

    labels: of every cluster.  phases: the number of its phase, 1 for the first of ``phase_names``;
    None without.
    """
    header, columns = ["label", "sites"], [labels, clusters.sizes]
    if phases is not None:
        header.append("phase")
        columns.append(np.array(["", *phase_names])[phases])
    for verb, axes in (("spans", clusters.spanning), ("wraps", clusters.wrapping)):
        for axis, numbers in axes.items():
            is_one = np.zeros(labels.size, bool)
            is_one[numbers] = True
            header.append(f"{verb}_{axis}".replace("-", "_"))
            columns.append(is_one)
    return header, columns


def cluster_table(clusters: Clusters, *named: Any) -> tuple[list[str], list[list[Any]]]:
    """Return :func:`cluster_columns` as headings and rows, 1 for yes and 0 for no."""
    header, columns = cluster_columns(clusters, *named)
    plain = [column.astype(int) if column.dtype == bool else column for column in columns]
    return header, [list(row) for row in zip(*(column.tolist() for column in plain), strict=True)]
