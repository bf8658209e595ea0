"""Exact thresholds: the smallest p at which each sample spans, along every open axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from percolab.errors import InputError
from percolab.kinds.algorithms import Labelers
from percolab.measure.columns import MEASURES, Column, columns_of, open_axes
from percolab.tasks.kind import Kind
from percolab.tasks.study import Study, Task


class Threshold(Kind):
    """The exact threshold T of every sample; there is no p."""

    name = "threshold"
    fixed_p = ()
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method threshold finds T, nothing else"
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "method threshold opens the bonds of a whole sample in order; give p",
        "functions": "functions of labels are measured in percolation by method grid, not of "
        "method threshold",
    }
    algorithms = Labelers()

    def check(self, item: Task | Study) -> None:
        """Raise InputError for p, for spins, and where nothing can span."""
        if item.has_spins:
            raise InputError(
                "method threshold finds where samples begin to span, but those of "
                f"{item.model} are different at every p: leave it out"
            )
        if item.p:
            raise InputError("method threshold finds the p at which each sample spans: leave out p")
        if not item.boundary:
            raise InputError(
                "method threshold needs a source and a target: without them nothing spans"
            )
        if not open_axes(item.boundary):
            raise InputError("method threshold needs an open axis: without one nothing spans")

    def identity(self, task: Task) -> dict[str, Any]:
        """Return the method, since there is no p."""
        return {"method": task.method}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of clusters; of the thresholds those of spanning follow at any p."""
        return columns_of(boundary, measure, wide=wide)


KIND = Threshold()
