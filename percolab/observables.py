"""What is measured: one entry an observable, each an integer per sample computed from its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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
    """A measured quantity: name, symbol, meaning, unit, and its integer value per row."""

    name: str
    symbol: str
    meaning: str
    unit: str
    of_rows: Callable[[np.ndarray], np.ndarray]


def _column(index: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: rows[..., index]


def _bits(mask: int, *, all_of: bool) -> Callable[[np.ndarray], np.ndarray]:
    def flag(rows: np.ndarray) -> np.ndarray:
        found = rows[..., SPANNING] & mask
        return (found == mask if all_of else found != 0).astype(np.int64)

    return flag


_SIZES = (
    Observable(
        "clusters", "n_c", "number of clusters, single sites included", "1", _column(CLUSTERS)
    ),
    Observable("largest", "s_1", "sites of the largest cluster", "site", _column(LARGEST)),
    Observable(
        "second_largest",
        "s_2",
        "sites of the second largest cluster",
        "site",
        _column(SECOND_LARGEST),
    ),
    Observable(
        "sum_squares",
        "sum s^2",
        "sum of squared cluster sizes, the largest included",
        "site^2",
        _column(SUM_SQUARES),
    ),
)


def open_axes(boundary: Sequence[str]) -> list[int]:
    """Return the axes that a sample can span along."""
    return [axis for axis, kind in enumerate(boundary) if kind == "open"]


def observables_of(boundary: Sequence[str]) -> tuple[Observable, ...]:
    """Return what is measured on a lattice with this boundary, in the order it is stored."""
    axes = open_axes(boundary)
    found = list(_SIZES)
    for axis in axes:
        letter = AXIS_NAMES[axis]
        found.append(
            Observable(
                f"spanning_{letter}",
                f"R_{letter}",
                f"1 if one cluster touches both end layers of the {letter} axis",
                "1",
                _bits(1 << axis, all_of=True),
            )
        )
    if len(axes) > 1:
        mask = sum(1 << axis for axis in axes)
        found += [
            Observable(
                "spanning_any",
                "R_any",
                "1 if the sample spans along at least one axis",
                "1",
                _bits(mask, all_of=False),
            ),
            Observable(
                "spanning_all",
                "R_all",
                "1 if the sample spans along every open axis, be it by different clusters",
                "1",
                _bits(mask, all_of=True),
            ),
        ]
    return tuple(found)


def spanning_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the spanning observables that a lattice with this boundary has."""
    return [item.name for item in observables_of(boundary) if item.name.startswith("spanning")]
