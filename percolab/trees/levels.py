"""The levels at which given values percolate: energies, heights, pore sizes, weights of bonds.

At level t all sites, or bonds, with values of at most t are open.  The search finds the lowest
levels at which a cluster spans an open axis, wraps around a periodic axis, or has 1, 2 ...
directions; all levels are values of the array.  Clusters only grow with t.  So t is bisected over a
sample of the values, with a labeling for each; when few values are left, bonds are opened one by
one in ascending order, as by Newman and Ziff (2001).
"""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.kernels.memory import explain_lack
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.shown import Shown
from percolab.lattices.structure import Structure
from percolab.lattices.topology import PERIOD_BITS, Topology, decode_periods
from percolab.trees import levels_cpu as kernels
from percolab.trees.invasion import lattice_ground, topology_ground
from percolab.trees.level_labeler import CpuLevelLabeler, FoundPath, LevelLabeler, Nodes, turned

# Bytes per grid point, and per bond, without the values.
_POINT_BYTES, _BOND_BYTES = 8, 1

Integers = NDArray[np.int64]
Values = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LevelPath:
    """A path whose largest value is the level, with the fewest steps.

    sites:   int64 (n,), from side to side; around a periodic axis from the saddle back to it
    places:  int64 (n, axes), their grid points; those of a loop continue outside the array, shifted
             by a period at each crossing of a boundary.  (n, 0) for a graph
    values:  (n,), those of the sites; or (n - 1,), those of the bonds between them
    winding: periods along each axis from the first to the last place
    """

    sites: Integers
    places: Integers
    values: Values
    winding: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Level:
    """A level at which values begin to percolate.

    level:   a value of the array
    barrier: the level minus the lowest value; the highest minus the level if high values open first
    share:   the fraction of all sites, or bonds, that is open at the level
    saddle:  the site that opens last; for bond values the two sites of the bond
    path:    along or around an axis; None for a number of directions
    """

    level: float
    barrier: float
    share: float
    saddle: tuple[int, ...]
    path: LevelPath | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Levels(Shown):
    """The levels at which values percolate; None if they do not, even with everything open.

    axes:       by name: the level at which a cluster spans an open axis or wraps a periodic one
    directions: by 1, 2, ...: the level at which one cluster has this many independent directions:
                open axes that it spans, and windings of its loops
    bottom:     the value that opens first; None if none does
    of:         "sites" or "bonds".  never_open: the number of these that never open
    """

    axes: dict[str, Level | None]
    directions: dict[int, Level | None]
    bottom: float | None
    of: str
    never_open: int
    boundary: tuple[str, ...]
    structure: Structure

    def _facts(self) -> dict[str, Any]:
        levels = {
            axis: "none" if at is None else level_text(at.level) for axis, at in self.axes.items()
        }
        return {"of": self.structure.name, **levels}

    def site_name(self, site: int) -> str | int:
        """Return a site's name, or its number if sites have no names."""
        return self.structure.site_name(site) if isinstance(self.structure, Graph) else site

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "of": self.structure.name,
            "values": self.of,
            "boundary": list(self.boundary),
            "bottom": self.bottom,
            "never_open": self.never_open,
            "axes": {axis: self._record(level) for axis, level in self.axes.items()},
            "directions": {str(n): self._record(level) for n, level in self.directions.items()},
        }

    def _record(self, level: Level | None) -> dict[str, Any] | None:
        if level is None:
            return None
        record = {name: getattr(level, name) for name in ("level", "barrier", "share")}
        if not isfinite(level.barrier):  # of values at both ends of what floats are
            record["barrier"] = None
        record["saddle"] = [self.site_name(site) for site in level.saddle]
        if level.path is not None:
            record |= {"steps": level.path.sites.size - 1, "winding": list(level.path.winding)}
            record["path"] = [self.site_name(site) for site in level.path.sites.tolist()]
        return record


def level_text(value: float) -> str:
    """Return an integer in full, and a float with eight digits, as text."""
    return str(value) if isinstance(value, int) else f"{value:.8g}"


def levels_too_large(num_points: int, num_classes: int, value_bytes: int) -> str:
    """Return a message if the search of levels does not fit into the free memory, or ""."""
    needed = num_points * (_POINT_BYTES + _BOND_BYTES * num_classes) + value_bytes
    return explain_lack(f"{num_points} sites need", needed)


