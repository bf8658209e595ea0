"""Spins: samples are the sweeps of Markov chains, which differ at every p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from percolab.errors import InputError
from percolab.kinds.algorithms import Labelers
from percolab.measure.columns import Column, columns_of
from percolab.tasks.kind import Kind
from percolab.tasks.study import Study, Task
from percolab.tasks.values import AUTO


class ChainsOfSpins(Kind):
    """Chains of spins at given p: a block is a chain, or a part of one long chain."""

    name = "chains"
    settings = frozenset({"update", "burn_in", "every", "chains", "sweeps", "beta", "T", "K"})
    refused_measures: ClassVar[Mapping[str, str]] = {
        "gyration": "radii are measured in percolation, not with spins"
    }
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "{model} has spins, of which a sweep needs all at once",
        "plan": "chains of spins cannot be planned; a short sweep tells their rate",
        "functions": "functions of labels are measured in percolation by method grid, not of "
        "{model}",
        "target_error": "a target error needs samples that are the same at all p, and those of "
        "spins are not",
    }
    number_is = "chains"
    algorithms = Labelers()

    def check(self, item: Task | Study) -> None:
        """Raise InputError for a burn-in below 0, and for wave vectors without a periodic axis."""
        if "correlation" in item.measure and "periodic" not in item.boundary:
            raise InputError("measure correlation: a wave vector needs a periodic axis")
        if item.burn_in < AUTO:
            raise InputError(f"burn_in = {item.burn_in}, but it must be at least 0")

    def samples_identity(self, task: Task) -> dict[str, Any]:
        """Return which clusters a sweep changes."""
        return {"update": task.update}

    def identity(self, task: Task) -> dict[str, Any]:
        """Return p and what is measured of the chains; what came later only where it is given."""
        found = {"p": [p.hex() for p in task.p], "burn_in": task.burn_in}
        found |= {"every": task.every} if task.every != 1 else {}
        return found | ({"chains": task.chains} if task.chains else {})

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of clusters, of spins, and of what connects the sweeps of a chain."""
        return columns_of(boundary, measure, spins=True, wide=wide)


KIND = ChainsOfSpins()
