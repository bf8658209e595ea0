"""Processes of this host with several threads each: an ``Executor`` like others.

If a process is lost, its jobs fail with BrokenExecutor, and it is started anew for the next job.
Processes are not forked, since CUDA does not survive that, and they end with the one that started
them, however it ends; SIGINT and SIGTERM are left to it.  It may itself be one of the workers.

``concurrent.futures.ProcessPoolExecutor`` and loky 3.7 were tried and cannot replace this: when one
process is killed, all calls fail and the executor takes no more; processes outlive the one that
started them by ten seconds and more; and neither has several threads in a process.
"""

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Unlike multiprocessing's, it does not import the user's script, which need not be made for that.
_PROGRAM = "import sys; from percolab.run import processes; processes.serve(sys.argv[1:])"
# Seconds that a process has to end by itself.
_PATIENCE = 2.0

# Kinds of messages of a thread: its call's result, its call's error, or progress.
_RETURNED, _RAISED, _REPORTED = range(3)


class This(Protocol):
    """How the process that starts others makes calls itself, and how these are stopped."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Hooks:
    """Functions that are called in each process; they and their arguments must be picklable.

    begin: first, with its number from 0 on and these arguments.  halt: by :meth:`Processes.stop`.
    leave: last, also when the process that started it was killed.  early: with its number, by a
    thread, while what ``begin`` needs is imported.
    """

    begin: Callable[..., None]
    halt: Callable[[], None] | None = None
    arguments: tuple[Any, ...] = ()
    leave: Callable[[], None] | None = None
    early: Callable[[int], None] | None = None


class Processes(Executor):
    """As many processes as ``processes``, with ``threads`` threads each.

    on_progress: called here, by threads of this process, with the progress that calls report.
    this: makes the calls of this process, which is then number 0, without hooks; by default this
    process makes none.
    """

    def __init__(
        self,
        processes: int,
        threads: int,
        hooks: Hooks,
        *,
        on_progress: Callable[[Any], None] | None = None,
        this: This | None = None,
    ) -> None:
        self._own = threading.local()
        places: SimpleQueue[tuple[_PoolProcess | _ThisProcess, int]] = SimpleQueue()
        numbers = range(0 if this is None else 1, processes)
        self._processes = [_PoolProcess(threads, hooks, n, on_progress) for n in numbers]
        # Places of processes that must be started come first.
        self._all: list[_PoolProcess | _ThisProcess] = [*self._processes]
        if this is not None:
            self._all.append(_ThisProcess(this, on_progress))
        for thread in range(threads):
            for process in self._all:
                places.put((process, thread))

        # Whether a process gets calls once it is ready, or starts with its first one.
        self._is_ready_first = False
        self._unanswered: set[Future[Any]] = set()

        def take_place() -> None:
            process, thread = self._own.place = places.get()
            if self._is_ready_first:
                process.be_ready(thread)

        # Each of these waits for the answers of one thread of one process.
        self._waiting = ThreadPoolExecutor(
            processes * threads, thread_name_prefix="percolab-process", initializer=take_place
        )

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        future: Future[_T] = self._waiting.submit(self._ask, function, args, kwargs)
        self._unanswered.add(future)
        future.add_done_callback(self._unanswered.discard)
        return future

    def start(self) -> None:
        """Start all processes now, not with their first calls; return before they are ready.

        A process gets no call before it is ready: others make the calls that it would delay.
        """
        self._is_ready_first = True
        for _ in self._processes:
            # The first places are one thread of each process, so each of these calls starts one.
            self._waiting.submit(_nothing)

    def _ask(self, *question: Any) -> Any:
        process, thread = self._own.place
        return process.ask(thread, question)

    def stop(self) -> None:
        for process in self._all:
            process.stop()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their current calls, those that are still starting at once."""
        if self._is_ready_first and all(future.done() for future in list(self._unanswered)):
            for process in self._processes:
                process.give_up_starting()
        self._waiting.shutdown(wait=wait, cancel_futures=cancel_futures)
        # They end in parallel.
        for process in self._processes:
            process.let_go()
        for process in self._processes:
            process.end()


def _nothing() -> None:
    """Do nothing, as the call that starts a process."""


class _ThisProcess:
    """The process that starts the others, as one of them: threads here make calls themselves."""

    def __init__(self, this: This, on_progress: Callable[[Any], None] | None) -> None:
        self._this, self._on_progress = this, on_progress

    def ask(self, thread: int, question: Any) -> Any:
        _THREAD.report = self._on_progress
        function, args, kwargs = question
        return self._this.call(function, *args, **kwargs)

    def be_ready(self, thread: int) -> None: ...

    def stop(self) -> None:
        self._this.stop()


