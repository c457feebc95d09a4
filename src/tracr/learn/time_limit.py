"""A time limit for a block of code."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Clock", "TimeIsUp", "time_limit"]


class TimeIsUp(BaseException):
    """The block takes longer than it may.

    It is not an `Exception`, because handlers of a program's errors must not catch it.
    """


@dataclass(frozen=True)
class Clock:
    """The end of the time, on the clock of `time.monotonic`."""

    end: float

    def look(self, *_: object) -> None:
        """Raise `TimeIsUp` if it is."""
        if time.monotonic() > self.end:
            raise TimeIsUp


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[Clock]:
    """Raise `TimeIsUp` inside the block when its time is up.

    In the main thread of a system with interval timers (not Windows), a signal ends any Python code, unless the process
    has set such a timer already. Elsewhere the block ends when it looks at the clock.

    >>> with contextlib.suppress(TimeIsUp), time_limit(0.01) as clock:
    ...     while True:
    ...         clock.look()
    """
    clock = Clock(time.monotonic() + seconds)
    timed = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
    )
    if not timed:
        yield clock
        return

    def ring(*_: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield clock
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # also if the signal comes just now
            signal.signal(signal.SIGALRM, before)
