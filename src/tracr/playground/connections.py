"""Closes connections that take a place and send nothing, or read nothing.

uvicorn has no time limit for a client that never completes the headers of a request. Looked at every second, a
connection without a complete request is closed after `idle` seconds, and one whose client does not read its answer
after `unread` seconds. If an address has more than `connections`, those without a request are closed, the oldest first.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from tracr.playground.limits import ServerLimits

__all__ = ["ConnectionSweeper"]


class ConnectionSweeper:
    """Remembers since when each connection (uvicorn's `H11Protocol`) has no complete request."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def sweep(self, connections: Iterable[Any]) -> None:
        """Look at all connections, and close some."""
        now = self._clock()
        idle: dict[str, list[tuple[float, int, Any]]] = defaultdict(list)
        often: dict[str, int] = defaultdict(int)
        for connection in list(connections):
            address = (connection.client or ("",))[0]
            often[address] += 1
            if _working(connection):
                self._since.pop(connection, None)
                continue
            since = self._since.setdefault(connection, now)
            idle[address].append((since, len(idle[address]), connection))
            unread = connection.transport.get_write_buffer_size() > 0
            if now - since > (self._limits.unread if unread else self._limits.idle):
                connection.transport.abort()
                often[address] -= 1
        for address, found in idle.items():
            open_ones = [one for one in sorted(found) if not one[2].transport.is_closing()]
            for _, _, connection in open_ones[: max(0, often[address] - self._limits.connections)]:
                connection.transport.abort()


def _working(connection: Any) -> bool:
    """Whether a request of the connection is being answered."""
    return connection.cycle is not None and not connection.cycle.response_complete
