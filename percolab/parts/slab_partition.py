"""The partition "slabs": every rank has adjacent layers, and measures them slab by slab.

A single rank is a chain of slabs, which measures a sample in the memory of one slab.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import lcm
from typing import Any

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, check_free
from percolab.lattices.topology import MAX_POINTS
from percolab.parts.interface import Interface
from percolab.parts.partitions import Available, StudyLattices
from percolab.parts.parts import Whole
from percolab.parts.ranks import AnyJob, Leader, RankJob, choose_rank_layers, find_first_layer
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import is_first_slab
from percolab.parts.transport import Local

#: The layers of the slabs of every rank, from the first on.
RankLayers = tuple[tuple[int, ...], ...]

# Sites of a slab if slabs are chosen automatically: on the CPU these take at most about a second
# and 1 GB of memory; on CUDA some 10 ms, compared with which the work at its faces is short.
_SITES_PER_SLAB, _SITES_ON_CUDA = 2**25, 2**30
# On CUDA, slabs are as large as possible if they would have fewer than _FEW_ON_CUDA layers, or if
# the lattice has more than _LARGE sites, so that seconds for larger tables do not matter.
_FEW_ON_CUDA, _LARGE = 32, 2**39
# The most layers of a tile to which slabs are fitted.
_DEEPEST = 64


@dataclass(frozen=True)
class SlabDivision:
    """Lattices cut into slabs of whole layers."""

    layers: Mapping[int, RankLayers]  # those of the slabs of every rank, by the size of the lattice
    # Names of the devices of one host, one for each rank; the CPU is for all
    devices: tuple[str, ...] = ("cpu",)
    extra_stages: Mapping[int, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return len(next(iter(self.layers.values())))

    @property
    def stages(self) -> int:
        return (self.ranks - 1).bit_length()

    def job(self, size: int, whole: Whole, *, tally: bool, p: float) -> AnyJob:
        return RankJob(whole, self.layers[size], tally, self.devices, p)

    def parts_of_first(self, size: int) -> int:
        return sum(self.layers[size][0])

    def continues(self, size: int, rank: int, interface: Interface) -> bool:
        layers = self.layers[size]
        return rank < len(layers) and is_first_slab(
            interface, layers[rank], find_first_layer(layers, rank)
        )

    def run_record(self) -> dict[str, Any]:
        return {"slabs": {str(n): sum(map(len, layers)) for n, layers in self.layers.items()}}

    def split_record(self) -> dict[str, Any]:
        return {}

    def warm_up(self, whole: Whole, draw: SampleKey, *, tally: bool) -> None:
        """Measure one sample in two slabs, or in one if two would be too thin."""
        for slabs in (2, 1):
            try:
                layers = choose_rank_layers(whole, 1, slabs)
            except InputError:
                continue
            Leader(Local.ranks(1)[0]).row(RankJob(whole, layers, tally, self.devices[:1]), draw)
            return


class SlabPartition:
    """Cuts lattices into slabs; the option ``slabs`` is the number of slabs of all ranks."""

    def count_ranks(
        self, lattices: StudyLattices, options: Mapping[str, Any], available: Available
    ) -> int:
        """Return the given or usual number of ranks, or fewer if there are not enough layers."""
        wholes = lattices.wholes.values()
        most = min(whole.num_layers // max(whole.reach, 1) for whole in wholes)
        ranks = available.ranks
        if ranks is None:
            ranks = min(available.usual, max(most, 1))
        if ranks <= most:
            available.check_local(ranks)
        return ranks

    def divide(
        self, lattices: StudyLattices, options: Mapping[str, Any], ranks: int, available: Available
    ) -> SlabDivision:
        """Return the layers of all ranks; InputError: too many ranks or slabs, or no memory."""
        device, local, chosen = available.device, available.count_local(ranks), {}
        free = available.free_memory()
        for size, whole in lattices.wholes.items():
            check_labelable(whole, device)
            where = f"L = {size} over {ranks} ranks"
            needed = partial(needed_memory, whole, local, device, lattices.p[size])
            try:
                layers = choose_layers(
                    whole, options.get("slabs"), ranks, device.kind, needed, free
                )
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            where += f" in {sum(map(len, layers))} slabs"
            check_fits(where, needed(layers), free, device, f" for {local} of them")
            chosen[size] = layers
        return SlabDivision(chosen, tuple(map(str, available.devices)))

    def job(self, record: dict[str, Any]) -> AnyJob:
        return RankJob.of_record(record)


SLABS = SlabPartition()


def check_labelable(whole: Whole, device: Device) -> None:
    """Raise InputError unless slabs of a lattice can be labeled on a device."""
    if device.kind == "cpu":
        return
    from percolab.parts.tiled_cuda import refusal

    if problem := refusal(whole):
        raise InputError(
            f"{whole.lattice.name} cannot be labeled in slabs on {device}: {problem}; use "
            "--device cpu"
        )


def needed_memory(
    whole: Whole, copies: int, device: Device, p: float, layers: RankLayers
) -> Memory:
    """Return the host memory of ``copies`` ranks with these layers, and the device's of one."""
    one = RankJob(whole, layers, devices=(str(device),), p=p).most_memory
    return Memory(copies * one.host, one.device)


