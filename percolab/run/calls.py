"""Calls: blocks that a worker of another process is asked for, in plain values that travel.

A worker keeps the samplers of one run, so that a topology is built once in each process.  The bonds
of a graph do not travel with every call: a process is told of a graph once, and one that does not
know it answers None, for the call to be made again with the bonds.

A process imports this before its first call, so what is needed for slabs alone is imported late.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.graph import Graph
from percolab.run.processes import tell
from percolab.run.sampler import Sampler
from percolab.tasks.blocks import AnyBlock, ChainEnd
from percolab.tasks.study import Task

if TYPE_CHECKING:
    from percolab.run.parts_sampler import AnySampler
    from percolab.store.checkpoints import Checkpoints


@dataclass(frozen=True, eq=False)
class Call:
    """Blocks of one task.

    run: a name of the run; samplers of another one are forgotten.  devices: by their names; a
    worker that knows its number drives the one of that number, others the first.  share, window,
    end: as for :class:`Sampler`; end is that of the blocks before.  layers, checkpoints: of samples
    in slabs, as for :class:`PartsSampler`; a worker tells of the sites that it has labeled.
    """

    run: str
    task: Task
    labeler: str
    devices: tuple[str, ...]
    share: float
    window: tuple[float, float]
    numbers: tuple[int, ...] = ()
    end: ChainEnd | None = None
    layers: tuple[int, ...] = ()
    checkpoints: Checkpoints | None = None

    @classmethod
    def of_sampler(cls, run: str, sampler: AnySampler, devices: tuple[str, ...]) -> Call:
        """Return the call, of no blocks yet, for blocks as a sampler makes them."""
        from percolab.run.parts_sampler import PartsSampler

        if isinstance(sampler, PartsSampler):
            found = cls(run, sampler.task, "", devices, 0.9, (0.0, 1.0))
            return replace(found, layers=sampler.slabs, checkpoints=sampler.checkpoints)
        own = sampler.task, sampler.labeler or "", devices, sampler.share, sampler.window
        return cls(run, *own)

    def new_sampler(self, task: Task, device: Device) -> AnySampler:
        """Return the sampler of the call's task, which may know more of a graph, on a device."""
        if self.layers:
            from percolab.run.parts_sampler import PartsSampler, alone

            found = PartsSampler(task, alone(self.layers, task.size, device), tell)
            found.checkpoints = self.checkpoints
            return found
        return Sampler(
            task, labeler=self.labeler, device=device, share=self.share, window=self.window
        )

    @property
    def without_bonds(self) -> Call:
        """The same call; a graph in it without its bonds."""
        graph = self.task.structure
        if not isinstance(graph, Graph):
            return self
        return replace(self, task=replace(self.task, structure=replace(graph, content=None)))


class _Process:
    """What this process knows as a worker: its number, graphs, and the samplers of one run."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.stopped = threading.Event()
        self._graphs: dict[str, Graph] = {}
        self._run = ""
        self._samplers: dict[str, AnySampler] = {}
        self._lock = threading.Lock()

    def know(self, graph: Graph) -> None:
        """Keep the bonds of a graph."""
        self._graphs[graph.digest] = graph

    def sampler(self, call: Call) -> AnySampler | None:
        """Return the sampler of a call's task, or None if its graph is not known."""
        with self._lock:
            if call.run != self._run:
                self._run, self._samplers = call.run, {}
            if call.task.id not in self._samplers:
                graph, task = call.task.structure, call.task
                if isinstance(graph, Graph):
                    if graph.content is not None:
                        self.know(graph)
                    if graph.digest not in self._graphs:
                        return None
                    task = replace(task, structure=self._graphs[graph.digest])
                device = self.device(call.devices)
                self._samplers[call.task.id] = call.new_sampler(task, device)
            sampler = self._samplers[call.task.id]
        if isinstance(sampler, Sampler) and call.task.chains:
            sampler.continue_from(call.end)
        return sampler

    def device(self, names: tuple[str, ...]) -> Device:
        """Return the device of this process; InputError if there are more workers than devices."""
        number = 0 if names == ("cpu",) or self.number is None else self.number
        if number >= len(names):
            raise InputError(
                f"worker {number + 1} on {socket.gethostname()} has no GPU of its own: there "
                f"{'is' if len(names) == 1 else 'are'} {', '.join(names)}; start one worker a GPU"
            )
        return Device.parse(names[number])


_HERE = _Process()


class _Thread(threading.local):
    """The worker that a thread makes calls for."""

    worker = _HERE


_THREAD = _Thread()


def be_worker(number: int, devices: tuple[str, ...], graph: Graph | None = None) -> None:
    """Make this process the worker of a number on its host, from 0 on, with its device open.

    graph: one to know.
    """
    _HERE.number = number
    if graph is not None:
        _HERE.know(graph)
    # The first call tells what is wrong.
    with suppress(InputError):
        _HERE.device(devices)


class ThisWorker:
    """The process of a study as a worker of it, too: the one of the first device.

    What it knows goes with the study.  graph: one to know.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self._worker = _Process()
        if graph is not None:
            self._worker.know(graph)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a function returns that is called by this worker."""
        _THREAD.worker = self._worker
        return function(*args, **kwargs)

    def stop(self) -> None:
        """Let what is being measured end without blocks."""
        self._worker.stopped.set()


def stop() -> None:
    """Let what this process measures end without blocks."""
    _HERE.stopped.set()


def measure_blocks(call: Call) -> list[AnyBlock] | None:
    """Return the blocks that are asked for; None if a graph's bonds are not known here.

    InputError: there is no such device here.  Stopped: :func:`stop` was called.
    """
    worker = _THREAD.worker
    sampler = worker.sampler(call)
    return None if sampler is None else sampler.sample(call.numbers, worker.stopped.is_set)
