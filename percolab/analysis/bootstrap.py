"""Bootstrap of the whole analysis: the same resampled counts feed every number with an error.

Source: B. Efron, Ann. Stat. 7, 1 (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.crossings import Crossing, half_width, replica_crossings
from percolab.analysis.likelihood import ThresholdCells, maximise
from percolab.analysis.scaling import ScalingFunction, ScalingModel
from percolab.analysis.size_fit import SizeFit, fit_cells
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replicas:
    """What the replicas gave.

    functions: scaling functions of the replicas whose fit converged.
    crossings: float64 (replicas, crossings, 2), p* and R, NaN where absent.
    """

    functions: tuple[ScalingFunction, ...]
    crossings: Floats

    @property
    def failed(self) -> int:
        """Number of replicas without a fit."""
        return self.crossings.shape[0] - len(self.functions)

    def error(self, quantity: Callable[[ScalingFunction], float]) -> float:
        """One-sigma error of a quantity derived from the scaling function; NaN without replicas."""
        return half_width(np.array([quantity(function) for function in self.functions]))

    def coefficient_errors(self) -> tuple[float, ...]:
        """One-sigma errors of a_0 ... a_d; empty without replicas."""
        columns = zip(*(function.coefficients for function in self.functions), strict=True)
        return tuple(half_width(np.array(column)) for column in columns)

    def notes(self, crossings: Sequence[Crossing]) -> list[str]:
        """Return one line for each kind of replica that an error bar leaves out.

        `crossings` are those of the data, in the order of the columns here.
        """
        total, notes = self.crossings.shape[0], []
        if self.failed:
            notes.append(
                f"{self.failed} of {total} bootstrap replicas could not be fitted: "
                "the errors leave them out"
            )
        absent = np.isnan(self.crossings[:, :, 0]).sum(axis=0) - self.failed
        missing = [
            f"({crossing.L1}, {crossing.L2}) in {count} of {total}"
            for crossing, count in zip(crossings, absent.tolist(), strict=True)
            if crossing.found and count
        ]
        if missing:
            notes.append(
                "crossings absent in bootstrap replicas, which their errors leave out: "
                f"L = {', '.join(missing)}"
            )
        return notes


def run_bootstrap(
    cells: ThresholdCells,
    model: ScalingModel,
    theta: Floats,
    size_fits: Sequence[SizeFit],
    crossings: Sequence[Crossing],
    *,
    replicas: int,
    rng: np.random.Generator,
) -> Replicas:
    """Refit `replicas` resampled counts, each from the fit of the data.

    `theta` is the maximum of `model` on the data; `size_fits` and `crossings` ascend in L.
    """
    own_cells = [cells.of_size(fit.L) for fit in size_fits]
    functions: list[ScalingFunction] = []
    crossed = np.full((replicas, len(crossings), 2), np.nan)
    for index, counts in enumerate(cells.resample(rng, replicas)):
        try:
            estimate = maximise(model, cells, counts, theta)
        except AnalysisError:
            continue
        functions.append(model.scaling_function(estimate.theta))
        crossed[index] = _cross(crossings, size_fits, own_cells, counts)
    return Replicas(tuple(functions), crossed)


def _cross(
    crossings: Sequence[Crossing],
    size_fits: Sequence[SizeFit],
    own_cells: Sequence[tuple[ThresholdCells, NDArray[np.bool_]]],
    counts: Floats,
) -> Floats:
    """(p*, R) of every crossing in one replica, NaN where a curve could not be fitted."""
    try:
        refits = [
            fit_cells(own, counts[mask], degree=len(fit.coefficients) - 1, start=fit)
            for fit, (own, mask) in zip(size_fits, own_cells, strict=True)
        ]
    except AnalysisError:
        return np.full((len(crossings), 2), np.nan)
    return replica_crossings(crossings, refits)
