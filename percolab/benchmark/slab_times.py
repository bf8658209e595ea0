"""Slabs of one large lattice: rows, fronts and joins, compared with a lattice in one piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from percolab.benchmark.calls import CallTime, Setting, time_calls
from percolab.benchmark.kernel_times import kernel_records
from percolab.benchmark.records import Place
from percolab.benchmark.stages import SEED
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.kernels.device import open_device
from percolab.lattices.lattice import Lattice
from percolab.parts import front as on_host
from percolab.parts.front import Front
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs

#: Slabs of a lattice, and grid points of a slab without --sites.
SLABS = 4
_SITES = {"cpu": 2**20, "cuda": 2**30}
#: Layers of a slab by dimension; in three also a thin slab, which is little more than its faces.
_LAYERS = {2: (256,), 3: (1024, 8)}


@dataclass(frozen=True)
class _Slabs:
    """A lattice of four slabs at p, which draws another sample each time."""

    lattice: Lattice
    boundary: str
    shape: tuple[int, ...]
    layers: int
    kind: str
    threshold: int
    slabs: Slabs
    join: Callable[[Front, Front], Front]
    numbers: Iterator[int]

    def draw(self) -> SampleKey:
        """Return a sample that was not drawn before."""
        return SampleKey(XORWOW, SEED, next(self.numbers), self.threshold)

    def front(self) -> Front:
        """Return the front of the second slab of a sample."""
        return self.slabs.front(1, self.draw())

    def row(self) -> None:
        """Measure a whole row."""
        self.slabs.row(self.draw())

    def two_fronts(self) -> tuple[Front, Front]:
        """Return the fronts of the first two slabs of a sample."""
        draw = self.draw()
        return self.slabs.front(0, draw), self.slabs.front(1, draw)

    def make_piece(self) -> Callable[[], object]:
        """Return what measures one sample of as many sites as a slab, in one piece."""
        shape, kinds = (*self.shape[:-1], self.layers), (self.boundary,) * len(self.shape)
        coupling = new_coupling(None, self.kind, self.lattice.topology(shape, kinds))
        thresholds, samples = np.array([self.threshold], np.uint64), np.zeros(1, np.uint64)
        return lambda: coupling.rows(XORWOW, SEED, samples, thresholds)


def layer_shape(points: int, axes: int) -> tuple[int, ...]:
    """Return the shape of a layer of about this many points, as even as powers of two allow."""
    if axes == 1:
        return (max(points, 1),)
    side = 1 << max(points.bit_length() - 1, 0) // axes
    return (side, *layer_shape(points // side, axes - 1))


def time_slabs(setting: Setting) -> Iterator[CallTime]:
    """Time a slab in one piece, a slab of a row, a front alone, and a join of two fronts.

    In a row fronts are joined while the next slab is labeled.  On CUDA the kernels of a front and
    of a join follow, by device events.
    """
    for lattice in setting.choose_lattices("square", "cubic"):
        for boundary in setting.choose_boundaries("open", "periodic"):
            for layers in setting.layers or _LAYERS.get(lattice.dimension, (8,)):
                for place in setting.choose_places(lattice, 1.0):
                    yield from _times(setting, _make(setting, lattice, boundary, layers, place))


def _make(
    setting: Setting, lattice: Lattice, boundary: str, layers: int, place: Place
) -> tuple[_Slabs, CallTime]:
    """Return a lattice of slabs and the record of one slab, without times."""
    sites = setting.sites or _SITES[setting.kind]
    face = layer_shape(sites // layers, lattice.dimension - 1)
    shape, kinds = (*face, SLABS * layers), (boundary,) * lattice.dimension
    whole = Whole(lattice, shape, kinds)
    join: Callable[[Front, Front], Front] = on_host.join
    if setting.kind == "cuda":
        from percolab.parts.join_cuda import FrontsCuda

        join = FrontsCuda().join
    slabs = _Slabs(
        lattice,
        boundary,
        shape,
        layers,
        setting.kind,
        p_to_threshold(place.p),
        Slabs(whole, (layers,) * SLABS, kind=setting.kind),
        join,
        count(),
    )
    base = CallTime(
        stage="slabs",
        lattice=lattice.name,
        shape=shape,
        num_sites=whole.num_points // SLABS,
        p=place.p,
        program=boundary,
        device=str(setting.device),
        note=f"per slab of {layers} layers",
    )
    return slabs, base


def _times(setting: Setting, made: tuple[_Slabs, CallTime]) -> Iterator[CallTime]:
    slabs, base = made
    setting.device.open()

    def timed(work: Callable[[], object]) -> np.ndarray:
        return time_calls(work, setting.kind, setting.runs)

    piece = base.timed(
        timed(slabs.make_piece()), part="piece", shape=(*base.shape[:-1], slabs.layers)
    )
    yield piece
    row = base.timed(timed(slabs.row) / SLABS, part="row")
    yield row.compared(piece, "one piece")
    yield base.timed(timed(slabs.front), part="front").compared(piece, "one piece")
    low, high = slabs.two_fronts()
    bonds, clusters = low.high.num_bonds, (low.num_clusters, high.num_clusters)
    note = f"{bonds} open bonds at the face, {clusters[0]} and {clusters[1]} clusters"
    joined = timed(lambda: slabs.join(low, high))
    yield base.timed(joined, part="join", note=note).compared(row, "slab of a row")
    if setting.kind != "cuda":
        return
    cuda = open_device(str(setting.device))
    works = {"join": lambda: slabs.join(low, high), "front": slabs.front}
    for part, work in works.items():
        yield from kernel_records(base.timed([0.0], part=part), cuda, work, setting.runs)
