"""``--executor mpi``: the ranks of one ``mpiexec`` as workers, by mpi4py.futures.

All ranks call the same command.  Rank 0 runs it; the others wait for jobs until it ends.  With
``--split lattice`` all ranks, rank 0 among them, measure every sample together.  If a rank is lost,
MPI ends all of them, and the same command continues from the last save.
"""

import importlib.util
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from percolab.errors import InputError
from percolab.parts.ranks import follow
from percolab.parts.transport import Mpi
from percolab.run.calls import be_worker
from percolab.run.executors import CountedWorkers, RankExecutor, cores_here
from percolab.run.saving import job_from_record
from percolab.store.interrupts import choose_exit_code

# Seconds between two checks of a rank that waits for the end.
_PATIENCE = 0.01


@contextmanager
def mpi_executor() -> Iterator[Executor | None]:
    """Yield the executor on rank 0; None on the others, once their work is done.

    Worker k of a host drives the k-th of the GPUs.  InputError: there is no MPI, or one rank alone.
    """
    mpi, futures = _mpi()
    world = _worker_communicator(mpi)
    is_parent = world.Get_rank() == 0
    own = number_on_host(world, mpi.COMM_TYPE_SHARED)
    if not is_parent:
        _leave_signals_to_rank_0()
        be_worker(own, ("cpu",))
    with futures.MPICommExecutor(world, root=0, main=False) as executor:
        yield executor


@contextmanager
def mpi_workers() -> Iterator[CountedWorkers | None]:
    """Yield on rank 0 the workers that :func:`mpi_executor` has; None on the others, at the end.

    Until then the other ranks leave all cores to rank 0.  InputError: as for mpi_executor.
    """
    mpi, _ = _mpi()
    world = _worker_communicator(mpi)
    here, at_once = ranks_at_once(world, mpi.COMM_TYPE_SHARED, first=1)
    if world.Get_rank():
        _leave_signals_to_rank_0()
    try:
        if world.Get_rank() == 0:
            yield CountedWorkers(world.Get_size() - 1, here, at_once)
    finally:
        # A rank that waits for the others inside of MPI would occupy a core.
        is_end = world.Ibarrier()
        while not is_end.Test():
            time.sleep(_PATIENCE)
    if world.Get_rank():
        yield None


@contextmanager
def mpi_ranks() -> Iterator[Executor | None]:
    """Yield the executor for ``--split lattice`` on rank 0; None on the others, after their work.

    An error of any rank ends all of them, with one line and an exit code.  InputError: there is no
    MPI.
    """
    mpi, _ = _mpi()
    transport = Mpi(mpi)
    if transport.rank:
        _leave_signals_to_rank_0()
        try:
            follow(transport, job_from_record)
        except BaseException as error:
            transport.abort(*_describe_end(transport.rank, error))
        yield None
        return
    executor = RankExecutor(transport, "mpi")
    try:
        yield executor
    except BaseException as error:
        if executor.leader.is_busy:
            transport.abort(*_describe_end(0, error))
        raise
    finally:
        executor.shutdown()
        executor.leader.end()


def _describe_end(rank: int, error: BaseException) -> tuple[str, int]:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return "", error.code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", choose_exit_code(error)
    is_input = isinstance(error, InputError)
    line = " ".join(f"{'' if is_input else f'{type(error).__name__}: '}{error}".split())
    return f"percolab: error: rank {rank}: {line}", 2 if is_input else 1


def _mpi() -> tuple[Any, Any]:
    if importlib.util.find_spec("mpi4py") is None:
        raise InputError("--executor mpi: mpi4py is not installed (pip install 'percolab[mpi]')")
    try:
        from mpi4py import MPI, futures
    except (ImportError, RuntimeError, OSError) as error:
        line = str(error).strip().partition("\n")[0]
        raise InputError(f"--executor mpi: no MPI library can be used ({line})") from error
    return MPI, futures


def _leave_signals_to_rank_0() -> None:
    """Ignore Ctrl-C and SIGTERM, which all ranks get: rank 0 stores and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _worker_communicator(mpi: Any) -> Any:
    """Return the communicator of all ranks; InputError if there is one alone."""
    world = mpi.COMM_WORLD
    if world.Get_size() < 2:
        raise InputError(
            "--executor mpi: there is only one process; start more, as in mpiexec -n 9 percolab "
            "sweep ... --executor mpi (8 measure, one writes)"
        )
    return world


def number_on_host(world: Any, kind: int) -> int:
    """Return the number of a rank among the workers of its host, from 0 on; called by all ranks."""
    host = world.Split_type(kind)
    ranks = host.allgather(world.Get_rank())
    host.Free()
    return sum(0 < rank < world.Get_rank() for rank in ranks)


def ranks_at_once(world: Any, kind: int, first: int = 0) -> tuple[int, int]:
    """Return the number of ranks on this host, and of all with a core each; called by all ranks."""
    host = world.Split_type(kind)
    members = host.allgather((world.Get_rank(), cores_here()))
    host.Free()
    ranks = [rank for rank, _ in members]
    here = sum(rank >= first for rank in ranks)
    cores: set[int] = set().union(*(own for _, own in members))
    # One rank of each host counts for the host.
    at_once = min(here, len(cores)) if world.Get_rank() == min(ranks) else 0
    return here, sum(world.allgather(at_once))
