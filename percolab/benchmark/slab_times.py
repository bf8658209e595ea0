"""Slabs of one large lattice: rows, interfaces and joins, compared with a lattice in one piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from percolab.benchmark.calls import CallTime, Setting, time_calls
from percolab.benchmark.kernel_times import time_call_kernels
from percolab.benchmark.stages import SEED
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.lattices.lattice import Lattice
from percolab.parts import interface as on_host
from percolab.parts.interface import Interface
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs

#: Slabs of a lattice, and grid points of a slab without --sites.
SLABS = 4
_SITES = {"cpu": 2**20, "cuda": 2**30}
#: Layers of a slab by dimension; in three also a thin slab, which is little more than its faces.
_LAYERS = {2: (256,), 3: (1024, 8)}


def layer_shape(points: int, axes: int) -> tuple[int, ...]:
    """Return the shape of a layer of about this many points, as even as powers of two allow."""
    if axes == 1:
        return (max(points, 1),)
    side = 1 << max(points.bit_length() - 1, 0) // axes
    return (side, *layer_shape(points // side, axes - 1))


def time_slabs(setting: Setting) -> Iterator[CallTime]:
    """Time a slab in one piece, a slab of a row, an interface alone, and a join of two interfaces.

    In a row interfaces are joined while the next slab is labeled.  On CUDA the kernels of an
    interface and of a join follow, by device events.
    """
    for lattice in setting.choose_lattices("square", "cubic"):
        for boundary in setting.choose_boundaries("open", "periodic"):
            for layers in setting.layers or _LAYERS.get(lattice.dimension, (8,)):
                for place in setting.choose_places(lattice, 1.0):
                    yield from _times(setting, lattice, boundary, layers, place.p)


def _times(
    setting: Setting, lattice: Lattice, boundary: str, layers: int, p: float
) -> Iterator[CallTime]:
    """Yield the times of a lattice of SLABS slabs; every call draws another sample."""
    setting.device.open()
    kind, threshold = setting.kind, p_to_threshold(p)
    face = layer_shape((setting.sites or _SITES[kind]) // layers, lattice.dimension - 1)
    kinds, numbers = (boundary,) * lattice.dimension, count()
    whole = Whole(lattice, (*face, SLABS * layers), kinds)
    slabs = Slabs(whole, (layers,) * SLABS, kind=kind)
    join: Callable[[Interface, Interface], Interface] = on_host.join
    if kind == "cuda":
        from percolab.parts.join_cuda import InterfacesCuda

        join = InterfacesCuda().join

    def draw() -> SampleKey:
        return SampleKey(XORWOW, SEED, next(numbers), threshold)

    def interface() -> Interface:
        return slabs.interface(1, draw())

    def timed(work: Callable[[], object]) -> np.ndarray:
        return time_calls(work, kind, setting.runs)

    def time_piece() -> np.ndarray:
        """Time one sample of as many sites as a slab, in one piece."""
        coupling = new_coupling(None, kind, lattice.topology((*face, layers), kinds))
        key = np.zeros(1, np.uint64), np.array([threshold], np.uint64)
        return timed(lambda: coupling.rows(XORWOW, SEED, *key))

    base = CallTime(
        stage="slabs",
        lattice=lattice.name,
        shape=whole.shape,
        num_sites=whole.num_points // SLABS,
        p=p,
        program=boundary,
        device=str(setting.device),
        note=f"per slab of {layers} layers",
    )
    piece = base.timed(time_piece(), part="piece", shape=(*face, layers))
    yield piece
    row = base.timed(timed(lambda: slabs.row(draw())) / SLABS, part="row")
    yield row.compared(piece, "one piece")
    yield base.timed(timed(interface), part="front").compared(piece, "one piece")
    key = draw()
    low, high = slabs.interface(0, key), slabs.interface(1, key)
    bonds, clusters = low.high.num_bonds, (low.num_clusters, high.num_clusters)
    note = f"{bonds} open bonds at the face, {clusters[0]} and {clusters[1]} clusters"
    works = {"join": lambda: join(low, high), "front": interface}
    joined = base.timed(timed(works["join"]), part="join", note=note)
    yield joined.compared(row, "slab of a row")
    yield from time_call_kernels(setting, base, works)
