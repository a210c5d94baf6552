"""Ctrl-C and SIGTERM: they end a command, and leave the program around it as it was."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_CAN_REMIND = hasattr(signal, "setitimer")  # Windows cannot
_REMINDER = 0.1  # seconds after an interrupt that may not have been heard


def came_of_one(error: BaseException | None, outer: BaseException | None) -> bool:
    """Whether an interrupt led to this error; `outer` is what was handled before, which does not count."""
    while error is not None and error is not outer:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends the work as Ctrl-C does; neither disturbs the tidying up that this leads to.

    What is raised may get lost, in an import or in a library that is not written in Python: so it is raised again and
    again until somebody tidies up, by an alarm, unless the program has alarms of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread has handlers
        return
    outer, over = sys.exc_info()[1], False
    before: dict[signal.Signals, Any] = {}

    def interrupt(*_: object) -> None:
        if over:
            return
        if _CAN_REMIND:
            if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
                before[signal.SIGALRM] = signal.SIG_DFL
                signal.signal(signal.SIGALRM, interrupt)
            if signal.SIGALRM in before:
                signal.setitimer(signal.ITIMER_REAL, _REMINDER)
        if not came_of_one(sys.exc_info()[1], outer):
            raise KeyboardInterrupt

    def tell_unless_interrupted(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            told(lost)

    told, sys.unraisablehook = sys.unraisablehook, tell_unless_interrupted
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            # what a shell says is to be ignored, as for programs in the background, stays so; None is not Python's
            if handler not in (signal.SIG_IGN, None):
                before[number] = handler
                signal.signal(number, interrupt)
        yield
    finally:
        over = True
        if _CAN_REMIND and signal.SIGALRM in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = told
