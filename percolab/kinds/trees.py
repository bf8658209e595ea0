"""Minimum spanning trees: one of every sample, whose bonds have the uniform numbers as weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from percolab.errors import InputError
from percolab.kinds.algorithms import TreeMethods
from percolab.measure.columns import MEASURES, Column, columns_of
from percolab.measure.trees import WEIGHT_BITS
from percolab.tasks.kind import Kind
from percolab.tasks.study import Study, Task

#: Trees are chosen from all bonds.
ALL_BONDS = (1.0,)


class SpanningTrees(Kind):
    """The minimum spanning tree of every sample."""

    name = "trees"
    fixed_p = ALL_BONDS
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method tree finds trees, nothing else"
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "method tree chooses from the bonds of the whole lattice",
        "plan": "trees are not planned; a study of a few samples tells their rate",
        "functions": "functions of labels are measured in percolation by method grid, not of "
        "method tree",
        "target_error": "trees have no p_c with a target error",
    }
    sums = "weights"
    tables_on_host = True
    algorithms = TreeMethods()

    def check(self, item: Task | Study) -> None:
        """Raise InputError for p, and for models that are not bond percolation."""
        if item.p not in (None, ALL_BONDS):
            raise InputError("method tree chooses from all bonds: leave out p")
        if item.model != "bond":
            raise InputError(
                f"method tree: bonds have the weights, so the model is bond, not {item.model}"
            )

    def identity(self, task: Task) -> dict[str, Any]:
        """Return the method; p is that of all trees."""
        return {"method": task.method}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of trees."""
        return columns_of(boundary, measure, trees=True)

    def largest_sum(self, num_points: int) -> int:
        """Return the largest weight of a tree."""
        return num_points << WEIGHT_BITS


KIND = SpanningTrees()
