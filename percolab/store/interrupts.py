"""Ctrl-C, and SIGTERM, which batch systems send: finished blocks are stored first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def choose_exit_code(error: BaseException | None) -> int:
    """Return a shell's exit code for an error caused by SIGTERM, 143, or by Ctrl-C, 130.

    Libraries wrap a KeyboardInterrupt in other errors, so causes are followed.
    """
    while error is not None:
        if isinstance(error, Terminated):
            return 128 + signal.SIGTERM
        error = error.__cause__
    return 128 + signal.SIGINT


#: The exception of the last signal while handle_signals is in force; None before the first one.
_raised: type[KeyboardInterrupt] | None = None


def _interrupt(number: int, _: object) -> None:
    global _raised
    _raised = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    raise _raised


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def handle_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT, Terminated on SIGTERM, unless others handle them."""
    global _raised
    if not _is_main_thread():
        yield
        return
    defaults: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    ours = [number for number, default in defaults.items() if signal.getsignal(number) is default]
    for number in ours:
        signal.signal(number, _interrupt)
    print_ignored, sys.unraisablehook = sys.unraisablehook, _hide_interrupts
    try:
        yield
    finally:
        _raised = None
        sys.unraisablehook = print_ignored
        for number in ours:
            signal.signal(number, defaults[number])


def _hide_interrupts(ignored: sys.UnraisableHookArgs) -> None:
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)


def raise_lost_interrupt() -> None:
    """Raise an interrupt again that Python ignored, in __del__ or a weak reference's callback."""
    if _raised is not None:
        raise _raised


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay SIGINT and SIGTERM, in the main thread, until the end of this context."""
    if not _is_main_thread():
        yield
        return
    arrived: list[tuple[int, Any]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    delayed = {number: each for number, each in handlers.items() if callable(each)}
    for number in delayed:
        signal.signal(number, lambda *signalled: arrived.append(signalled))
    try:
        yield
    finally:
        for number, handler in delayed.items():
            signal.signal(number, handler)
        for sent, frame in arrived[:1]:
            delayed[signal.Signals(sent)](sent, frame)


@contextmanager
def default_signals() -> Iterator[None]:
    """Let SIGTERM end the process at once, while a library runs that may not return to Python.

    Python calls a handler only when it has control again.  Another handler than that of
    :func:`handle_signals` is left in place.
    """
    if signal.getsignal(signal.SIGTERM) is not _interrupt or not _is_main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, _interrupt)