class _PoolProcess:
    """One process, started with its first call and again after it was lost."""

    def __init__(
        self, threads: int, hooks: Hooks, number: int, on_progress: Callable[[Any], None] | None
    ) -> None:
        self._threads, self._hooks, self._number = threads, hooks, number
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Connection | None = None
        self._lines: list[Connection] = []
        self._is_there = self._is_given_up = False

    def be_ready(self, thread: int) -> None:
        """Start the process and wait until it is ready; if it fails, calls raise the error."""
        with suppress(BrokenExecutor, OSError):
            self.ask(thread, (_nothing, (), {}))

    def give_up_starting(self) -> None:
        """End the process if it is not ready yet, and do not start it again."""
        with self._lock:
            self._is_given_up = not self._is_there
            if self._process is not None and self._is_given_up:
                self._process.kill()

    def ask(self, thread: int, question: Any) -> Any:
        """Return the answer of a thread of the process; BrokenExecutor if the process is lost."""
        with self._lock:
            if self._is_given_up:
                raise BrokenExecutor("a process was ended before it was ready")
            if self._control is None:
                self._start()
            line, process = self._lines[thread], self._process
        assert process is not None
        try:
            line.send(question)
            kind, value = line.recv()
            self._is_there = True
            while kind == _REPORTED:
                self._take(value, process)
                kind, value = line.recv()
        except (EOFError, OSError) as error:
            code = self._lose(process)
            raise BrokenExecutor(f"process {process.pid} ended ({code})") from error
        if kind == _RETURNED:
            return value
        raise value

    def _take(self, value: Any, process: subprocess.Popen[bytes]) -> None:
        """Pass on the progress of a call; if that fails, give up the process and its answer."""
        try:
            if self._on_progress is not None:
                self._on_progress(value)
        except BaseException:
            self._lose(process)
            raise

    def _lose(self, process: subprocess.Popen[bytes]) -> int:
        """Close the lines to a process that is lost, and return its exit code."""
        with self._lock:
            if process is self._process:
                self._leave()
        return process.wait()

    def _start(self) -> None:
        self._is_there = False
        ours, theirs = zip(*(Pipe() for _ in range(1 + self._threads)))
        handles = [end.fileno() for end in theirs]
        # A child inherits the signals that this thread blocks.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *map(str, handles)],
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )
        # The only other ends are in the child, so these lines close when it ends.
        for end in theirs:
            end.close()
        self._control, *self._lines = ours
        # If it is lost already, so are its lines.
        with suppress(OSError):
            # The second message imports what it names, after the first was taken.
            self._control.send((self._hooks.early, self._number))
            self._control.send((self._hooks, self._number))

    def _leave(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def stop(self) -> None:
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.send("stop")

    def let_go(self) -> None:
        with self._lock:
            self._leave()

    def end(self) -> None:
        self.let_go()
        with self._lock:
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_PATIENCE)
                self._process.kill()
                self._process.wait()
                for line in self._lines:
                    line.close()


def serve(handles: list[str]) -> None:
    """Run as one of the processes until its control, the first of these pipes, is closed."""
    ends: list[Connection] = [Connection(int(handle)) for handle in handles]
    control, *lines = ends
    leave = None
    with suppress(EOFError, OSError):
        early, number = control.recv()
        if early is not None:
            threading.Thread(target=early, args=(number,), daemon=True).start()
        hooks, _ = control.recv()
        leave = hooks.leave
        hooks.begin(number, *hooks.arguments)
        for line in lines:
            threading.Thread(target=_answer, args=(line,), daemon=True).start()
        while control.recv() == "stop":
            if hooks.halt is not None:
                hooks.halt()
    # The caller is gone, so there is no orderly end.
    if leave is not None:
        leave()
    os._exit(0)


#: What takes the progress of calls by a thread, if anything does.
_THREAD = threading.local()


def report_progress(value: Any) -> None:
    """Report the progress of this thread's call to the process that made it, if any."""
    report = getattr(_THREAD, "report", None)
    if report is not None:
        report(value)


def _answer(line: Connection) -> None:
    """Answer the questions of one line, one after the other."""
    _THREAD.report = lambda value: line.send((_REPORTED, value))
    with suppress(EOFError, OSError):
        while True:
            function, args, kwargs = line.recv()
            try:
                answer = _RETURNED, function(*args, **kwargs)
            except BaseException as error:
                error.add_note("".join(traceback.format_exception(error)))
                answer = _RAISED, error
            try:
                line.send(answer)
            except OSError:
                raise
            except Exception as error:  # what cannot be sent raises many kinds of errors
                line.send((_RAISED, RuntimeError(f"its answer cannot be sent: {error}")))
