"""The dual of a planar lattice: a site in every face, a bond across every bond.

Bond percolation on the dual has p_c = 1 - p_c of the lattice; its site threshold is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.lattice import Lattice
from percolab.lattices.planarity import is_drawn_planar

#: A site of the infinite lattice: its number in the cell, and the cell.
_Site = tuple[int, tuple[int, int]]


def make_dual(
    lattice: Lattice,
    *,
    name: str,
    title: str | None = None,
    thresholds: Sequence[Mapping[str, Any]] = (),
) -> Lattice:
    """Return the dual of a lattice whose drawing has no crossing bonds.

    Its sites are drawn at the centres of the faces; L counts unit cells.  thresholds: published
    ones, as for :meth:`Lattice.from_cell`.  InputError: the lattice is not planar as it is drawn.

    >>> from percolab.lattices.lattice import load_lattice
    >>> make_dual(load_lattice("honeycomb"), name="t")
    <Lattice t; axes 2; cell 2 x 1; bonds at a site 6>
    """
    if not is_drawn_planar(lattice):
        raise InputError(
            f"{lattice.name}: only a lattice that is drawn without crossings has a dual"
        )
    cell = lattice.cell
    periods = np.array(lattice.vectors or np.eye(2)) * np.array(cell)[:, None]
    points = [at for at in product(*map(range, cell)) if at not in lattice.vacant]
    number = {at: n for n, at in enumerate(points)}
    shifts = {point: np.array(shift) for point, shift in lattice.shifts}
    places = np.array([np.array(at) / cell @ periods + shifts.get(at, 0.0) for at in points], float)
    # Of every site: the steps to its neighbours, (number there, cells moved), by angle.
    steps: dict[int, list[_Site]] = {n: [] for n in range(len(points))}
    bonds: list[tuple[int, _Site]] = []
    for bond in lattice.bonds:
        for at in bond.at:
            end = tuple(a + o for a, o in zip(at, bond.offset, strict=True))
            there = number[tuple(e % c for e, c in zip(end, cell, strict=True))]
            moved = (end[0] // cell[0], end[1] // cell[1])
            here = number[tuple(a % c for a, c in zip(at, cell, strict=True))]
            own = (at[0] // cell[0], at[1] // cell[1])
            moved = (moved[0] - own[0], moved[1] - own[1])
            steps[here].append((there, moved))
            steps[there].append((here, (-moved[0], -moved[1])))
            bonds.append((here, (there, moved)))

    def vector(here: int, step: _Site) -> NDArray[np.float64]:
        found: NDArray[np.float64] = places[step[0]] - places[here] + np.array(step[1]) @ periods
        return found

    for here, own_steps in steps.items():
        angles = {step: _angle(vector(here, step)) for step in own_steps}
        own_steps.sort(key=angles.__getitem__)
    # Of every directed bond of a cell: the face on its left, and the cell that this lies in.
    left: dict[tuple[int, _Site], _Site] = {}
    centres: list[NDArray[np.float64]] = []
    for here, own_steps in steps.items():
        for step in own_steps:
            if (here, step) not in left:
                _walk_face(here, step, steps, left, len(centres))
                centres.append(_centre(here, step, steps, places, periods))
    parts = np.array(centres) @ np.linalg.inv(periods)
    # A face belongs to the cell that its centre lies in, so that bonds are short.
    cells = np.floor(parts + 1e-9).astype(int)
    dual = []
    for here, step in bonds:
        there, moved = step
        face, cell_of_face = left[here, step]
        other, cell_of_other = left[there, (here, (-moved[0], -moved[1]))]
        # The bond back begins in the cell that the bond leads to.
        offset = np.add(cell_of_other, moved) - cell_of_face + cells[other] - cells[face]
        dual.append((face, other, offset.tolist()))
    both = [*dual, *((b, a, [-n for n in offset]) for a, b, offset in dual)]
    if any(both.count(bond) > 1 for bond in dual):
        raise InputError(
            f"{lattice.name}: its dual has two bonds between the same two sites, across the bonds "
            "of a site that has only two, and a lattice cannot have these"
        )
    return Lattice.from_cell(
        periods, parts - cells, dual, name=name, title=title, thresholds=thresholds
    )


def _angle(vector: NDArray[np.float64]) -> float:
    return float(np.arctan2(vector[1], vector[0]))


def _turn(here: int, step: _Site, steps: dict[int, list[_Site]]) -> tuple[int, _Site]:
    """Return the next directed bond around the face on the left: the sharpest turn left."""
    there, moved = step
    back = here, (-moved[0], -moved[1])
    at = steps[there].index(back)
    return there, steps[there][at - 1]


def _walk_face(
    here: int,
    step: _Site,
    steps: dict[int, list[_Site]],
    left: dict[tuple[int, _Site], _Site],
    face: int,
) -> None:
    """Note a face as what is on the left of every directed bond around it.

    The face belongs to the cell in which the walk begins; a bond that begins in another cell sees
    it that far away.
    """
    at = (0, 0)
    first = here, step
    while True:
        left[here, step] = face, (-at[0], -at[1])
        at = (at[0] + step[1][0], at[1] + step[1][1])
        here, step = _turn(here, step, steps)
        if (here, step) == first:
            return


def _centre(
    here: int,
    step: _Site,
    steps: dict[int, list[_Site]],
    places: NDArray[np.float64],
    periods: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the mean of the corners of the face on the left of a directed bond."""
    corners, at, first = [], np.zeros(2), (here, step)
    while True:
        corners.append(places[here] + at @ periods)
        at = at + np.array(step[1])
        here, step = _turn(here, step, steps)
        if (here, step) == first:
            found: NDArray[np.float64] = np.mean(corners, axis=0)
            return found
