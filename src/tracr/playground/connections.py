"""Closes connections that take a place and send nothing, or read nothing.

uvicorn has no time limit for a client that never completes the headers of a request. Looked at every second, a
connection without a complete request is closed after `idle` seconds, and one whose client does not read its answer
after `unread` seconds, also if it has sent more requests, whose answers wait until it reads. If an address has more
than `connections`, those without a request are closed, the oldest first.
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
    """Remembers since when each connection (uvicorn's `H11Protocol`) has no complete request, or an unread answer."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._since: WeakKeyDictionary[Any, tuple[bool, float]] = WeakKeyDictionary()

    def sweep(self, connections: Iterable[Any]) -> None:
        """Look at all connections, and close some."""
        now = self._clock()
        often: dict[str, int] = defaultdict(int)
        idle: dict[str, list[tuple[float, Any]]] = defaultdict(list)
        for connection in [one for one in connections if not one.transport.is_closing()]:
            address = (connection.client or ("",))[0]
            often[address] += 1
            unread = connection.transport.get_write_buffer_size() > 0
            if _working(connection) and not unread:
                self._since.pop(connection, None)
                continue
            if connection not in self._since or self._since[connection][0] != unread:
                self._since[connection] = unread, now
            idle[address].append((self._since[connection][1], connection))
        for address, found in idle.items():
            excess = often[address] - self._limits.connections
            for place, (since, connection) in enumerate(sorted(found, key=lambda one: one[0])):
                unread, _ = self._since[connection]
                if place < excess or now - since > (self._limits.unread if unread else self._limits.idle):
                    connection.transport.abort()


def _working(connection: Any) -> bool:
    """Whether a request of the connection is being answered."""
    return connection.cycle is not None and not connection.cycle.response_complete
