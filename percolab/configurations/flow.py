"""The flow through the open bonds of one configuration: ``percolab.flow``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.configurations.configuration import Configuration
from percolab.configurations.label import configure, refuse_spins
from percolab.errors import InputError, nearest, refuse_given, refuse_mask
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import BondList, list_bonds, net_bytes, unpack_open
from percolab.kernels.memory import check_free
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph
from percolab.lattices.graph_files.objects import is_graph_object
from percolab.lattices.lattice import AXIS_NAMES, Lattice, library_name
from percolab.lattices.terminals import find_terminals

#: Memory for all the numbers of a flow, in bytes per open bond, in addition to the list of bonds.
_BOND_BYTES = 900
#: The largest ratio of the longest side of a voxel to the shortest.
_LONGEST = 1e6


def flow(
    configuration: Any = None,
    L: int | str | tuple[int, ...] | None = None,
    p: float | None = None,
    *,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    model: str = "bond",
    boundary: str | Sequence[str] | None = None,
    opened: np.ndarray | None = None,
    source: Any = None,
    target: Any = None,
    axis: str | None = None,
    conductances: np.ndarray | Sequence[float] | None = None,
    voxel: Sequence[float] | None = None,
    lattice: str | Path | Lattice | None = None,
    threshold: float | str | None = None,
    below: bool = False,
    graph: Any = None,
    multi: bool = False,
    columns: str | Sequence[Any] | None = None,
) -> Flow:
    """Return the flow through the open bonds of one configuration between two terminals.

    The configuration is, as for :func:`percolab.label`, one of

    * a mask, an array or a file of one (``boundary``, ``lattice``, ``threshold``, ``below``);
    * a sample of a lattice at p, 0.5 unless given; or with ``opened`` the open bonds of this
      lattice: bool (classes, ..., y, x), or packed uint32 words (classes, num_words);
    * a graph, as ``configuration`` or as ``graph`` (``multi``, ``columns``): all of its bonds are
      open, or with p those of a sample.

    source, target: the terminals.  On a lattice each is a side ("y-", "y+", "top" ...), all open
    "sides", the site at the "centre", or site numbers, x + Lx (y + Ly z); by default they are the
    two sides of ``axis``, by default the last open one.  In a graph they are sites by number or
    name; a :class:`percolab.Graph` has its own.  A torus, or a graph without terminals, only has
    bridges.

    conductances: for a lattice (classes, ..., y, x), where [k, y, x] is that of bond k of site
    (x, y); for a graph one per bond, in their order.  Those of open bonds must be positive.

    voxel: the sides of an image's voxels along x, y (, z) in any unit, by default all equal.
    ``tortuosity`` and ``through`` depend on them; all other results have bonds of conductance 1.

    Returns a :class:`percolab.flows.flow.Flow`, which for a mask on the square or cubic lattice has
    the tortuosity, too.  Sites and bonds are numbered as in the input.

    InputError (one line): an invalid configuration; terminals without sites or with a site in
    common; conductances or voxel sides that are not positive; not enough memory.

    >>> found = flow("square", 64, 0.55, seed=3)
    >>> found.connected, found.num_red, found.length
    (True, 0, 91)
    >>> flow(graph=[(0, 1), (1, 2), (2, 0), (2, 3)], source=0, target=3).resistance
    1.6666666666666665
    """
    given = locals()
    refuse_spins(Model.parse(model))
    ends = {"source": source, "target": target}
    is_graph = (
        graph is not None or isinstance(configuration, Graph) or is_graph_object(configuration)
    )
    if is_graph:
        refuse_given("a graph has its own", axis=axis)
        given, ends = given | ends, {}
    else:
        given |= dict.fromkeys(ends)
    chosen = configure("flow", given)
    if voxel is not None and _phase(chosen, axis) is None:
        raise InputError("voxel: only an image on the square or cubic lattice has voxels")
    sides = _take_voxel(voxel, chosen)
    return _flow_through(chosen, ends, axis, conductances, sides, key=(seed, sample))


def _flow_through(
    chosen: Configuration,
    ends: dict[str, Any],
    axis: str | None,
    conductances: Any,
    voxel: NDArray[np.float64] | None = None,
    *,
    key: tuple[int, int] = (1, 0),
) -> Flow:
    """Return the flow through a configuration, whose terminals are given by number or side.

    voxel: the side lengths of an image's voxels, if they differ.  key: seed and sample.
    """
    num_open = int(np.bitwise_count(chosen.opened).sum(dtype=np.int64))
    needed = net_bytes(Extent.of_topology(chosen.topology)) + _BOND_BYTES * num_open
    check_free(f"flow through {num_open} open bonds needs up to", needed)
    if isinstance(chosen.lattice, Graph):
        # The graph's own order and site numbers.
        content = chosen.lattice.bonds
        bonds = BondList(chosen.lattice.bond_numbers(), content.pairs)
        terminals = content.source, content.target
    else:
        bonds = list_bonds(chosen.topology)
        terminals = _terminals(chosen, ends, axis)
    is_open = np.empty(bonds.places.size, np.uint8)
    unpack_open(chosen.opened.ravel(), bonds.places, is_open)
    values = None
    if conductances is not None:
        values = _take_conductances(conductances, chosen, bonds, is_open)
        values = values[is_open != 0]
    phase = None if any(given is not None for given in ends.values()) else _phase(chosen, axis)
    of_voxels = None
    if voxel is not None and phase is not None:
        classes = bonds.places[is_open != 0] // (32 * chosen.topology.num_words)
        of_voxels = _between_voxels(chosen, axis, voxel)[classes]
    # Closed bonds take no memory.
    bonds = BondList(bonds.places[is_open != 0], bonds.sites[is_open != 0])
    circuit = Circuit(bonds, chosen.topology.num_points, *terminals)
    is_open = np.ones(bonds.places.size, np.uint8)
    return Flow(circuit, is_open, *key, values, phase, of_voxels)


def find_tortuosities(
    chosen: Configuration, voxel: Sequence[float] | None = None
) -> dict[str, float]:
    """Return the tortuosity of an image's phase along every open axis, by the axis's letter.

    voxel: as for :func:`flow`.  InputError: the configuration is not one phase of an image on the
    square or cubic lattice, or no axis is open.
    """
    topology = chosen.topology
    if len(chosen.phase_names) > 1:
        raise InputError("tortuosity needs a single phase: give one (--phase 0, or 0+1 as one)")
    if _phase(chosen, None) is None:
        raise InputError(
            "tortuosity needs an image on the square or cubic lattice, between two open sides: "
            "leave out --lattice and --connectivity, and leave an axis open (--boundary)"
        )
    sides = _take_voxel(voxel, chosen)
    return {AXIS_NAMES[axis]: _tortuosity(chosen, axis, sides) for axis in topology.open_axes}


def _tortuosity(chosen: Configuration, axis: int, voxel: NDArray[np.float64] | None) -> float:
    """Return the tortuosity of an image's phase along an axis."""
    if chosen.topology.shape[axis] == 1 and chosen.sites.any():
        return 1.0  # Every voxel touches both faces.
    ends = {"source": None, "target": None}
    return float(_flow_through(chosen, ends, AXIS_NAMES[axis], None, voxel).tortuosity)