class LevelSearch:
    """The search of the levels at which given values percolate.

    values: (num_points,), of sites; or (num_classes, num_points), of bonds, by their owners.
    Entries without a site, or without a bond, are not used.  inf never opens.
    above: values of at least the level are open, and -inf never opens.
    device: "cpu"; or "cuda", the current device, where values may be already.

    InputError: NaN or -inf (above: inf); for values of bonds, a site on both sides of an axis; a
    graph without source and target.
    """

    def __init__(
        self,
        topology: Topology,
        values: Any,
        structure: Structure,
        boundary: tuple[str, ...] = (),
        *,
        above: bool = False,
        device: str = "cpu",
    ) -> None:
        self.topology, self.structure, self.boundary = topology, structure, boundary
        self.above, self.by_site = above, values.ndim == 1
        self.total = topology.num_sites if self.by_site else topology.num_bonds
        self.labeler: LevelLabeler
        if device == "cuda":
            from percolab.trees.level_labeler_cuda import CudaLevelLabeler

            self.labeler = CudaLevelLabeler(topology, values, above=above)
        else:
            self.labeler = CpuLevelLabeler(topology, values, lambda: self._ground, above=above)
        self.tried = self.labeler.candidates()
        self.bottom = self._turned(self.tried[0]).item() if self.tried.size else None
        self._check()
        self.wound = np.empty(topology.num_axes, np.int64)
        #: By level: the fraction of sites, or bonds, that is open.
        self.shares: dict[Any, float] = {}
        #: By bit of what is reached: the level, the number of the bond that opens last, its ends.
        self.reached: dict[int, tuple[Any, int, tuple[int, int]]] = {}

    def find(self) -> Levels:
        num_open = 0
        if self.tried.size:
            last = len(self.tried) - 1
            before = self._open_first()
            self._look(-1, before, last, self._read(self.labeler.label(self.tried[last])))
            num_open = self.labeler.count_open(self.tried[-1])
            # Paths need the memory of the labelings.
            self.labeler.release()
        dimension = self.topology.num_axes
        axes = AXIS_NAMES[:dimension] if self.topology.shape else ["source-target"]
        return Levels(
            axes={name: self._level(axis, self._path(axis)) for axis, name in enumerate(axes)},
            directions={n + 1: self._level(kernels.FIRST_DIRECTION + n) for n in range(dimension)},
            bottom=self.bottom,
            of="sites" if self.by_site else "bonds",
            never_open=self.total - num_open,
            boundary=self.boundary,
            structure=self.structure,
        )

    def _turned(self, values: Values) -> Values:
        return turned(values, above=self.above)

    def _check(self) -> None:
        topology = self.topology
        if not topology.num_axes:
            raise InputError(f"{self.structure.name}: give --source and --target")
        for axis, layers in enumerate(topology.end_layers):
            both = np.intersect1d(*layers, assume_unique=True)
            if both.size and not self.by_site:
                where = f"axis {AXIS_NAMES[axis]}" if topology.shape else self.structure.name
                raise InputError(f"{where}: site {self._outer(both)[0]} is on both sides")
        if topology.num_periodic_bonds and topology.num_axes * PERIOD_BITS > 64:
            raise InputError(f"{self.structure.name}: windings are counted along 5 axes at most")

    def _outer(self, sites: Any) -> Integers:
        """Return the numbers of sites in the user's graph."""
        inner, sites = getattr(self.structure, "inner_numbers", None), np.asarray(sites, np.int64)
        return cast(Integers, sites if inner is None else np.argsort(inner)[sites])

    # Levels

    def _open_first(self) -> int:
        """Return the bits that the first open site sets: open axes on both of whose sides it is."""
        layers = enumerate(self.topology.end_layers)
        spanned = [axis for axis, ends in layers if np.intersect1d(*ends, assume_unique=True).size]
        if not spanned:
            return 0
        layer = self.topology.end_layers[spanned[0]][0]
        site = int(layer[np.argmin(self._turned(self.labeler.values_at(layer)))])
        bits = [*spanned, *(kernels.FIRST_DIRECTION + n for n in range(len(spanned)))]
        self.reached = dict.fromkeys(bits, (self.tried[0], -1, (site, site)))
        return sum(1 << bit for bit in bits)

    def _read(self, clusters: Nodes) -> int:
        """Join clusters across periodic boundaries; return the bits of what they reach."""
        found = clusters.ends, clusters.flags, clusters.pairs, clusters.codes
        return int(kernels.join_ends(clusters.growth, clusters.count, *found, self.wound))

    def _look(self, low: int, before: int, high: int, after: int) -> None:
        """Find what is reached between two candidates, with bits ``before`` and ``after`` at them.

        low, high: indices of the candidates, -1 for below all of them.
        """
        if before == after:
            return
        if high - low > self.labeler.few:
            middle = (low + high) // 2
            between = self._read(self.labeler.label(self.tried[middle]))
            self._look(low, before, middle, between)
            self._look(middle, between, high, after)
            return
        lower = self.tried[low] if low >= 0 else None
        clusters, new = self.labeler.label_between(lower, self.tried[high])
        self._read(clusters)
        if self.by_site:
            levels = self._turned(self.labeler.values_at(new.ends)).max(axis=0)
        else:
            levels = self._turned(self.labeler.values_at(new.numbers))
        order, opens = np.argsort(levels, kind="stable"), np.full(64, -1, np.int64)
        called = order, new.nodes, new.codes, clusters.growth, self.wound
        kernels.open_in_order(*called, before, after, opens)
        for bit in np.flatnonzero(opens >= 0).tolist():
            n = opens[bit]
            ends = int(new.ends[0, n]), int(new.ends[1, n])
            self.reached[bit] = levels[n], int(new.numbers[n]), ends

    def _saddle(self, bit: int) -> tuple[int, ...]:
        level, _, ends = self.reached[bit]
        if not self.by_site:
            return ends
        value = self._turned(self.labeler.values_at(np.array(ends[:1])))[0]
        return (ends[0] if value == level else ends[1],)

    def _level(self, bit: int, path: LevelPath | None = None) -> Level | None:
        if bit not in self.reached:
            return None
        level = self.reached[bit][0]
        if level not in self.shares:
            self.shares[level] = self.labeler.count_open(level) / self.total
        value = self._turned(level).item()
        saddle = tuple(self._outer(self._saddle(bit)).tolist())
        return Level(value, abs(value - self.bottom), self.shares[level], saddle, path)

    # Paths

    @cached_property
    def _ground(self) -> Any:
        if isinstance(self.structure, Lattice):
            return lattice_ground(self.structure, self.topology.shape, self.boundary)
        return topology_ground(self.topology)

    def _path(self, axis: int) -> LevelPath | None:
        if axis not in self.reached:
            return None
        level, number, ends = self.reached[axis]
        if number < 0:
            found = FoundPath(np.array(ends[:1], np.int64), np.zeros(1, np.int64))
        elif self.topology.end_layers[axis][1].size:
            found = self.labeler.find_path(level, axis)
        elif (around := self._bonds_around(axis)).size:
            codes = np.append(np.int64(0), self.topology.periodic_codes[around[:1]])
            found = FoundPath(np.array(self._saddle(axis)[:1] * 2, np.int64), codes)
        else:
            found = self.labeler.find_loop(level, axis, self._saddle(axis)[0])
        periods = decode_periods(found.codes, self.topology.num_axes)
        shape = self.topology.shape
        places = np.empty((found.sites.size, len(shape)), np.int64)
        if shape:
            along = np.stack(np.unravel_index(found.sites, shape[::-1])[::-1], 1)
            places[:] = along + periods * shape
        if self.by_site:
            values = self.labeler.values_at(found.sites)
        else:
            values = self._path_values(found, level, number)
        winding = tuple(periods[-1].tolist())
        return LevelPath(self._outer(found.sites), places, values, winding)

    def _bonds_around(self, axis: int) -> Integers:
        """Return where, of the periodic bonds, those are that lead from the saddle to itself."""
        topology, (_, number, ends) = self.topology, self.reached[axis]
        if ends[0] == ends[1]:
            return np.flatnonzero(topology.periodic_bonds == number)
        if not self.by_site:
            return np.empty(0, np.int64)
        (site,) = self._saddle(axis)
        owners = topology.periodic_bonds % (32 * topology.num_words)
        own = np.flatnonzero((owners == site) & (topology.periodic_ends == site))
        periods = decode_periods(topology.periodic_codes[own], topology.num_axes)
        return np.asarray(own[periods[:, axis] != 0])

    def _path_values(self, path: FoundPath, level: Any, number: int) -> Values:
        """Return the values of the bonds of a path, (n - 1,), one for each step.

        number: the bond of a step from a site to itself
        """
        bonds = np.full((path.sites.size - 1, 1 + self._ground.degree), number)
        where = self._ground, make_adjacency(self.topology)
        kernels.list_path_bonds(where, path.sites, path.codes, bonds[:, 1:])
        values = self._turned(self.labeler.values_at(np.maximum(bonds, 0)))
        is_open = (bonds >= 0) & (values <= level)
        last = bonds.shape[1] - 1 - np.argmax(is_open[:, ::-1], axis=1)
        return self._turned(np.take_along_axis(values, last[:, None], 1)[:, 0])
