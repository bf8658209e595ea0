"""Percolation on a grid of p: every sample is measured at all p at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from percolab.kinds.algorithms import Labelers
from percolab.lattices.geometry import geometry_of
from percolab.measure.columns import Column, columns_of
from percolab.tasks.kind import Kind
from percolab.tasks.study import Study, Task

_NO_CHAINS = "only chains of spins have one (--model ising)"


class Grid(Kind):
    """Percolation on a grid of p."""

    name = "grid"
    refused_measures: ClassVar[Mapping[str, str]] = {
        "series": _NO_CHAINS,
        "correlation": _NO_CHAINS,
    }
    algorithms = Labelers()

    def check(self, item: Task | Study) -> None:
        """Raise InputError where radii have no meaning."""
        if "gyration" in item.measure:
            geometry_of(item.structure, (1,) * max(item.structure.dimension, 1))

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of clusters."""
        return columns_of(boundary, measure, wide=wide)


KIND = Grid()
