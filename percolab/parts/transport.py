"""Transport: sends lists of NumPy arrays from one rank to another, and counts the traffic.

*Ranks* are the processes, or threads, that share one lattice, numbered from 0 on: threads of one
process (:class:`Local`), processes of one host that send through sockets in a separate folder
(:class:`Sockets`), or the ranks of one ``mpiexec`` (:class:`Mpi`).

A message is a list of arrays with a small header of their types and shapes; nothing is pickled.
Messages from one rank to another arrive in the order in which they were sent.  Every wait can be
interrupted, and ends with RankLost if the other rank has ended.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Sequence[NDArray[Any]]

#: Types of arrays that are sent; a header has the index of each array's type.
_KINDS = tuple(map(np.dtype, ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")))
# The most bytes that one call of MPI moves: its counts have 31 bits.
_CHUNK = 2**30
# A wait polls at intervals of this share of the time waited so far, from _LEAST to _MOST seconds.
_SHARE, _LEAST, _MOST = 0.05, 1e-5, 1e-3
# Seconds within which processes must have started, and lost ones must be noticed.
_PATIENCE = 60.0
# Seconds for a last line of output to arrive before the ranks are ended.
_LAST_WORDS = 0.2


class RankLost(Exception):
    """Another rank has ended, or failed, before its message came."""


@dataclass
class Traffic:
    """Statistics of a rank's messages; bytes are those of the arrays, without headers.

    seconds: time of sending, and of receiving messages that have arrived; waiting: time before that
    """

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    bytes_received: int = 0
    seconds: float = 0.0
    waiting: float = 0.0


class Transport(ABC):
    """The connection of one rank to the others.

    rank, size:   its number and the number of ranks
    place, on_host: its number among the ranks of its host, from 0 on, and the number of these
    traffic:      statistics of its messages so far
    in_one_process: whether all ranks are threads of one process

    Arrays have one of the usual types of 8 to 64 bits and any shape.  Neither arrays that were sent
    nor arrays that were received may be changed: they may be the same.
    """

    in_one_process = False

    def __init__(self, rank: int, size: int, place: int, on_host: int) -> None:
        self.rank, self.size = rank, size
        self.place, self.on_host = place, on_host
        self.traffic = Traffic()

    def send(self, to: int, arrays: Arrays) -> None:
        """Send a message; return when the arrays were passed on, perhaps before they arrive.

        Two ranks that send to each other at the same time must use :meth:`exchange`.
        """
        end = self._begin(to, arrays)
        start = time.perf_counter()
        end()
        self.traffic.seconds += time.perf_counter() - start

    def receive(
        self, source: int, *, given_up: Callable[[], bool] = lambda: False
    ) -> list[NDArray[Any]] | None:
        """Wait for and return the next message of a rank; None if ``given_up`` returns True."""
        start = time.perf_counter()
        there = self._wait(source, given_up)
        arrived = time.perf_counter()
        self.traffic.waiting += arrived - start
        if not there:
            return None
        arrays = self._take(source)
        self.traffic.seconds += time.perf_counter() - arrived
        self.traffic.messages_received += 1
        self.traffic.bytes_received += sum(array.nbytes for array in arrays)
        return arrays

    def exchange(self, partner: int, arrays: Arrays) -> list[NDArray[Any]]:
        """Send a message to a rank that sends one here at the same time; return the latter."""
        end = self._begin(partner, arrays)
        message = self.receive(partner)
        end()
        assert message is not None
        return message

    @abstractmethod
    def has_message(self, source: int) -> bool:
        """Return whether a message of a rank has arrived; RankLost if none can arrive any more."""

    @abstractmethod
    def abort(self, line: str, exit_code: int) -> None:
        """Make all other ranks end, since this one cannot continue; ``line`` says why."""

    @abstractmethod
    def _start(self, to: int, arrays: Arrays) -> Callable[[], None]:
        """Begin to send a message; return a function that waits until it was passed on."""

    @abstractmethod
    def _take(self, source: int) -> list[NDArray[Any]]:
        """Return a message that has arrived."""

    def _begin(self, to: int, arrays: Arrays) -> Callable[[], None]:
        if not 0 <= to < self.size or to == self.rank:
            raise ValueError(f"rank {self.rank} of {self.size} sends nothing to rank {to}")
        start = time.perf_counter()
        end = self._start(to, [np.ascontiguousarray(array) for array in arrays])
        self.traffic.seconds += time.perf_counter() - start
        self.traffic.messages_sent += 1
        self.traffic.bytes_sent += sum(array.nbytes for array in arrays)
        return end

    def _wait(self, source: int, given_up: Callable[[], bool]) -> bool:
        """Wait until a message has arrived; return True, or False if the wait is given up."""
        start = time.monotonic()
        while not self.has_message(source):
            if given_up():
                return False
            time.sleep(min(max(_SHARE * (time.monotonic() - start), _LEAST), _MOST))
        return True


def _make_header(arrays: Arrays) -> NDArray[np.int64]:
    """Return the types and shapes of arrays as integers."""
    numbers = []
    for array in arrays:
        numbers += [_KINDS.index(array.dtype), array.ndim, *array.shape]
    return np.array(numbers, np.int64)


def _arrays_for(header: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Return arrays of the types and shapes of a header, not yet filled."""
    arrays, numbers = [], deque(header.tolist())
    while numbers:
        kind, axes = numbers.popleft(), numbers.popleft()
        arrays.append(np.empty([numbers.popleft() for _ in range(axes)], _KINDS[kind]))
    return arrays


