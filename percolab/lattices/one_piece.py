"""Whether the infinite lattice that a cell describes is connected (in one piece).

Every bond leads from a site of the cell to a site of the same or another cell.  A closed walk over
the sites of the cell is then a walk from a site to one of its copies.  The lattice is in one piece
if every site of the cell is reached from the first, and if the closed walks generate all
translations Z^d, not a sublattice of them.
"""

from collections.abc import Collection, Iterable

Point = tuple[int, ...]


def unreached(
    cell: Point, sites: Collection[Point], bonds: Iterable[tuple[Point, Point]]
) -> Point | int | None:
    """Return None if the lattice is in one piece, else something not reached from its first site.

    cell: grid points along each axis. sites: cell points with a site. bonds: cell point of one end
    and offset to the other, in grid points.
    That is a site, or the first axis along which no path leads to the next copy of the cell.

    >>> unreached((1, 1), [(0, 0)], [((0, 0), (1, 1)), ((0, 0), (1, -1))])
    0
    """
    links = _list_links(cell, bonds)
    cell_of = _cells_reached(min(sites), links)
    for site in sorted(sites):
        if site not in cell_of:
            return site
    basis = _echelon(_loops(cell_of, links))
    for axis in range(len(cell)):
        if not _is_generated(basis, [int(axis == other) for other in range(len(cell))]):
            return axis
    return None


def has_lines(cell: Point, sites: Collection[Point], bonds: Iterable[tuple[Point, Point]]) -> bool:
    """Return whether bonds connect a site with a copy of it in another cell.

    Arguments as for :func:`unreached`.

    >>> has_lines((1, 1), [(0, 0)], [((0, 0), (1, 0))])
    True
    """
    links = _list_links(cell, bonds)
    waiting = set(sites)
    while waiting:
        cell_of = _cells_reached(min(waiting), links)
        waiting -= cell_of.keys()
        if any(map(any, _loops(cell_of, [link for link in links if link[0] in cell_of]))):
            return True
    return False


_Link = tuple[Point, Point, Point]  # two sites of the cell, and the cells between them


def _list_links(cell: Point, bonds: Iterable[tuple[Point, Point]]) -> list[_Link]:
    links: list[_Link] = []
    for point, offset in bonds:
        ends = [divmod(x + step, n) for x, step, n in zip(point, offset, cell, strict=True)]
        along, inside = zip(*ends, strict=True)
        links.append((point, inside, along))
    return links


def _loops(cell_of: dict[Point, Point], links: Iterable[_Link]) -> set[Point]:
    """Return the translations of closed walks, one for each link."""
    return {
        tuple(a + b - c for a, b, c in zip(cell_of[start], along, cell_of[end]))
        for start, end, along in links
    }


def _cells_reached(first: Point, links: list[_Link]) -> dict[Point, Point]:
    """Return the sites reached from the first one, each with the cell in which it is reached."""
    ways: dict[Point, list[tuple[Point, Point]]] = {}
    for start, end, along in links:
        ways.setdefault(start, []).append((end, along))
        ways.setdefault(end, []).append((start, tuple(-cells for cells in along)))
    cell_of = {first: (0,) * len(first)}
    waiting = [first]
    while waiting:
        here = waiting.pop()
        for there, along in ways.get(here, ()):
            if there not in cell_of:
                cell_of[there] = tuple(a + b for a, b in zip(cell_of[here], along))
                waiting.append(there)
    return cell_of


def _echelon(vectors: Iterable[Point]) -> dict[int, list[int]]:
    """Return rows in echelon form, by first non-zero axis, with the same span over Z."""
    rows: dict[int, list[int]] = {}
    for vector in vectors:
        rest = list(vector)
        for axis in range(len(rest)):
            if axis not in rows and rest[axis]:
                rows[axis] = rest
                break
            while rest[axis]:  # Euclid's algorithm on the two entries
                times = rows[axis][axis] // rest[axis]
                shorter = [a - times * b for a, b in zip(rows[axis], rest)]
                rows[axis], rest = rest, shorter
    return rows


def _is_generated(rows: dict[int, list[int]], vector: list[int]) -> bool:
    for axis, row in sorted(rows.items()):
        times = vector[axis] // row[axis]
        vector = [a - times * b for a, b in zip(vector, row)]
    return not any(vector)
