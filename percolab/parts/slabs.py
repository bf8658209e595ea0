"""The row of one sample by slabs: interfaces are made and joined one after the other."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.parts import interface as on_host
from percolab.parts.interface import Interface, Row, interface_bytes, joining_bytes, make_row
from percolab.parts.parts import Parts, Slab, Whole
from percolab.parts.raster import SampleKey, SlabRaster


def thicknesses(whole: Whole, slabs: int) -> tuple[int, ...]:
    """Return the layers of ``slabs`` slabs, as even as whole cells allow, from the first on.

    Slabs of whole cells share their tables, which are made once.  InputError: they
    would be thinner than bonds reach, or there are more slabs than layers.

    >>> from percolab.lattices.lattice import load_lattice
    >>> thicknesses(Whole(load_lattice("kagome"), (8, 23), ("open", "open")), 4)
    (6, 6, 6, 5)
    """
    if slabs < 1:
        raise InputError(f"slabs = {slabs}, but it must be an integer of at least 1")
    cells, rest = divmod(whole.num_layers, whole.lattice.cell[-1])
    unit = whole.lattice.cell[-1]
    if cells < slabs:
        cells, rest, unit = whole.num_layers, 0, 1
    each, more = divmod(cells, slabs)
    if each == 0:
        raise InputError(f"{slabs} slabs, but there are {whole.num_layers} layers")
    layers = [unit * (each + (n < more)) for n in range(slabs)]
    layers[-1] += rest
    return tuple(layers)


def equal_slabs(whole: Whole, thick: int) -> tuple[int, ...]:
    """Return the layers of equal slabs, except for the last, which has the remaining layers.

    If that is thinner than bonds reach, the last two slabs share their layers.

    >>> from percolab.lattices.lattice import load_lattice
    >>> equal_slabs(Whole(load_lattice("square"), (8, 23), ("open", "open")), 6)
    (6, 6, 6, 5)
    """
    count, rest = divmod(whole.num_layers, thick)
    if rest == 0 or rest >= whole.reach or count == 0:
        return (thick,) * count + (rest,) * (rest > 0)
    both = thick + rest
    last = (both - both // 2, both // 2) if both // 2 >= whole.reach else (both,)
    return (thick,) * (count - 1) + last


class Slabs:
    """One lattice cut into slabs, ready for any number of samples; one thread at a time.

    whole:  the lattice
    layers: those of each slab, from the first on
    tally:  whether sizes are tallied
    kind:   "cpu", or "cuda" for the selected GPU, where an interface stays valid until the next but
            one is made
    first_layer: the first layer if the slabs are a part of the lattice; None if they are all of it

    InputError: slabs that do not fill the lattice, that are thinner than bonds reach or too large
    to be labeled; on CUDA a lattice that is not labeled in tiles.
    """

    def __init__(
        self,
        whole: Whole,
        layers: Sequence[int],
        *,
        tally: bool = False,
        kind: str = "cpu",
        first_layer: int | None = None,
    ) -> None:
        if first_layer is None and sum(layers) != whole.num_layers:
            raise InputError(
                f"slabs of {sum(layers)} layers, but the lattice has {whole.num_layers}"
            )
        self.whole, self.layers = whole, tuple(layers)
        self._starts = tuple(accumulate((first_layer or 0, *layers[:-1])))
        for first, thick in zip(self._starts, layers):
            whole.check_layers(first, thick)
        self._parts = Parts(whole)
        #: The objects that find interfaces of slabs, and that join them.
        self._labeler: Any
        self._joiner: Any
        #: Returns an interface on the device where interfaces are joined; it may be there already.
        self.placed: Callable[[Interface], Interface]
        #: Returns an interface that was yielded with its arrays on the host.
        self.copied: Callable[[Interface], Interface]
        if kind == "cuda":
            from percolab.parts import join_cuda, tiled_cuda

            self._labeler = tiled_cuda.SlabTiled(whole, max(layers), tally=tally)
            self._joiner = join_cuda.InterfacesCuda()
            self.placed, self.copied = join_cuda.to_device, join_cuda.to_host
        else:
            self._labeler, self._joiner = SlabRaster(whole, max(layers), tally=tally), on_host
            self.placed = self.copied = lambda interface: interface

    @staticmethod
    def memory(whole: Whole, layers: Sequence[int], kind: str = "cpu", p: float = 1.0) -> Memory:
        """Return the memory of a row at p or below.

        It is that of tables, one slab, and three interfaces while two are joined, as if every open
        bond at a face led to a separate cluster.  p: that of bonds or of sites, the smaller one.
        """
        starts = accumulate((0, *layers[:-1]))
        tables = Parts.memory(whole, zip(starts, layers), kind)
        if kind == "cuda":
            from percolab.parts import join_cuda, tiled_cuda

            slab = tiled_cuda.SlabTiled.memory(whole, layers, p)
            return tables.plus(slab).plus(join_cuda.InterfacesCuda.memory(whole, p))
        slab = SlabRaster.memory(whole, max(layers))
        bonds, sites = whole.open_at_face(p)
        kinds = {"has_periods": whole.has_periods}
        interfaces = 3 * interface_bytes(2 * bonds, 2 * sites, **kinds)
        interfaces += joining_bytes(4 * sites, **kinds)
        return tables.plus(slab).plus(Memory(host=interfaces))

    def interface(self, n: int, draw: SampleKey) -> Interface:
        """Return the interface of the n-th slab of a sample."""
        interface: Interface = self._labeler.make_interface(self._part(n), draw)
        return interface

    def _part(self, n: int) -> Slab:
        return self._parts.part(self._starts[n], self.layers[n])

    def interfaces(
        self, draw: SampleKey, interface: Interface | None = None
    ) -> Iterator[Interface]:
        """Yield the interface of the first slab of a sample, of the first two, ..., of all.

        interface: that of the first slabs of this sample, to continue from; it must be of whole
        slabs, and on the host.  Yielded interfaces are on the device that made them.
        """
        if interface is not None:
            interface = self.placed(interface)
        first = 0 if interface is None else (0, *accumulate(self.layers)).index(interface.layers)
        for n in range(first, len(self.layers)):
            following = self._part(n + 1) if n + 1 < len(self.layers) else None
            own = self._labeler.make_interface(self._part(n), draw, following)
            interface = own if interface is None else self._joiner.join(interface, own)
            yield interface

    def joined(self, low: Interface, high: Interface) -> Interface:
        """Return the join of two neighbours: of these slabs, as yielded, and one on the host."""
        interface: Interface = self._joiner.join(low, self.placed(high))
        return interface

    def make_row_of_parts(self, interface: Interface) -> Row:
        """Return the row of a sample from the interface of all its slabs."""
        if self.whole.is_closed:
            interface = self._joiner.close(self.placed(interface))
        return make_row(interface)

    def row(self, draw: SampleKey) -> Row:
        """Return the row of a sample, its interfaces joined one after the other."""
        *_, interface = self.interfaces(draw)
        return self.make_row_of_parts(interface)


def is_first_slab(interface: Interface, layers: Sequence[int], first_layer: int = 0) -> bool:
    """Return whether an interface is that of the first of these slabs, which begin at a layer."""
    return interface.first_layer == first_layer and interface.layers in accumulate(layers)
