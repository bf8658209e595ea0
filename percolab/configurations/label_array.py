"""Labels with facts about their clusters, and the array of labels that percolab.label returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from percolab.configurations.configuration import Configuration
from percolab.configurations.phases import Phase, SiteRule, measure_phases
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.lattice import Lattice
from percolab.measure.clusters import Clusters

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class LabeledClusters:
    """Clusters, their labels, and their lattice if it is known.

    lattice: None, so sites have no coordinates, for a graph or an array not in 2 or 3 dimensions
    record:  where the labels come from, as plain JSON values; {} if that is not known
    cluster_labels: the label of every cluster as in the array, (n,)
    phases:  for an image, the number of every cluster's phase, uint8 (n,), 1 for the first
    names:   the names of a graph's sites, if they have names
    """

    clusters: Clusters
    lattice: Lattice | BetheLattice | None
    record: dict[str, Any]
    cluster_labels: np.ndarray
    phases: np.ndarray | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, clusters: Clusters, chosen: Configuration | None, *, serial: bool = False) -> Self:
        """Return clusters with their configuration, which is None for a bare topology.

        serial: labels are 0 ... n - 1; otherwise a label is the smallest site.
        """
        roots = clusters.roots
        labels = np.arange(roots.size, dtype=np.int32) if serial else roots
        if chosen is None:
            return cls(clusters, None, {}, labels)
        lattice = chosen.lattice if isinstance(chosen.lattice, Lattice | BetheLattice) else None
        phases = None if chosen.phases is None else chosen.phases[roots]
        names = getattr(chosen.lattice, "names", None)
        return cls(clusters, lattice, chosen.record, labels, phases, names)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.clusters.topology.shape[::-1] or self.clusters.labels.shape

    @property
    def phase_names(self) -> list[str]:
        """The names of an image's phases; [] for anything else."""
        return SiteRule.from_record(self.record).names if self.phases is not None else []

    @cached_property
    def measured_phases(self) -> list[Phase]:
        """The measured properties of every phase of an image; [] for anything else."""
        if self.phases is None or not isinstance(self.lattice, Lattice):
            return []
        # The appended last entry belongs to number -1, no site.
        of_sites = np.append(self.phases, np.uint8(0))[self.clusters.numbers]
        return measure_phases(
            self.phase_names, of_sites.reshape(self.shape), self.clusters, self.lattice
        )

    def columns(self) -> tuple[list[str], list[np.ndarray]]:
        """Return headings and columns of a table with a row for each cluster."""
        header, columns = ["label", "sites"], [self.cluster_labels, self.clusters.sizes]
        if self.phases is not None:
            header.append("phase")
            columns.append(np.array(["", *self.phase_names])[self.phases])
        for verb, axes in (("spans", self.clusters.spanning), ("wraps", self.clusters.wrapping)):
            for axis, numbers in axes.items():
                is_one = np.zeros(self.cluster_labels.size, bool)
                is_one[numbers] = True
                header.append(f"{verb}_{axis}".replace("-", "_"))
                columns.append(is_one)
        return header, columns

    def cluster_table(self) -> tuple[list[str], list[list[Any]]]:
        """Return :meth:`columns` as headings and rows, 1 for yes and 0 for no."""
        header, columns = self.columns()
        plain = [column.astype(int) if column.dtype == bool else column for column in columns]
        rows = zip(*(column.tolist() for column in plain), strict=True)
        return header, list(map(list, rows))

    def site_table(self) -> tuple[list[str], list[list[Any]]]:
        """Return headings and rows: the index or name of every site and its label."""
        labels = np.append(self.cluster_labels, -1)[self.clusters.numbers].ravel().tolist()
        sites = range(len(labels)) if self.names is None else self.names
        return ["site", "label"], [list(row) for row in zip(sites, labels, strict=True)]


class Labels(np.ndarray):
    """The label of every site, an int32 array with attributes that describe the clusters.

    Use it like any array.  Anything computed from it (a part, a comparison, a sum) is a plain
    array, and so is :attr:`array`.  Copies, reshaped arrays and unpickled ones have no clusters:
    the attributes below raise AttributeError.
    """

    _known: LabeledClusters | None
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
        labels._known = LabeledClusters.of(clusters, configuration, serial=serial)
        labels._configuration = configuration
        return labels

    def __array_finalize__(self, source: Any) -> None:
        """Give a view no clusters."""
        self._known, self._configuration = None, None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return a result of NumPy as a plain array."""
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return self.array[key]

    def __reduce__(self) -> Any:
        return self.array.__reduce__()

    @property
    def array(self) -> np.ndarray:
        """The labels as a plain array that shares memory with this one."""
        return self.view(np.ndarray)

    @property
    def known(self) -> LabeledClusters:
        """The clusters with their labels, lattice and record; AttributeError for a copy."""
        if self._known is None:
            raise AttributeError(
                "only the array that percolab.label returned has clusters, not a copy of it"
            )
        return self._known

    @property
    def clusters(self) -> Clusters:
        """The clusters, numbered 0 ... n - 1 by their smallest site."""
        return self.known.clusters

    @property
    def configuration(self) -> Configuration | None:
        """The configuration that was labeled; None for a copy or a topology."""
        return self._configuration

    @property
    def num_clusters(self) -> int:
        return int(self.clusters.roots.size)

    @property
    def sizes(self) -> np.ndarray:
        """Number of sites of every cluster, int64 (num_clusters,), in ascending order of label."""
        return self.clusters.sizes

    @property
    def cluster_labels(self) -> np.ndarray:
        """The label of every cluster as in the array, ascending: int32 (num_clusters,)."""
        return self.known.cluster_labels

    @property
    def spanning(self) -> dict[str, np.ndarray]:
        """The labels of the clusters that touch both sides of an open axis, by axis "x", "y" ..."""
        return {axis: self.cluster_labels[own] for axis, own in self.clusters.spanning.items()}

    @property
    def wrapping(self) -> dict[str, np.ndarray]:
        """The labels of the clusters that wrap around a periodic axis, by axis."""
        return {axis: self.cluster_labels[own] for axis, own in self.clusters.wrapping.items()}

    @property
    def phases(self) -> list[Phase]:
        """The measured properties of every phase of an image; [] for a sample or a graph."""
        return self.known.measured_phases

    @property
    def site_names(self) -> tuple[str, ...] | None:
        """The names of a graph's sites, in the order of the labels; None if sites are numbers."""
        return self.known.names

    def summary(self) -> dict[str, Any]:
        """Return the facts that `percolab label --json` prints, as plain JSON values."""
        return self.clusters.summary()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the clusters as a pandas.DataFrame, one row each.

        Columns: label, sites; for an image the phase; and for every axis whether the cluster spans
        or wraps.  InputError: pandas is not installed.
        """
        from percolab.tables.frames import imported

        header, columns = self.known.columns()
        return imported("pandas").DataFrame(dict(zip(header, columns)))