def choose_layers(
    whole: Whole,
    slabs: int | str | None,
    ranks: int,
    kind: str,
    needed: Callable[[RankLayers], Memory],
    free: Memory,
) -> RankLayers:
    """Return the layers of the slabs of every rank.

    slabs: their number for all ranks; None and "auto" choose the usual thickness, or thinner slabs
    until the memory that they need is free.  InputError: the lattice cannot be cut like this.
    """
    if slabs not in (None, "auto"):
        return choose_rank_layers(whole, ranks, int(slabs or 0))
    least = max(whole.reach, 1)
    thick = usual_layers(whole, kind)
    while True:
        layers = choose_rank_layers(whole, ranks, thick=thick)
        host, on_device = needed(layers)
        if thick <= least or (host <= free.host and on_device <= free.device):
            return layers
        thick = usual_layers(whole, kind, most=max(thick // 2, least))


def usual_layers(whole: Whole, kind: str, most: int | None = None) -> int:
    """Return the thickness of slabs if memory does not limit it; at most ``most`` layers."""
    each, largest = whole.layer_points, MAX_POINTS // whole.layer_points
    if kind == "cpu":
        usual = _SITES_PER_SLAB // each
    else:
        usual = _SITES_ON_CUDA // each
        if usual < _FEW_ON_CUDA or whole.num_points > _LARGE:
            usual = largest
    most = max(min(most or usual, whole.num_layers), whole.reach, 1)
    unit = whole.lattice.cell[-1]
    # Slabs of whole cells share their tables.
    of_cells = most - most % unit
    fitting = [of_cells if of_cells >= max(whole.reach, 1) else most]
    if kind == "cuda":
        from percolab.parts.tiled_cuda import seconds_a_layer

        depths = (_DEEPEST >> n for n in range(_DEEPEST.bit_length()))
        whole_tiles = (most - most % lcm(depth, unit) for depth in depths)
        fitting += [thick for thick in whole_tiles if 2 * thick > most and thick >= whole.reach]
        return min(fitting, key=lambda thick: seconds_a_layer(whole, thick))
    return fitting[0]


def check_fits(where: str, needed: Memory, free: Memory, device: Device, times: str = "") -> None:
    """Raise InputError unless memory is free; where: the text for its user; times: how often."""
    check_free(f"{where} needs", needed.host, free.host, f" of memory{times}")
    if needed.device > free.device:
        have = f"{free.device / 1e9:.1f} GB of GPU memory are available"
        raise InputError(f"{where} needs {needed.device / 1e9:.1f} GB on {device}; {have}")