def _as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)


# --- threads of one process ----------------------------------------------------------------------


class _Meeting:
    """The shared state of the ranks of one process: messages, and why one of them has failed."""

    def __init__(self) -> None:
        self.messages: dict[tuple[int, int], deque[list[NDArray[Any]]]] = {}
        self.failed = ""


class Local(Transport):
    """A rank that is a thread of this process; :meth:`ranks` makes all of them.

    >>> one, other = Local.ranks(2)
    >>> one.send(1, [np.arange(3), np.array([0.5])])
    >>> other.receive(0)
    [array([0, 1, 2]), array([0.5])]
    >>> other.traffic.bytes_received
    32
    """

    in_one_process = True

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        super().__init__(rank, size, rank, size)
        self._meeting = meeting

    @classmethod
    def ranks(cls, size: int) -> list[Local]:
        """Return ``size`` ranks, each for a separate thread."""
        meeting = _Meeting()
        return [cls(rank, size, meeting) for rank in range(size)]

    def has_message(self, source: int) -> bool:
        if self._meeting.failed:
            raise RankLost(self._meeting.failed)
        return bool(self._meeting.messages.get((source, self.rank)))

    def abort(self, line: str, exit_code: int) -> None:
        """Make all other ranks raise RankLost when they next check for a message."""
        self._meeting.failed = self._meeting.failed or line

    def _start(self, to: int, arrays: Arrays) -> Callable[[], None]:
        # Only one thread adds to these messages, and only one takes from them.
        self._meeting.messages.setdefault((self.rank, to), deque()).append(list(arrays))
        return lambda: None

    def _take(self, source: int) -> list[NDArray[Any]]:
        return self._meeting.messages[source, self.rank].popleft()


# --- processes of one host -----------------------------------------------------------------------


