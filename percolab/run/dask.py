"""``--executor dask:ADDRESS``: the workers of a running Dask scheduler."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, ParamSpec, TypeVar

from percolab.errors import InputError

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Seconds that a scheduler has to answer.
_PATIENCE = 10


class DaskExecutor(Executor):
    """The executor of a Dask client; ``gives_up``: what it raises where workers are lost for good.

    Dask itself does a job again when its worker is lost, three times unless its
    ``allowed-failures`` says otherwise.
    """

    def __init__(self, client: Any) -> None:
        from distributed import KilledWorker

        # Equal calls are calls, too.
        self._executor = client.get_executor(pure=False)
        self.num_workers = sum(client.ncores().values())
        self.gives_up = (KilledWorker,)

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Have a function called by a worker."""
        future: Future[_T] = self._executor.submit(function, *args, **kwargs)
        return future


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yield the workers of a scheduler, as in ``tcp://host:8786``.

    InputError: there is no scheduler, it has no workers, or one of them has another percolab.
    """
    option = f"--executor dask:{address}"
    if importlib.util.find_spec("distributed") is None:
        raise InputError(f"{option}: distributed is not installed (pip install 'percolab[dask]')")
    from distributed import Client

    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"{option}: no scheduler answers there") from error
    with client:
        _check_workers(client, option)
        yield DaskExecutor(client)


def _check_workers(client: Any, option: str) -> None:
    """Raise InputError unless there are workers, all of this version of percolab."""
    if not client.ncores():
        raise InputError(f"{option}: the scheduler has no workers")
    own = version("percolab")
    for worker, found in client.run(version, "percolab", on_error="return").items():
        if found != own:
            there = f"percolab {found}" if isinstance(found, str) else "no percolab"
            raise InputError(f"{option}: {worker} has {there}, not {own} as here")
