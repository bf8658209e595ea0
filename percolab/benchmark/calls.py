"""What the further stages share: what to time, and the times of whole calls by the host's clock.

On CUDA every kernel of a call is also timed by itself, by device events.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import percolab.benchmark.timer as clock
from percolab.benchmark.records import CallTime, Place, choose_places
from percolab.benchmark.timer import Timer, Work, make_timer
from percolab.bonds.model import BOND, Model
from percolab.errors import InputError
from percolab.kernels.device import Device, open_device
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.lattices.topology import Topology
from percolab.spins.update import Update

#: Calls before those that count.  On CUDA the first compiles, the second is captured as a graph.
WARM_UP_CALLS = {"cpu": 1, "cuda": 3}
# Half a window of p is the first number times L to the power of minus the second: a study's window.
_WINDOWS = {2: (0.6656, 0.75), 3: (0.3, 1.141)}

Events = defaultdict[str, list[tuple[Any, Any]]]
#: What the whole call takes by the host's clock, launched kernel by kernel.
WHOLE = "call"


@dataclass(frozen=True)
class Setting:
    """What the further stages time, and where; the stage chooses what is None.

    devices: resolved; only "split" and "study" use more than the first.  points: numbers of values
    of p of a grid.  sites: of all samples of a call; of "slabs" those of a slab, of "split" those
    of a sample.  samples: of a call; of "split" and "study" those of a run.  layers: of a slab.
    update, chains: of spins, whose chains are swept together.
    """

    devices: tuple[Device, ...]
    lattices: tuple[Lattice, ...] = ()
    sizes: tuple[int, ...] | None = None
    ratios: tuple[float, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    model: Model = BOND
    labelers: tuple[str | None, ...] = (None,)
    boundary: str | None = None
    points: tuple[int, ...] | None = None
    sites: int | None = None
    samples: int | None = None
    layers: tuple[int, ...] | None = None
    runs: int = 11
    update: Update = field(default_factory=Update)
    chains: int = 1

    @property
    def device(self) -> Device:
        return self.devices[0]

    @property
    def kind(self) -> str:
        return self.device.kind

    def make_timer(self) -> Timer:
        return make_timer(self.device)

    def choose_lattices(self, *names: str) -> tuple[Lattice, ...]:
        """Return the lattices or, if none is given, those of these names."""
        return self.lattices or tuple(map(load_lattice, names))

    def choose_boundaries(self, *kinds: str) -> tuple[str, ...]:
        """Return the boundary of all axes or, if none is given, these."""
        return kinds if self.boundary is None else (self.boundary,)

    def choose_places(self, lattice: Lattice, *ratios: float) -> tuple[Place, ...]:
        return choose_places(lattice, self.ratios or ratios, self.probabilities, self.model)

    def choose_topology(self, lattice: Lattice, size: int, *kinds: str) -> Topology:
        """Return a lattice of linear size L; ``kinds``: the boundary without --boundary."""
        boundary = self.choose_boundaries(*kinds)[:1] * lattice.dimension
        lattice.check_size(size, boundary)
        return lattice.topology(lattice.shape(size), boundary)

    def make_record(self, stage: str, lattice: str, topology: Topology, **more: Any) -> CallTime:
        """Return the record of calls on a topology, without times."""
        return CallTime(
            stage=stage,
            lattice=lattice,
            shape=topology.shape or (topology.num_points,),
            num_sites=topology.num_sites,
            device=str(self.device),
            **more,
        )


def time_calls(work: Work, kind: str, runs: int) -> np.ndarray:
    """Return the seconds of whole calls by the host's clock, float64 (runs,).

    The work ends when its result is on the host, or the device has done it.
    """
    times = []
    for _ in range(WARM_UP_CALLS[kind] + runs):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return np.array(times[-runs:])


def compare_with_first(records: Iterable[CallTime], name: str) -> Iterator[CallTime]:
    first: CallTime | None = None
    for record in records:
        yield record if first is None else record.compared(first, name)
        first = first or record


def make_grid(lattice: Lattice, size: int, p: float, points: int) -> list[float]:
    """Return values of p over a window as wide as a study's, ascending; one is p itself.

    InputError: the lattice has neither two dimensions nor three.
    """
    if points == 1:
        return [p]
    if lattice.dimension not in _WINDOWS:
        raise InputError(f"{lattice.name}: grids of p are timed in two and three dimensions")
    width, exponent = _WINDOWS[lattice.dimension]
    half = width * size**-exponent
    return [float(each) for each in np.linspace(max(p - half, 0.0), min(p + half, 1.0), points)]


# Kernels one by one


class _TimedKernel:
    """Takes the place of a kernel and records an event before and after every launch."""

    def __init__(self, cuda: Any, kernel: Any, add: Callable[[tuple[Any, Any]], None]) -> None:
        self.cuda, self.kernel, self.add = cuda, kernel, add

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        stream = configuration[2] if len(configuration) > 2 else 0

        def launch(*arguments: Any) -> None:
            begin, end = self.cuda.event(), self.cuda.event()
            begin.record(stream)
            self.kernel[configuration](*arguments)
            end.record(stream)
            self.add((begin, end))

        return launch


def is_kernel(value: Any) -> bool:
    from numba.cuda.dispatcher import CUDADispatcher

    return isinstance(value, CUDADispatcher) and not value.targetoptions["device"]


@contextmanager
def kernel_events(cuda: Any) -> Iterator[Events]:
    """Yield the events of all kernels by name, as they are launched within the context.

    Meanwhile calls are launched kernel by kernel, not as captured graphs.  Only kernels of loaded
    modules are replaced: run the work once before.
    """
    from percolab.kernels.launches import Launches

    events: Events = defaultdict(list)
    replaced: list[tuple[Any, str, Any]] = [(Launches, "call", Launches.call)]
    for name, module in list(sys.modules.items()):
        if name.startswith("percolab."):
            kernels = [(key, kernel) for key, kernel in vars(module).items() if is_kernel(kernel)]
            replaced += [(module, key, kernel) for key, kernel in kernels]
    try:
        for place, key, kernel in replaced[1:]:
            add = events[key.removesuffix("_kernel")].append
            setattr(place, key, _TimedKernel(cuda, kernel, add))
        setattr(*replaced[0][:2], lambda self, key, work: work())
        yield events
    finally:
        for place, key, kernel in replaced:
            setattr(place, key, kernel)


def sum_events(events: Events) -> dict[str, float]:
    """Return the seconds of every kernel that was launched, and forget the events."""
    seconds_by_name = {
        name: sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3
        for name, pairs in events.items()
        if pairs
    }
    for pairs in events.values():
        pairs.clear()
    return seconds_by_name


def time_kernels(cuda: Any, work: Work, runs: int) -> dict[str, list[float]]:
    """Return the seconds of every kernel that ``work`` launches, and of :data:`WHOLE`, by run."""
    work()
    times: dict[str, list[float]] = defaultdict(list)
    with kernel_events(cuda) as events:
        begin = time.perf_counter()
        work()
        while time.perf_counter() - begin < clock.WARM_UP_SECONDS:
            work()
        cuda.synchronize()
        sum_events(events)
        for _ in range(runs):
            begin = time.perf_counter()
            work()
            cuda.synchronize()
            times[WHOLE].append(time.perf_counter() - begin)
            for name, seconds in sum_events(events).items():
                times[name].append(seconds)
    return dict(times)


def time_call_kernels(
    setting: Setting, base: CallTime, works: Mapping[str, Work]
) -> Iterator[CallTime]:
    """Yield the time of every kernel of each call, compared with the whole call; none on a CPU.

    works: the calls, by the part of the stage that they are
    """
    if setting.kind != "cuda":
        return
    cuda = open_device(str(setting.device))
    for part, work in works.items():
        times = time_kernels(cuda, work, setting.runs)
        whole = base.timed(times.pop(WHOLE), part=f"{part}:{WHOLE}")
        yield whole
        for name, seconds in times.items():
            yield base.timed(seconds, part=f"{part}:{name}").compared(whole, "its call")