class Sockets(Transport):
    """A rank that is a process of this host; ranks connect by sockets in a separate folder.

    Each has a socket for every rank that it has sent to, and one for every rank that has sent to
    it.  Ranks that wait for a message of a rank that has ended raise RankLost.

    folder: used by this run alone; its name must be short, as names of sockets must be.  lost: the
    reason, if known from elsewhere, why no message can arrive any more.
    """

    def __init__(self, rank: int, size: int, folder: Path) -> None:
        super().__init__(rank, size, rank, size)
        self.lost = ""
        self._folder = folder
        self._out: dict[int, socket.socket] = {}
        self._in: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        # It is renamed later, so that it already listens when others find it.
        self._listener.bind(str(folder / f"{rank}.new"))
        self._listener.listen(size)
        self._listener.setblocking(False)
        os.rename(folder / f"{rank}.new", folder / str(rank))

    def close(self) -> None:
        """Close all sockets; the other ranks then regard this rank as lost."""
        for each in (self._listener, *self._out.values(), *self._in.values()):
            each.close()

    def has_message(self, source: int) -> bool:
        if self.lost:
            raise RankLost(self.lost)
        while source not in self._in:
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return False
            accepted.setblocking(True)
            try:
                self._in[int(_received(accepted, np.empty(1, np.int64))[0])] = accepted
            except ConnectionError:
                # The other process ended before it had sent its rank.
                accepted.close()
        waiting = select.poll()
        waiting.register(self._in[source], select.POLLIN)
        if not waiting.poll(0):
            return False
        if not self._in[source].recv(1, socket.MSG_PEEK):
            raise RankLost(f"rank {source} has ended")
        return True

    def remove_folder(self) -> None:
        """Remove the folder for all ranks; no new connection is possible then."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def abort(self, line: str, exit_code: int) -> None:
        """Make ranks that wait for this one raise RankLost."""
        self.close()

    def _start(self, to: int, arrays: Arrays) -> Callable[[], None]:
        target, header, problems = self._socket_to(to), _make_header(arrays), list[OSError]()

        def send() -> None:
            try:
                for array in (np.array([header.size], np.int64), header, *arrays):
                    target.sendall(_as_bytes(array).data)
            except OSError as error:
                problems.append(error)

        # The other end may be busy.
        sending = threading.Thread(target=send, daemon=True)
        sending.start()

        def end() -> None:
            sending.join()
            if problems:
                raise RankLost(f"rank {to} has ended") from problems[0]

        return end

    def _socket_to(self, to: int) -> socket.socket:
        if to not in self._out:
            until = time.monotonic() + _PATIENCE
            while not (self._folder / str(to)).exists():
                if self.lost:
                    raise RankLost(self.lost)
                if time.monotonic() > until:
                    raise RankLost(f"rank {to} did not connect within {_PATIENCE:.0f} s")
                time.sleep(_MOST)
            self._out[to] = target = socket.socket(socket.AF_UNIX)
            try:
                target.connect(str(self._folder / str(to)))
                target.sendall(np.array([self.rank], np.int64).data)
            except (ConnectionError, FileNotFoundError) as error:
                raise RankLost(f"rank {to} has ended") from error
        return self._out[to]

    def _take(self, source: int) -> list[NDArray[Any]]:
        sender = self._in[source]
        try:
            count = _received(sender, np.empty(1, np.int64))
            arrays = _arrays_for(_received(sender, np.empty(count[0], np.int64)))
            return [_received(sender, array) for array in arrays]
        except ConnectionError as error:
            raise RankLost(f"rank {source} has ended") from error


def _received(source: socket.socket, array: NDArray[Any]) -> NDArray[Any]:
    """Fill an array from a socket and return it; ConnectionError if it ends before."""
    left = _as_bytes(array).data
    while left:
        count = source.recv_into(left)
        if not count:
            raise ConnectionError
        left = left[count:]
    return array


# --- MPI -----------------------------------------------------------------------------------------

_HEADER, _DATA = 1, 2


class Mpi(Transport):
    """A rank of ``mpiexec``.

    mpi: the module ``mpi4py.MPI``
    """

    def __init__(self, mpi: Any) -> None:
        world = mpi.COMM_WORLD
        host = world.Split_type(mpi.COMM_TYPE_SHARED)
        super().__init__(world.Get_rank(), world.Get_size(), host.Get_rank(), host.Get_size())
        host.Free()
        self._mpi, self._all = mpi, world.Dup()

    def has_message(self, source: int) -> bool:
        return bool(self._all.Iprobe(source, _HEADER))

    def abort(self, line: str, exit_code: int) -> None:
        """Write a line and end all ranks with an exit code."""
        print(line, file=sys.stderr, flush=True)
        # The launcher of the ranks may drop output that one of them writes just before it ends.
        time.sleep(_LAST_WORDS)
        self._mpi.COMM_WORLD.Abort(exit_code)
        # The call may return before this rank is ended, so end it here.
        os._exit(exit_code)

    def _start(self, to: int, arrays: Arrays) -> Callable[[], None]:
        # These arrays are kept until they are sent.
        header = _make_header(arrays)
        parts = [part for array in arrays for part in _chunks(array)]
        sent = [self._all.Isend([header, self._mpi.INT64_T], to, _HEADER)]
        sent += [self._all.Isend([part, self._mpi.BYTE], to, _DATA) for part in parts]

        return lambda: self._mpi.Request.Waitall(sent)

    def _take(self, source: int) -> list[NDArray[Any]]:
        status = self._mpi.Status()
        message = self._all.Mprobe(source, _HEADER, status)
        header = np.empty(status.Get_count(self._mpi.INT64_T), np.int64)
        message.Recv([header, self._mpi.INT64_T])
        arrays = _arrays_for(header)
        for part in [part for array in arrays for part in _chunks(array)]:
            self._all.Recv([part, self._mpi.BYTE], source, _DATA)
        return arrays


def _chunks(array: NDArray[Any]) -> list[NDArray[np.uint8]]:
    """Return the bytes of an array in pieces whose lengths fit in 31 bits."""
    content = _as_bytes(array)
    return [content[start : start + _CHUNK] for start in range(0, content.size, _CHUNK)]
