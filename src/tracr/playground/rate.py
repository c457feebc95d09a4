"""How many requests a browser may send: token buckets, one for each browser and a larger one for each address."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from tracr.playground.limits import ServerLimits
from tracr.playground.replies import RefusedRequest

__all__ = ["Browser", "Buckets", "RequestRate"]

MOST_KNOWN = 10_000  # buckets that are kept; the ones used longest ago are forgotten


@dataclass(frozen=True)
class Browser:
    """Who sends a request: the address, and what tells its browsers apart.

    `tab` is the id that the page makes for each of its tabs. Clients without one are told apart by their connection.
    It is empty if neither is known; then only the limits of the address hold.
    """

    address: str
    tab: str
    connection: int = 0

    @property
    def known(self) -> bool:
        """Whether it can be told apart from others of its address."""
        return bool(self.tab or self.connection)


class Buckets:
    """A bucket for each key: it holds up to `burst` requests, and `rate` more come every second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, key: Hashable) -> float:
        """Seconds until the bucket has a request; 0 if it has one."""
        level = self._level(key)
        return 0.0 if level >= 1 else (1 - level) / self._rate

    def take(self, key: Hashable) -> None:
        """Take one request."""
        self._levels[key] = self._level(key) - 1, self._clock()
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_KNOWN:
            self._levels.popitem(last=False)

    def _level(self, key: Hashable) -> float:
        level, since = self._levels.get(key, (float(self._burst), 0.0))
        return min(float(self._burst), level + (self._clock() - since) * self._rate)


class RequestRate:
    """Refuses requests over the rate of their browser or address."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._browsers = Buckets(limits.rate, limits.burst, clock)
        self._addresses = Buckets(limits.address_rate, limits.address_burst, clock)

    def admit(self, browser: Browser) -> None:
        """Count a request, or refuse it with the status 429; a refused request is not counted."""
        wait = self._addresses.wait(browser.address)
        if browser.known:
            wait = max(wait, self._browsers.wait(browser))
        if wait > 0:
            raise RefusedRequest("too many requests", status=429, hint="wait a moment", retry_after=math.ceil(wait))
        self._addresses.take(browser.address)
        if browser.known:
            self._browsers.take(browser)
