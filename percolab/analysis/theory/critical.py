"""The value of a probability at p_c, on an infinite lattice: exact, or published with an error.

In two dimensions these probabilities depend only on the shape, where all directions are alike
(:func:`is_isotropic`).  This is proved for sites of the triangular lattice (S. Smirnov,
C. R. Acad. Sci. Paris 333, 239 (2001)); for other lattices it is universality.  None is known for a
cylinder.  In three dimensions those of cubic tori are known from samples (J. Wang, Z. Zhou,
W. Zhang, T. M. Garoni and Y. Deng, Phys. Rev. E 87, 052107 (2013)).
"""

import cmath
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import product

import numpy as np

from percolab.analysis.statistics import Floats
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.theory.planar import crossing_probability, double_crossing_probability
from percolab.analysis.theory.torus import wrapping_probabilities
from percolab.bonds.model import Model
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure

#: Cells along each axis whose turned bonds are compared: a lattice with a cell that is not the
#: smallest may be mapped onto itself only over several cells.
_CELLS = 4
#: Pairs of bonds that are compared, at most: in the plane those of 400 bonds a cell.
_MOST_PAIRS = 16 * 800**2

_CARDY = "J. Cardy, J. Phys. A 25, L201 (1992)"
_WATTS = "G. M. T. Watts, J. Phys. A 29, L363 (1996)"
_PINSON = "H. T. Pinson, J. Stat. Phys. 75, 1167 (1994)"

#: The field of :class:`WrappingProbabilities` that is the mean of an observable of a torus.
WRAPPING = {
    "wrapping_x": "x",
    "wrapping_y": "y",
    "wrapping_any": "either",
    "wrapping_all": "both",
    "wrapping_some": "one_alone",
    "wrapping_none": "none",
    "wrapping_two": "cross",
    "wrapping_diagonal": "oblique",
}


#: Wrapping probabilities of a torus that is a cube, and their errors.
_CUBE = {
    **dict.fromkeys(("wrapping_x", "wrapping_y", "wrapping_z"), (0.25780, 0.00006)),
    "wrapping_any": (0.45998, 0.00008),
    "wrapping_all": (0.08041, 0.00008),
}


def critical_probability(
    structure: Structure, boundary: tuple[str, ...], observable: str, model: str = "bond"
) -> Known | None:
    """Return the mean of an observable at p_c for large L, or None where it is unknown.

    boundary: "open" or "periodic" along each axis; observable: a spanning or wrapping one.
    model: as tasks have it, without a preferred direction.

    >>> from percolab.lattices.lattice import load_lattice
    >>> critical_probability(load_lattice("square"), ("open", "open"), "spanning_x").expression
    "Cardy's formula, length/width 1"
    """
    if not isinstance(structure, Lattice) or not Model.parse(model).keeps_symmetry:
        return None
    if observable in _CUBE and set(boundary) == {"periodic"} and has_cubic_tori(structure):
        return Known(*_CUBE[observable], "torus that is a cube", "Wang et al. 2013")
    if structure.dimension != 2 or not is_isotropic(structure):
        return None
    tau = torus_modulus(structure)
    # The formulae raise an error for shapes that are too long or too oblique.
    with suppress(ValueError):
        if set(boundary) == {"open"}:
            return _crossing(abs(tau), cmath.phase(tau), observable)
        if set(boundary) == {"periodic"} and observable in WRAPPING:
            value = getattr(wrapping_probabilities(tau), WRAPPING[observable])
            real = f"{tau.real:.4g}+" if abs(tau.real) > 1e-9 else ""
            written = f"{real}{'' if abs(tau.imag - 1) < 1e-9 else f'{tau.imag:.4g}'}i"
            return Known(value, 0.0, f"Pinson's formula, tau = {written}", _PINSON)
    return None


def torus_modulus(lattice: Lattice) -> complex:
    """Return the side of a lattice of size L along y over that along x, as complex numbers.

    lattice: one in two dimensions with coordinates.  The result is the modulus tau of the torus,
    with a positive imaginary part.

    >>> from percolab.lattices.lattice import load_lattice
    >>> torus_modulus(load_lattice("square"))
    1j
    """
    x, y = (complex(*vector) * n for vector, n in zip(lattice.vectors, lattice.shape(1)))
    tau = y / x
    return tau if tau.imag > 0 else tau.conjugate()


def _crossing(y_over_x: float, angle: float, observable: str) -> Known | None:
    """Return the value for an open parallelogram with these sides."""
    along = {"x": 1 / y_over_x, "y": y_over_x}
    shape = "length/width {:.4g}" + ("" if abs(angle - cmath.pi / 2) < 1e-9 else ", oblique")
    word, _, axis = observable.partition("_")
    if word != "spanning":
        return None
    if axis in along:
        value = crossing_probability(along[axis], angle)
        return Known(value, 0.0, "Cardy's formula, " + shape.format(along[axis]), _CARDY)
    both, shown = double_crossing_probability(y_over_x, angle), shape.format(y_over_x)
    if axis == "all":
        return Known(both, 0.0, f"Watts' formula, {shown}", _WATTS)
    if axis == "any":
        value = sum(crossing_probability(ratio, angle) for ratio in along.values()) - both
        return Known(value, 0.0, f"Cardy's and Watts' formulae, {shown}", f"{_CARDY}; {_WATTS}")
    return None


@cache
def has_cubic_tori(lattice: Lattice) -> bool:
    """Return whether tori of a lattice in three dimensions are cubes, and its axes are alike.

    >>> from percolab.lattices.lattice import load_lattice
    >>> has_cubic_tori(load_lattice("cubic")), has_cubic_tori(load_lattice("bcc"))
    (True, False)
    """
    is_cube = lattice.dimension == 3 and bool(np.allclose(torus_shape(lattice), np.eye(3) / 3))
    return is_cube and is_isotropic(lattice)


