"""What is measured: one entry an observable, each an integer per sample computed from its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.graph import TERMINALS
from percolab.kernels.clusters import (
    CLUSTERS,
    LARGEST,
    SECOND_LARGEST,
    SPANNING,
    SUM_SQUARES,
)

AXIS_NAMES = "xyzuvwst"


@dataclass(frozen=True)
class Observable:
    """A measured quantity: name, symbol, meaning, unit, and its integer value per row.

    The value is a column of the row; with a ``mask`` of axes it is 1 if the sample spans along one
    of them, or with ``every`` along all, and 0 otherwise.
    """

    name: str
    symbol: str
    meaning: str
    unit: str
    column: int = SPANNING
    mask: int = 0
    every: bool = True

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of rows, int64 (..., ROW_WIDTH)."""
        if not self.mask:
            return rows[..., self.column]
        found = rows[..., SPANNING] & self.mask
        return (found == self.mask if self.every else found != 0).astype(np.int64)


_SIZES = (
    Observable("clusters", "n_c", "number of clusters, single sites included", "1", CLUSTERS),
    Observable("largest", "s_1", "sites of the largest cluster", "site", LARGEST),
    Observable(
        "second_largest",
        "s_2",
        "sites of the second largest cluster",
        "site",
        SECOND_LARGEST,
    ),
    Observable(
        "sum_squares",
        "sum s^2",
        "sum of squared cluster sizes, the largest included",
        "site^2",
        SUM_SQUARES,
    ),
)


def open_axes(boundary: Sequence[str]) -> list[int]:
    """Return the axes that a sample can span along."""
    return [axis for axis, kind in enumerate(boundary) if kind != "periodic"]


def axis_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the open axes: x, y, ..., or that of a source and a target."""
    names = {axis: AXIS_NAMES[axis] for axis in open_axes(boundary)}
    return [TERMINALS if boundary[axis] == TERMINALS else names[axis] for axis in names]


def axis_observables(boundary: Sequence[str]) -> list[str]:
    """Return the names of the spanning observables along one open axis each, in their order.

    >>> axis_observables(["open", "periodic", "open"])
    ['spanning_x', 'spanning_z']
    """
    names = axis_names(boundary)
    return ["spanning" if name == TERMINALS else f"spanning_{name}" for name in names]


def observables_of(boundary: Sequence[str]) -> tuple[Observable, ...]:
    """Return what is measured on a lattice with this boundary, in the order it is stored."""
    axes = open_axes(boundary)
    found = list(_SIZES)
    for axis, letter, name in zip(axes, axis_names(boundary), axis_observables(boundary)):
        meaning = f"1 if one cluster touches both end layers of the {letter} axis"
        if letter == TERMINALS:
            meaning = "1 if one cluster has a site of the source and one of the target"
        symbol = name.replace("spanning", "R")
        found.append(Observable(name, symbol, meaning, "1", mask=1 << axis))
    if len(axes) > 1:
        mask = sum(1 << axis for axis in axes)
        found += [
            Observable(
                "spanning_any",
                "R_any",
                "1 if the sample spans along at least one axis",
                "1",
                mask=mask,
                every=False,
            ),
            Observable(
                "spanning_all",
                "R_all",
                "1 if the sample spans along every open axis, be it by different clusters",
                "1",
                mask=mask,
            ),
        ]
    return tuple(found)


def spanning_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the spanning observables that a lattice with this boundary has."""
    return [item.name for item in observables_of(boundary) if item.mask]