def _take_voxel(voxel: Any, chosen: Configuration) -> NDArray[np.float64] | None:
    """Return the side lengths of a voxel, float64 (axes,); InputError if they are invalid."""
    if voxel is None:
        return None
    try:
        sides = np.asarray(voxel, np.float64)
    except (TypeError, ValueError):
        sides = np.empty(0)
    shown_voxel = ",".join(map(str, voxel)) if np.iterable(voxel) else voxel
    axes = len(chosen.topology.shape)
    if sides.shape != (axes,) or not 0 < sides.max() / _LONGEST <= sides.min() < np.inf:
        names = ", ".join(AXIS_NAMES[axis] for axis in range(axes))
        raise InputError(
            f"--voxel {shown_voxel}: the sides along {names} "
            f"must be {axes} positive numbers, the largest at most {_LONGEST:g} times the smallest"
        )
    return sides


def _between_voxels(
    chosen: Configuration, axis: str | None, voxel: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the conductance between neighbouring voxels, by class, relative to that of the axis.

    A conductance is cross-section over distance: a voxel's volume over the square of its side.
    """
    topology = chosen.topology
    along = topology.open_axes[-1] if axis is None else AXIS_NAMES.index(axis)
    of_class = np.array([voxel[np.flatnonzero(offset)[0]] for offset in topology.offsets])
    return np.asarray((voxel[along] / of_class) ** 2)


def _phase(chosen: Configuration, axis: str | None) -> tuple[int, int] | None:
    """Return the numbers of voxels in an image's phase and along an axis; None if no image."""
    axes = chosen.topology.open_axes
    is_image = chosen.record["kind"] == "sites" and isinstance(chosen.lattice, Lattice)
    if not axes or not is_image or library_name(chosen.lattice) not in ("square", "cubic"):
        return None
    along = axes[-1] if axis is None else AXIS_NAMES.index(axis)
    return int(chosen.sites.sum()), chosen.topology.shape[along]


def _terminals(chosen: Configuration, ends: dict[str, Any], axis: str | None) -> Any:
    """Return the sites of the two terminals; two empty arrays if there are no terminals."""
    topology, along = chosen.topology, None
    if axis is not None:
        names = {AXIS_NAMES[each]: each for each in topology.open_axes if topology.shape}
        if not isinstance(axis, str) or axis not in names:
            raise InputError(f"axis {axis!r}: no open axis has this name; {nearest(axis, names)}")
        along = names[axis]
    terminals = find_terminals(topology, ends, along)
    for (key, given), sites in zip(ends.items(), terminals, strict=True):
        vacant = sites[~chosen.sites[sites]]
        # A side may have vacant sites, and the centre may be vacant.
        if vacant.size and given is not None and not isinstance(given, str):
            raise InputError(f"{key}: site {vacant[0]} is vacant")
    return terminals


def _take_conductances(
    given: Any, chosen: Configuration, bonds: BondList, is_open: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """Return the conductance of every bond, 1 for closed bonds."""
    refuse_mask("conductances", given)
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("conductances must be numbers") from error
    topology = chosen.topology
    expected = (topology.num_classes, *chosen.shape)
    if isinstance(chosen.lattice, Graph):
        expected = (bonds.places.size,)
    if values.shape != expected:
        raise InputError(f"conductances have the shape {values.shape}, but must have {expected}")
    if not isinstance(chosen.lattice, Graph):
        k, site = np.divmod(bonds.places, 32 * topology.num_words)
        values = values.reshape(topology.num_classes, -1)[k, site]
    wrong = np.flatnonzero((is_open != 0) & ~((values > 0) & np.isfinite(values)))
    if wrong.size:
        i, j = bonds.sites[wrong[0]].tolist()
        raise InputError(
            f"the conductance of the open bond between sites {i} and {j} is {values[wrong[0]]:g}, "
            "but it must be positive and finite; a bond that conducts nothing is closed"
        )
    return np.where(is_open != 0, values, 1.0)
