"""Extended neighbourhoods by name: square:1-3 joins every site to its three nearest shells.

A shell is all sites at one distance from a site, as the lattice is drawn; shell 1 is the nearest.
Bonds follow from these distances; the lattice's own bonds do not matter.
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import Protocol

import numpy as np

from percolab.errors import InputError

#: The last shell that may be named.
MOST_SHELLS = 20
#: Distances with a smaller relative difference count as equal.
_SAME = 1e-6
#: The most bonds at a site.
_MOST_NEIGHBOURS = 512

Point = tuple[int, ...]
# A site of the cell, the grid points from it to another site, and the distance.
_Pair = tuple[Point, Point, float]


class DrawnLattice(Protocol):
    """The attributes that are used of a :class:`percolab.lattices.lattice.Lattice`."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def cell(self) -> Point: ...
    @property
    def vacant(self) -> frozenset[Point]: ...
    @property
    def sites(self) -> frozenset[Point]: ...
    @property
    def vectors(self) -> tuple[tuple[float, ...], ...]: ...
    @property
    def shifts(self) -> tuple[tuple[Point, tuple[float, ...]], ...]: ...


def parse_shells(text: str, where: str) -> tuple[int, ...]:
    """Read shells, "1-3" or "1,2,4"; InputError unless they are from 1 to MOST_SHELLS.

    >>> parse_shells("1-3,5", "square:1-3,5")
    (1, 2, 3, 5)
    """
    shells: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"([1-9]\d?)(?:-([1-9]\d?))?", part.strip())
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or first) if ends else 0
        if not 1 <= first <= last <= MOST_SHELLS:
            raise InputError(
                f"{where}: shells are numbers from 1 to {MOST_SHELLS} as 1-3 or 1,2,4, but "
                f"{part.strip()!r} is given"
            )
        shells |= set(range(first, last + 1))
    return tuple(sorted(shells))


def shells_text(shells: Sequence[int]) -> str:
    """Return ascending shells in their notation.

    >>> shells_text((1, 2, 3, 5))
    '1-3,5'
    """
    runs: list[list[int]] = []
    for shell in shells:
        if runs and shell == runs[-1][-1] + 1:
            runs[-1].append(shell)
        else:
            runs.append([shell])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def neighbourhood_text(lattice: DrawnLattice, name: str) -> str:
    """Return, as TOML, the lattice NAME:SHELLS, whose bonds join sites to those in these shells.

    InputError: a lattice without coordinates, or whose sites have different shells; an invalid
    list of shells.
    """
    shells = parse_shells(name.partition(":")[2], name)
    if not lattice.vectors:
        raise InputError(f"{name}: shells need coordinates, which {lattice.name} lacks")
    every = find_shells(lattice, shells[-1], name)
    return _text(lattice, {shell: every[shell - 1] for shell in shells})


def find_shells(lattice: DrawnLattice, last: int, name: str = "") -> list[list[_Pair]]:
    """Return the pairs (site of the cell, offset, distance) of every shell up to the last.

    lattice: with coordinates.  name: for errors.  InputError: the lattice's sites have different
    shells, or too many neighbours.
    """
    name = name or lattice.name
    smallest = float(np.linalg.svd(np.array(lattice.vectors), compute_uv=False).min())
    spread = max((float(np.linalg.norm(shift)) for _, shift in lattice.shifts), default=0.0)
    by_site: list[list[list[_Pair]]] = [[]]
    reach = 0
    while min(map(len, by_site)) < last:
        reach += 1
        # All sites nearer than this are among the offsets examined.
        complete = (reach + 1) * smallest - 2 * spread
        by_site = [_shells_of(lattice, site, reach, complete) for site in sorted(lattice.sites)]
        if sum(map(len, by_site[0][:last])) > _MOST_NEIGHBOURS:
            raise InputError(f"{name}: these shells have more than {_MOST_NEIGHBOURS} sites")
    sizes = {tuple((len(n), round(n[0][2] / smallest, 5)) for n in each[:last]) for each in by_site}
    if len(sizes) > 1:
        raise InputError(f"{name}: sites of {lattice.name} have different shells of neighbours")
    return [[pair for each in by_site for pair in each[n]] for n in range(last)]


def _shells_of(
    lattice: DrawnLattice, site: Point, reach: int, complete: float
) -> list[list[_Pair]]:
    """Return the shells around a site of the cell, as far as distances are below ``complete``."""
    shifts, vectors = dict(lattice.shifts), np.array(lattice.vectors)
    own, zero = np.array(shifts.get(site, (0.0,) * len(site))), (0.0,) * len(site)
    pairs: list[_Pair] = []
    for offset in product(range(-reach, reach + 1), repeat=len(lattice.cell)):
        end = tuple((x + step) % n for x, step, n in zip(site, offset, lattice.cell))
        if end in lattice.sites and any(offset):
            step = np.array(offset) @ vectors + shifts.get(end, zero) - own
            pairs.append((site, offset, float(np.linalg.norm(step))))
    pairs = sorted((pair for pair in pairs if pair[2] < complete), key=lambda pair: pair[2])
    groups: list[list[_Pair]] = []
    for pair in pairs:
        if groups and pair[2] - groups[-1][-1][2] <= _SAME * pair[2]:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _text(lattice: DrawnLattice, pairs: dict[int, list[_Pair]]) -> str:
    """Return the lattice with these bonds as TOML; docs/lattice-format.md describes it."""
    at: dict[Point, list[Point]] = {}
    of_shell: dict[Point, set[int]] = {}
    for shell, bonds in pairs.items():
        for site, offset, _ in bonds:
            # One of the two directions of every bond.
            if offset[::-1] > (0,) * len(offset):
                at.setdefault(offset, []).append(site)
                of_shell.setdefault(offset, set()).add(shell)
    numbers = shells_text(sorted(pairs))
    words = f"shell{'s' if len(pairs) > 1 else ''} {numbers}"
    lines = [
        f'name = "{lattice.name}:{numbers}"',
        f'title = "{lattice.title}, {words}"',
        f"dimension = {len(lattice.cell)}",
        "",
        "[cell]",
        f"shape = {list(lattice.cell)}",
        f"vacant = {[list(point) for point in sorted(lattice.vacant)]}",
    ]
    for offset in sorted(at, key=lambda offset: (min(of_shell[offset]), offset)):
        lines += ["", "[[bonds]]", f"offset = {list(offset)}"]
        lines += [f"at = {[list(site) for site in sorted(at[offset])]}"]
        if all(len(bonds) == 1 for bonds in of_shell.values()):
            lines.append(f'name = "s{min(of_shell[offset])}"')
    lines += ["", "[drawing]", f"vectors = {[list(vector) for vector in lattice.vectors]}"]
    if lattice.shifts:
        moves = (f"{{ at = {list(p)}, shift = {list(s)} }}" for p, s in lattice.shifts)
        lines.append(f"shifts = [{', '.join(moves)}]")
    return "\n".join(lines) + "\n"
