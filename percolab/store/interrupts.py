"""SIGTERM, as batch systems send it, heard like Ctrl-C: what is finished is stored first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def exit_code_of(error: BaseException | None) -> int:
    """Return a shell's exit code for what an error goes back to: 143 for SIGTERM, 130 for Ctrl-C.

    Libraries wrap a KeyboardInterrupt in errors of their own, hence the look at the causes.
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
    """Let SIGTERM end the process at once while a library may not return to Python to hear it.

    Only where SIGTERM is heard by :func:`sigterm_like_ctrl_c`.
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
