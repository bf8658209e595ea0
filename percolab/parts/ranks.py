"""One lattice over ranks: each measures adjacent layers; a tree joins their interfaces.

Every rank streams slabs through its memory (:mod:`percolab.parts.slabs`), and finally has the
interface of its layers.  Then, in stage 0, 1, ..., every rank whose number has bit ``stage`` set
and no lower bit sends its interface to the rank 2^stage before it, which joins the two; this works
for any number of ranks.  Rank 0 (:class:`Leader`) sends orders, closes a torus and makes the row,
which equals that of the whole lattice bit for bit; the other ranks :func:`follow` it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import BOND, Model
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, check_free
from percolab.lattices.lattice import lattice_from_text
from percolab.parts.interface import (
    ARRAY_KINDS,
    Interface,
    InterfaceSums,
    Row,
    interface_bytes,
    no_face,
)
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs, equal_slabs, thicknesses
from percolab.parts.transport import Arrays, RankLost, Transport

if TYPE_CHECKING:
    from percolab.parts.peers_cuda import Inbox, Outbox

# Orders of rank 0 to the others: end, leave the current row, get ready, measure a row.
# And a rank's answer to an interface that was offered: it was copied, or it could not be.
_END, _LEAVE, _READY, _ROW, _TAKEN, _REFUSED = range(6)
# The number of arrays of a head; two more follow for an interface that is offered, else six.
_HEAD, _OFFERED = 4, 6


class RankStep(NamedTuple):
    """The work of one rank for one row: its own part, stage -1, or one stage of joining.

    Partitions may have further stages, of negative numbers.
    """

    rank: int
    stage: int
    bytes: int  # of the message that it received
    transport: float  # seconds from its header to its end
    waiting: float  # seconds for its header
    work: float  # seconds of measuring its part, or of joining


class Member(Protocol):
    """One of the ranks of a job, ready for any number of samples; one thread at a time.

    job: the job of all ranks; stages: those of joining; leaves_rows: whether a row that has begun
    can be abandoned
    """

    job: AnyJob
    stages: int
    leaves_rows: bool

    def measure(
        self,
        draw: SampleKey,
        left: Callable[[], bool],
        *,
        leave: Callable[[], None] | None = None,
        done: Callable[[int], None] = lambda parts: None,
    ) -> tuple[Any, list[RankStep]]:
        """Measure this rank's part of a row and join the interfaces from the ranks above.

        On rank 0, return the joined result of all ranks, None if the row is left, and the steps of
        all ranks.
        left: returns whether to leave the row; called between two parts, and while rank 0 waits.
        leave: makes the other ranks leave it, on rank 0.  done: is called with finished parts.
        """

    def make_row_of_parts(self, parts: Any) -> Row:
        """Return the row of a sample from the joined result of all ranks."""


class Checkpointer:
    """Saves the interface of a rank's first slabs, from which a row continues after a kill.

    This base class saves nothing.
    """

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep an interface."""
        return False

    def begin(self, draw: SampleKey) -> Interface | None:
        """Begin a row; return the interface that was saved of it, on the host, or None."""
        return None

    def keep(self, copied: Callable[[], Interface]) -> None:
        """Begin to save the interface that ``copied`` returns on the host."""

    def end(self) -> None:
        """Wait until saving is finished."""