def torus_shape(lattice: Lattice) -> Floats:
    """Return the scalar products of the sides of a torus, with trace one: its shape, (d, d).

    Without coordinates in the lattice file, sites are placed on the grid points.
    """
    vectors = np.array(lattice.vectors or np.eye(lattice.dimension))
    sides = vectors * np.array(lattice.shape(1))[:, None]
    products = sides @ sides.T
    return np.asarray(products / np.trace(products), np.float64)


@cache
def is_isotropic(lattice: Lattice) -> bool:
    """Return whether the rotations and reflections of a lattice single out no direction.

    Then any symmetric tensor that is invariant under all of them is a multiple of the unit tensor.

    False where the lattice has no coordinates, two sites at one place, or too many bonds in a cell
    (_MOST_PAIRS).

    >>> from percolab.lattices.lattice import load_lattice
    >>> is_isotropic(load_lattice("honeycomb")), is_isotropic(load_lattice("trellis"))
    (True, False)
    >>> is_isotropic(load_lattice("diamond")), is_isotropic(load_lattice("stacked-triangular"))
    (True, False)
    """
    d = lattice.dimension
    if not lattice.vectors:
        return False
    starts, steps = _directed_bonds(lattice)
    if len(starts) ** 2 * _CELLS**d > _MOST_PAIRS:
        return False
    lengths = np.linalg.norm(steps, axis=1)
    if lengths.min() <= 1e-6 * lengths.max():
        return False
    # In units of the longest bond.
    starts, steps = starts / lengths.max(), steps / lengths.max()
    periods = np.array(lattice.vectors) * np.array(lattice.cell)[:, None] / lengths.max()
    # How a tensor T changes: T - T^T, and of each symmetry S, S T S^T - T.
    unit = np.eye(d * d)
    changes = unit - unit.reshape(d, d, d * d).swapaxes(0, 1).reshape(d * d, d * d)
    rank = np.linalg.matrix_rank(changes)
    for turn in _possible_turns(steps):
        if rank == d * d - 1:
            break
        more = np.vstack([changes, np.kron(turn, turn) - unit])
        new = np.linalg.matrix_rank(more, tol=1e-6)
        if new > rank and _is_symmetry(starts, steps, periods, turn):
            changes, rank = more, new
    return bool(rank == d * d - 1)


def _possible_turns(steps: Floats) -> Iterator[Floats]:
    """Return the orthogonal maps of space, (d, d), that map some independent bonds onto others."""
    every = np.unique(np.round(steps, 9), axis=0)
    every = every[np.argsort(np.linalg.norm(every, axis=1), kind="stable")]
    basis = every[:1]
    for step in every:
        if np.linalg.matrix_rank([*basis, step], tol=1e-6) > len(basis):
            basis = np.array([*basis, step])
    products, lengths = basis @ basis.T, (every**2).sum(axis=1)

    def extend(images: Floats) -> Iterator[Floats]:
        n = len(images)
        if n == len(basis):
            yield np.asarray(np.linalg.solve(basis, images), np.float64)
            return
        fits = np.isclose(every @ images.T, products[n, :n], atol=1e-6).all(axis=1)
        for step in every[fits & np.isclose(lengths, products[n, n], atol=1e-6)]:
            yield from extend(np.vstack([images, step]))

    yield from extend(basis[:0])


def _directed_bonds(lattice: Lattice) -> tuple[Floats, Floats]:
    """Return the bonds of one cell from either end: a start in the cell, and their vectors."""
    shifts, vectors = dict(lattice.shifts), np.array(lattice.vectors)

    def place(point: tuple[int, ...]) -> Floats:
        at = np.array(point) @ vectors + shifts.get(in_cell(point), (0.0,) * lattice.dimension)
        return np.asarray(at, np.float64)

    def in_cell(point: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(x % n for x, n in zip(point, lattice.cell))

    starts, steps = [], []
    for bond in lattice.bonds:
        for point in sorted(bond.at):
            other = tuple(x + step for x, step in zip(point, bond.offset))
            step = place(other) - place(point)
            starts += [place(in_cell(point)), place(in_cell(other))]
            steps += [step, -step]
    return np.array(starts), np.array(steps)


def _is_symmetry(starts: Floats, steps: Floats, periods: Floats, turn: Floats) -> bool:
    """Return whether a turn, followed by some shift, maps every bond onto a bond."""
    tolerance = 1e-6 * float(np.linalg.norm(steps, axis=1).min())
    parallel = np.linalg.norm((steps @ turn)[:, None] - steps[None], axis=2) < tolerance
    one, other = np.nonzero(parallel)
    inverse = np.linalg.inv(periods)
    turned = periods @ turn @ inverse
    # Where periods are mapped onto periods, all cells are alike.
    count = 1 if np.allclose(turned, np.round(turned), atol=1e-6) else _CELLS
    cells = np.array(list(product(range(count), repeat=len(periods)))) @ periods @ turn
    between = starts[one] @ turn - starts[other]

    def maps(shift: Floats) -> bool:
        cells_apart = (between + shift) @ inverse
        rest = (cells_apart - np.round(cells_apart)) @ periods
        mapped = one[np.linalg.norm(rest, axis=1) < tolerance]
        return np.unique(mapped).size == len(starts)

    # A site is mapped onto one with as many bonds; the rarest number leaves the fewest to try.
    sites, degrees = np.unique(starts, axis=0, return_counts=True)
    rarest = min(degrees, key=lambda degree: np.count_nonzero(degrees == degree))
    alike = sites[degrees == rarest]
    return any(all(maps(site - alike[0] @ turn + cell) for cell in cells) for site in alike)
