"""Ctrl-C and SIGTERM end a command; the handlers of the surrounding program are restored afterwards."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_RETRY = 0.1  # seconds until an interrupt is raised again


def caused_by_interrupt(error: BaseException | None, outer: BaseException | None) -> bool:
    """Whether an interrupt led to this error; `outer` is an exception that was being handled before the command."""
    while error is not None and error is not outer:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt as Ctrl-C does, and neither of them disturb the cleanup that follows.

    pyarrow, imports and destructors can swallow the exception.  So an alarm raises it again until the cleanup starts,
    unless the program uses alarms itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set handlers
        return
    outer, finished = sys.exc_info()[1], False
    previous: dict[signal.Signals, Any] = {}

    def interrupt(*_: object) -> None:
        if finished:
            return
        if hasattr(signal, "setitimer"):  # Windows does not have it
            if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
                previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, interrupt)
            if signal.SIGALRM in previous:
                signal.setitimer(signal.ITIMER_REAL, _RETRY)
        if not caused_by_interrupt(sys.exc_info()[1], outer):
            raise KeyboardInterrupt

    def report_others(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            hook(unraisable)

    hook, sys.unraisablehook = sys.unraisablehook, report_others
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            # signals that a shell ignores for background jobs stay ignored; None stands for a handler outside Python
            if handler not in (signal.SIG_IGN, None):
                previous[number] = handler
                signal.signal(number, interrupt)
        yield
    finally:
        finished = True
        if hasattr(signal, "setitimer") and signal.SIGALRM in previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
