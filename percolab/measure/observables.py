"""What is measured: one entry an observable, each an integer per sample computed from its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.errors import InputError, nearest
from percolab.lattices.graph import TERMINALS
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.rows import CLUSTERS, LARGEST, SECOND_LARGEST, SPANNING, SUM_SQUARES
from percolab.measure.tallies import num_bins
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: How many of the flags in an observable's mask a sample must have.
ANY, ALL, SOME = range(3)


@dataclass(frozen=True)
class Observable:
    """A measured quantity: name, symbol, meaning, unit, source, and its integer value per row.

    The value is a column of the row; with a ``mask`` of flags it is 1 if the sample has ANY of
    them, ALL of them, or SOME but not all, by ``rule``, and none of those in ``without``; else 0.
    """

    name: str
    symbol: str
    meaning: str
    unit: str
    column: int = SPANNING
    mask: int = 0
    rule: int = ALL
    without: int = 0
    source: str = "Stauffer and Aharony, Introduction to Percolation Theory (1994)"

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of rows, int64 (..., ROW_WIDTH)."""
        if not self.mask:
            return rows[..., self.column]
        found = rows[..., SPANNING] & self.mask
        has = (found != 0, found == self.mask, (found != 0) & (found != self.mask))[self.rule]
        return (has & (rows[..., SPANNING] & self.without == 0)).astype(np.int64)


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


@dataclass(frozen=True)
class Extra:
    """Something measured beside the observables, several numbers for each p: a dataset of its own.

    ``measure`` is the word that asks for it, ``columns`` how many numbers there are, ``per_bin`` so
    many for every bin of cluster sizes (:func:`percolab.measure.tallies.bin_edges`).
    """

    name: str
    measure: str
    kind: type
    meaning: str
    unit: str
    columns: int = 0
    per_bin: int = 0


#: What can be asked for beside the observables, and what each word adds.
EXTRAS = (
    Extra(
        "size_counts",
        "sizes",
        np.int64,
        "number of clusters in every bin of sizes, single sites included",
        "1",
        per_bin=1,
    ),
    Extra(
        "powers",
        "sizes",
        np.float64,
        "sum of s^3, sum of s^4 over all clusters; s_1^3, s_1^4 of the largest",
        "site^3, site^4, site^3, site^4",
        columns=4,
    ),
    Extra(
        "gyration",
        "gyration",
        np.float64,
        "sum of s^2 and of s^2 R_s^2 in every bin of sizes, over clusters that neither wrap nor "
        "span; R_s is the radius of gyration",
        "site^2, site^2 length^2",
        per_bin=2,
    ),
)
MEASURES = tuple(dict.fromkeys(extra.measure for extra in EXTRAS))


def check_measure(measure: Sequence[str], method: str) -> tuple[str, ...]:
    """Return the words of ``measure`` in their order; InputError if one is unknown or misplaced."""
    for word in measure:
        if word not in MEASURES:
            raise InputError(f"unknown measure {word!r}; {nearest(word, list(MEASURES))}")
    if measure and method == "threshold":
        raise InputError(f"measure {measure[0]}: method threshold finds T, nothing else")
    return tuple(word for word in MEASURES if word in measure)


def extras_of(measure: Sequence[str], num_points: int) -> dict[str, tuple[Extra, int]]:
    """Return what a task with this ``measure`` has beside observables: by name, with columns."""
    return {
        extra.name: (extra, extra.columns + extra.per_bin * num_bins(num_points))
        for extra in EXTRAS
        if extra.measure in measure
    }


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
                rule=ANY,
            ),
            Observable(
                "spanning_all",
                "R_all",
                "1 if the sample spans along every open axis, be it by different clusters",
                "1",
                mask=mask,
            ),
        ]
    return (*found, *_wrapping_of(boundary))


_TORUS = "Newman and Ziff, Phys. Rev. E 64, 016706 (2001)"


def _wrapping_of(boundary: Sequence[str]) -> list[Observable]:
    """Return the wrapping observables of the periodic axes, in the order they are stored."""
    axes = [axis for axis, kind in enumerate(boundary) if kind == "periodic"]
    flags = {axis: 1 << (FIRST_WRAPPING + axis) for axis in axes}
    found = [
        Observable(
            f"wrapping_{AXIS_NAMES[axis]}",
            f"W_{AXIS_NAMES[axis]}",
            f"1 if one cluster closes on itself around the {AXIS_NAMES[axis]} axis",
            "1",
            mask=flag,
            source=_TORUS,
        )
        for axis, flag in flags.items()
    ]
    if len(axes) < 2:
        return found
    mask = sum(flags.values())
    found += [
        Observable(
            "wrapping_any",
            "W_any",
            "1 if the sample wraps around at least one axis",
            "1",
            mask=mask,
            rule=ANY,
            source=_TORUS,
        ),
        Observable(
            "wrapping_all",
            "W_all",
            "1 if the sample wraps around every periodic axis, be it by one loop",
            "1",
            mask=mask,
            source=_TORUS,
        ),
        Observable(
            "wrapping_some",
            "W_some",
            "1 if the sample wraps around some, but not all periodic axes",
            "1",
            mask=mask,
            rule=SOME,
            source=_TORUS,
        ),
    ]
    if len(boundary) == 2:
        found.append(
            Observable(
                "wrapping_diagonal",
                "W_diagonal",
                "1 if the sample wraps around both axes at once and in no other direction",
                "1",
                mask=mask,
                without=1 << TWO_DIRECTIONS,
                source="Pinson, J. Stat. Phys. 75, 1167 (1994)",
            )
        )
    return found


def spanning_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the spanning observables that a lattice with this boundary has."""
    return [item.name for item in observables_of(boundary) if item.name.startswith("spanning")]


def wrapping_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the wrapping observables that a lattice with this boundary has.

    >>> wrapping_names(["periodic", "open"])
    ['wrapping_x']
    """
    return [item.name for item in _wrapping_of(boundary)]
