"""Calls: requests for blocks to a worker in another process, as plain values that can be sent.

A worker keeps the samplers of one run, so that a topology is built once in each process.  The bonds
of a graph are not sent with every call: a process gets them once, and a process that does not have
them answers None, whereupon the call is made again with the bonds.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.graph import Graph
from percolab.tasks.blocks import AnyBlock, ChainEnd
from percolab.tasks.kind import BlockSampler, SamplerSpec


@dataclass(frozen=True, eq=False)
class Call:
    """Blocks of one task.

    run: a name of the run; samplers of other runs are dropped.  devices: their names; a worker that
    knows its number uses the device of that number, others use the first.  end: that of the block
    before, where blocks are made one after the other.  largest: most neighbouring blocks that may
    be added up to one.
    """

    run: str
    spec: SamplerSpec
    devices: tuple[str, ...]
    numbers: Sequence[int] = ()
    end: ChainEnd | None = None
    largest: int = 1

    @property
    def without_bonds(self) -> Call:
        """Return the same call; a graph in it is without its bonds."""
        task = self.spec.task
        if not isinstance(task.structure, Graph):
            return self
        task = replace(task, structure=replace(task.structure, content=None))
        return replace(self, spec=replace(self.spec, task=task))


class _WorkerState:
    """What this process knows as a worker: its number, graphs, and the samplers of one run."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.stopped = threading.Event()
        self._graphs: dict[str, Graph] = {}
        self._run = ""
        self._samplers: dict[str, BlockSampler] = {}
        self._lock = threading.Lock()

    def know(self, graph: Graph) -> None:
        self._graphs[graph.digest] = graph

    def sampler(self, call: Call) -> BlockSampler | None:
        with self._lock:
            if call.run != self._run:
                self._run, self._samplers = call.run, {}
            task = call.spec.task
            if task.id not in self._samplers:
                graph = task.structure
                if isinstance(graph, Graph):
                    if graph.content is not None:
                        self.know(graph)
                    if graph.digest not in self._graphs:
                        return None
                    task = replace(task, structure=self._graphs[graph.digest])
                device = self.device(call.devices)
                self._samplers[task.id] = call.spec.make(task, device)
            sampler = self._samplers[task.id]
        if sampler.is_serial:
            sampler.continue_from(call.end)
        return sampler

    def device(self, names: tuple[str, ...]) -> Device:
        """Return the device of this process; InputError if there are more workers than devices."""
        number = 0 if names == ("cpu",) or self.number is None else self.number
        if number >= len(names):
            raise InputError(
                f"worker {number + 1} on {socket.gethostname()} has no GPU left of "
                f"{', '.join(names)}; start one worker per GPU"
            )
        return Device.parse(names[number])


_HERE = _WorkerState()


#: The worker for which a thread makes calls, where it is not that of the process.
_THREAD = threading.local()


def be_worker(number: int, devices: tuple[str, ...], graph: Graph | None = None) -> None:
    """Make this process worker ``number``, from 0 on, of its host; it gets the bonds of a graph."""
    _HERE.number = number
    if graph is not None:
        _HERE.know(graph)
    # An error here is raised again by the first call.
    with suppress(InputError):
        _HERE.device(devices)


class ThisWorker:
    """The process of a study as one of its workers: the one of the first device."""

    def __init__(self, graph: Graph | None = None) -> None:
        self._worker = _WorkerState()
        if graph is not None:
            self._worker.know(graph)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _THREAD.worker = self._worker
        return function(*args, **kwargs)

    def stop(self) -> None:
        self._worker.stopped.set()


def stop() -> None:
    """Cancel what this process measures; it returns no blocks."""
    _HERE.stopped.set()


def measure_blocks(call: Call) -> list[AnyBlock] | None:
    """Return the blocks that are requested; None if a graph's bonds are not known here."""
    worker: _WorkerState = getattr(_THREAD, "worker", _HERE)
    sampler = worker.sampler(call)
    if sampler is None:
        return None
    return sampler.sample_groups(call.numbers, worker.stopped.is_set, call.largest)