class AnyJob(Protocol):
    """A lattice of which ranks measure samples, and its division."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""

    @property
    def most_memory(self) -> Memory:
        """The most memory that a rank needs."""

    def member(self, transport: Transport) -> Member:
        """Return this rank, ready; InputError if it cannot do its part."""

    def record(self) -> dict[str, Any]:
        """Return it in a form for JSON, for the other ranks, with the name of its partition."""


def split_lattice_to_record(whole: Whole) -> dict[str, Any]:
    """Return a lattice, its shape, boundary and model in a form for JSON."""
    return {
        "lattice": whole.lattice.source,
        "shape": whole.shape,
        "boundary": whole.boundary,
        "model": str(whole.model),
    }


def split_lattice_from_record(record: dict[str, Any]) -> Whole:
    """Return the lattice of a record from :func:`split_lattice_to_record`."""
    lattice = lattice_from_text(record["lattice"], where="the lattice of rank 0")
    shape, boundary = tuple(record["shape"]), tuple(record["boundary"])
    return Whole(lattice, shape, boundary, Model.parse(record["model"]))


@dataclass(frozen=True)
class RankJob:
    """The lattice that ranks measure samples of."""

    whole: Whole
    layers: tuple[tuple[int, ...], ...]  # of the slabs of every rank, from the first on
    tally: bool = False  # whether sizes are tallied
    # Names of devices; a rank uses the one with the number of its place on its host
    devices: tuple[str, ...] = ("cpu",)
    p: float = 1.0  # the largest, of bonds or of sites, of whichever is smaller

    @property
    def ranks(self) -> int:
        return len(self.layers)

    def member(self, transport: Transport) -> Member:
        return _Member(transport, self)

    def checkpointer(self, rank: int) -> Checkpointer:
        """Return the object that saves the interfaces of a rank."""
        return Checkpointer()

    def record(self) -> dict[str, Any]:
        own = {"layers": self.layers, "tally": self.tally, "devices": self.devices, "p": self.p}
        return split_lattice_to_record(self.whole) | own | {"partition": "slabs"}

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> RankJob:
        layers = tuple(tuple(own) for own in record["layers"])
        devices = tuple(record["devices"])
        return cls(split_lattice_from_record(record), layers, record["tally"], devices, record["p"])

    @property
    def most_memory(self) -> Memory:
        """The most memory that a rank needs.

        It is that of a chain, and twice that of one more interface, which is sent, or read or
        written as a checkpoint.  On a GPU, interfaces of one of many ranks have two faces, not one
        as in a chain that begins at an open end, and are copied to the host and from it.
        """
        kind = "cpu" if self.devices == ("cpu",) else "cuda"
        message = most_message(self.whole, self.p)
        chains = [Slabs.memory(self.whole, own, kind, self.p) for own in set(self.layers)]
        on_device = 0 if self.ranks == 1 or kind == "cpu" else 2 * message
        host, device = (max(each) for each in zip(*chains))
        return Memory(host + 2 * message, device + on_device)

    def choose_device(self, transport: Transport) -> Device:
        """Return the device of a rank; InputError if its host has more ranks than devices."""
        if self.devices == ("cpu",):
            return Device("cpu")
        if transport.place >= len(self.devices):
            raise InputError(
                f"--split lattice: {transport.on_host} ranks on one host, which has "
                f"{', '.join(self.devices)}; every rank needs a separate GPU"
            )
        return Device.parse(self.devices[transport.place])


def choose_rank_layers(
    whole: Whole, ranks: int, slabs: int = 0, *, thick: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Return the layers of the slabs of every rank, distributed as evenly as whole cells allow.

    slabs: the least number of slabs of all ranks; each rank has the same number if it has enough
           layers, also divided evenly.  thick: instead, the layers of all slabs but a rank's last.
    InputError: more ranks or slabs than layers, or slabs thinner than bonds reach, or too large.

    >>> from percolab.lattices.lattice import load_lattice
    >>> square = Whole(load_lattice("square"), (8, 23), ("open", "open"))
    >>> choose_rank_layers(square, 3, 6)
    ((4, 4), (4, 4), (4, 3))
    >>> choose_rank_layers(square, 3, thick=5)
    ((5, 3), (5, 3), (5, 2))
    """
    for number, name in ((ranks, "ranks"), (slabs, "slabs")):
        if number > whole.num_layers:
            raise InputError(f"{number} {name}, but there are {whole.num_layers} layers")
    each, boundary, chosen, first = -(-slabs // ranks), (*whole.boundary[:-1], "open"), [], 0
    for own in thicknesses(whole, ranks):
        # The slabs of a rank are cut as if its layers were a lattice.
        alone = replace(whole, shape=(*whole.shape[:-1], own), boundary=boundary, model=BOND)
        chosen.append(equal_slabs(alone, thick) if thick else thicknesses(alone, min(each, own)))
        for layers in chosen[-1]:
            whole.check_layers(first, layers)
            first += layers
    return tuple(chosen)


def find_first_layer(layers: Sequence[Sequence[int]], rank: int) -> int:
    """Return the first layer of a rank, given the slabs of all ranks."""
    return sum(map(sum, layers[:rank]))


def most_message(whole: Whole, p: float = 1.0) -> int:
    """Return the bytes of an interface at p or below if every open bond has a separate cluster."""
    bonds, sites = whole.open_at_face(p)
    return interface_bytes(2 * bonds, 2 * sites, has_periods=whole.has_periods)


def interface_head_arrays(interface: Interface) -> list[NDArray[Any]]:
    """Return the rest of an interface, without its faces, sizes and flags, as arrays."""
    place = [interface.first_layer, interface.layers, interface.num_layers, interface.axes]
    return [np.array(place, np.int64), *interface.sums.to_arrays()]


def offered_bytes(offer: Arrays) -> int:
    """Return the bytes of the faces, sizes and flags of an interface that is offered."""
    return sum(n * np.dtype(kind).itemsize for n, kind in zip(offer[0][1:].tolist(), ARRAY_KINDS))


def interface_from_head(arrays: Arrays) -> Interface:
    """Return an interface with these :func:`interface_head_arrays`, without faces."""
    first_layer, layers, num_layers, axes = arrays[0].tolist()
    none, sums = no_face(), InterfaceSums.from_arrays(arrays[1:])
    sizes, flags = np.empty(0, np.uint64), np.empty(0, np.uint32)
    return Interface(first_layer, layers, num_layers, axes, none, none, sizes, flags, sums)


def interface_to_arrays(interface: Interface) -> list[NDArray[Any]]:
    """Return an interface, in host memory, as arrays."""
    return [*interface_head_arrays(interface), *interface.arrays]


def interface_from_arrays(arrays: Arrays) -> Interface:
    return interface_from_head(arrays[:_HEAD]).with_arrays(arrays[_HEAD:])


def find_peers(transport: Transport, device: Device) -> tuple[Outbox | None, Inbox | None]:
    """Return the outbox and inbox for transfers between GPUs; None if these are not possible.

    They are possible if all ranks are processes of one host, each with its own GPU.
    """
    is_near = transport.on_host == transport.size > 1 and not transport.in_one_process
    if device.kind == "cpu" or not is_near:
        return None, None
    from percolab.parts.peers_cuda import Inbox, Outbox

    return Outbox(), Inbox()


class _Member:
    """A rank of a job of slabs.  InputError: there is no device for it, or no memory."""

    leaves_rows = True

    def __init__(self, transport: Transport, job: RankJob) -> None:
        self.transport, self.device = transport, job.choose_device(transport)
        self._checkpointer = job.checkpointer(transport.rank)
        self.job: AnyJob = job
        self.stages = (job.ranks - 1).bit_length()
        check_memory(job, transport, self.device)
        first = find_first_layer(job.layers, transport.rank)
        layers, kind = job.layers[transport.rank], self.device.kind
        with self.device.driven():
            self._slabs = Slabs(job.whole, layers, tally=job.tally, kind=kind, first_layer=first)
            self._outbox, self._inbox = find_peers(transport, self.device)

    def measure(
        self,
        draw: SampleKey,
        left: Callable[[], bool],
        *,
        leave: Callable[[], None] | None = None,
        done: Callable[[int], None] = lambda layers: None,
    ) -> tuple[Interface | None, list[RankStep]]:
        start = time.perf_counter()
        interface = self._own_interface(draw, left, done)
        if interface is None and leave is not None:
            leave()
        steps = [RankStep(self.transport.rank, -1, 0, 0.0, 0.0, time.perf_counter() - start)]
        rank, size, bit, stage = self.transport.rank, self.transport.size, 1, 0
        while bit < size and not rank & bit:
            if rank + bit < size:
                interface = self._joined(interface, rank + bit, stage, steps, left, leave)
            bit, stage = 2 * bit, stage + 1
        if rank:
            # Send in any case, also if the row is left: a rank waits for this message, and no
            # message may stay undelivered.
            self._send(rank - bit, interface, steps)
        return interface, steps

    def _own_interface(
        self, draw: SampleKey, left: Callable[[], bool], done: Callable[[int], None]
    ) -> Interface | None:
        """Return the interface of this rank's layers, by a chain; None if they are left."""
        interface = self._checkpointer.begin(draw)
        before = 0 if interface is None else interface.layers
        interfaces = self._slabs.interfaces(draw, interface)
        try:
            while True:
                with self.device.driven():
                    longer = next(interfaces, None)
                if longer is None:
                    break
                interface = longer
                done(interface.layers - before)
                before, is_left = interface.layers, left()
                if is_left or self._checkpointer.is_due:
                    self._checkpointer.keep(partial(self._on_host, interface))
                if is_left:
                    return None
        finally:
            # Wait, so that no checkpoint appears after they were removed.
            self._checkpointer.end()
        assert interface is not None
        return interface

    def _on_host(self, interface: Interface) -> Interface:
        with self.device.driven():
            return self._slabs.copied(interface)

    def _send(self, to: int, interface: Interface | None, steps: list[RankStep]) -> None:
        """Send an interface to the rank that joins it, over the link between GPUs if possible."""
        if interface is None:
            self.transport.send(to, [])
            return
        times = np.array(steps, np.float64)
        if self._outbox is not None:
            with self.device.driven():
                offer = self._outbox.offer(interface)
            if offer:
                self.transport.send(to, [times, *interface_head_arrays(interface), *offer])
                if self._is_taken(to):
                    return
            self._outbox = None
        self.transport.send(to, [times, *interface_to_arrays(self._on_host(interface))])

    def _is_taken(self, by: int) -> bool:
        while True:
            answer = self.transport.receive(by)
            assert answer is not None
            # An earlier message may be rank 0's order to leave the row.
            if answer[0][0] in (_TAKEN, _REFUSED):
                return bool(answer[0][0] == _TAKEN)

    def _joined(
        self,
        interface: Interface | None,
        source: int,
        stage: int,
        steps: list[RankStep],
        left: Callable[[], bool],
        leave: Callable[[], None] | None,
    ) -> Interface | None:
        """Return the interface joined to that of a higher rank; None if either left the row."""
        traffic = self.transport.traffic
        before = replace(traffic)
        may_leave = leave is not None and interface is not None
        arrays = self.transport.receive(source, given_up=left if may_leave else lambda: False)
        if arrays is None:
            assert leave is not None
            leave()
            interface, arrays = None, self.transport.receive(source)
        assert arrays is not None
        start = time.perf_counter()
        high, moved = self._received(source, arrays, is_left=interface is None)
        copying = time.perf_counter() - start
        if interface is None or high is None:
            return None
        steps += [RankStep(*map(int, own[:3]), *own[3:]) for own in arrays[0].tolist()]
        seconds, waiting = traffic.seconds - before.seconds, traffic.waiting - before.waiting
        start = time.perf_counter()
        with self.device.driven():
            interface = self._slabs.joined(interface, high)
        work = time.perf_counter() - start
        steps.append(RankStep(self.transport.rank, stage, moved, seconds + copying, waiting, work))
        return interface

    def _received(
        self, source: int, arrays: list[NDArray[Any]], *, is_left: bool
    ) -> tuple[Interface | None, int]:
        """Return the interface that a message contains or offers, and its bytes.

        The interface is None if the row is left, here or on the other rank.
        """
        if len(arrays) == 1 + _OFFERED:
            head, offer = arrays[1 : 1 + _HEAD], arrays[1 + _HEAD :]
            interface: Interface | None = interface_from_head(head)
            if not is_left:
                assert self._inbox is not None
                with self.device.driven():
                    interface = self._inbox.take(offer, interface_from_head(head), source)
            answer = _REFUSED if interface is None else _TAKEN
            self.transport.send(source, [np.array([answer], np.int64)])
            if interface is not None:
                return interface, offered_bytes(offer) + sum(array.nbytes for array in head)
            again = self.transport.receive(source)
            assert again is not None
            arrays = again
        if not arrays:
            return None, 0
        return interface_from_arrays(arrays[1:]), sum(array.nbytes for array in arrays[1:])

    def make_row_of_parts(self, interface: Interface) -> Row:
        with self.device.driven():
            return self._slabs.make_row_of_parts(interface)


def check_memory(job: AnyJob, transport: Transport, device: Device) -> None:
    """Raise InputError if the ranks of a host do not fit into its memory, or one into its GPU's."""
    memory = job.most_memory
    # One rank of each host checks for all its ranks.
    local = transport.on_host if transport.place == 0 else 0
    check_free(f"{local} ranks on one host need", local * memory.host)
    if device.is_shared:
        check_free("a rank needs", memory.device, device.free_memory(), f" on {device}")


class Leader:
    """Rank 0: makes all ranks measure rows; for one thread at a time."""

    def __init__(self, transport: Transport) -> None:
        if transport.rank:
            raise ValueError(f"rank {transport.rank} follows rank 0")
        self.transport = transport
        self._member: Member | None = None
        #: Whether a row is being measured or has failed: other ranks may still wait for messages.
        self.is_busy = False

    def row(
        self,
        job: AnyJob,
        draw: SampleKey,
        left: Callable[[], bool] = lambda: False,
        done: Callable[[int], None] = lambda parts: None,
    ) -> tuple[Row, list[RankStep]] | None:
        """Return the row of a sample and the steps of all ranks; None if ``left`` returns True.

        done: is called with finished layers, or boxes, of rank 0.  InputError: a rank cannot do
        its part.  RankLost: a rank has ended.
        """
        if self.is_busy:
            raise RankLost("rank 0 has failed")
        self._get_ready(job)
        assert self._member is not None
        if not self._member.leaves_rows and left():
            return None
        self.is_busy = True
        numbers = [draw.generator, draw.seed, draw.sample, draw.threshold]
        self._tell(_ROW, np.array(numbers, np.uint64))
        parts, steps = self._member.measure(draw, left, leave=lambda: self._tell(_LEAVE), done=done)
        if parts is None:
            self.is_busy = False
            return None
        start = time.perf_counter()
        row = self._member.make_row_of_parts(parts)
        steps.append(RankStep(0, self._member.stages, 0, 0.0, 0.0, time.perf_counter() - start))
        self.is_busy = False
        return row, steps

    def _get_ready(self, job: AnyJob) -> None:
        """Make all ranks get ready for a job; InputError if one cannot."""
        if self._member is not None and self._member.job == job:
            return
        self._member = None
        if job.ranks != self.transport.size:
            raise InputError(f"{job.ranks} ranks are needed, but there are {self.transport.size}")
        self.is_busy = True
        self._tell(_READY, np.frombuffer(json.dumps(job.record()).encode(), np.uint8))
        problems = []
        try:
            self._member = job.member(self.transport)
        except InputError as error:
            problems.append(str(error))
        for rank in range(1, self.transport.size):
            answer = self.transport.receive(rank)
            assert answer is not None
            problems += [array.tobytes().decode() for array in answer]
        self.is_busy = False
        if problems:
            self._member = None
            raise InputError(problems[0])

    def end(self) -> None:
        self._tell(_END)

    def _tell(self, what: int, *arrays: NDArray[Any]) -> None:
        for rank in range(1, self.transport.size):
            self.transport.send(rank, [np.array([what], np.int64), *arrays])


def follow(
    transport: Transport, job_of: Callable[[dict[str, Any]], AnyJob] = RankJob.of_record
) -> None:
    """Run a rank other than 0: carry out the orders of rank 0 until the order to end.

    job_of: makes the job from its record.  RankLost: another rank has ended earlier.
    """
    member: Member | None = None
    while True:
        order = transport.receive(0)
        assert order is not None
        what = int(order[0][0])
        if what == _END:
            return
        if what == _READY:
            member, answer = None, []
            try:
                member = job_of(json.loads(order[1].tobytes())).member(transport)
            except InputError as error:
                answer = [np.frombuffer(str(error).encode(), np.uint8)]
            transport.send(0, answer)
        if what == _ROW:
            assert member is not None
            draw = SampleKey(*map(int, order[1]))
            # During a row, the only possible order of rank 0 is to leave it.
            member.measure(draw, lambda: transport.has_message(0))
