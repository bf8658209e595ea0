"""SIGTERM, which batch systems send, handled like Ctrl-C: what is finished is stored first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def choose_exit_code(error: BaseException | None) -> int:
    """Return a shell's exit code for an error caused by SIGTERM, 143, or by Ctrl-C, 130.

    Libraries wrap a KeyboardInterrupt in errors of their own, so causes are followed.
    """
    while error is not None:
        if isinstance(error, Terminated):
            return 128 + signal.SIGTERM
        error = error.__cause__
    return 128 + signal.SIGINT


def _terminate(*_: object) -> None:
    raise Terminated


@contextmanager
def sigterm_like_ctrl_c() -> Iterator[None]:
    """Raise Terminated in the main thread on SIGTERM, unless somebody else handles it already."""

    free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def default_signals() -> Iterator[None]:
    """Let SIGTERM end the process at once, while a library runs that may not return to Python.

    Python calls a handler only when it has control again.  Another handler than that of
    :func:`sigterm_like_ctrl_c` is left in place.
    """
    is_ours = signal.getsignal(signal.SIGTERM) is _terminate
    if not is_ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, _terminate)
