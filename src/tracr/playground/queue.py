"""The requests that wait for a worker.

There are two lanes, for quick and for slow requests (`crew.py`). In each, the browser that used the workers least,
lately, goes first; of equal ones, the one that waits longest. A newer request of the same tab and task takes the place
of the older one.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tracr.playground.limits import ServerLimits
from tracr.playground.rate import Browser
from tracr.playground.replies import RefusedRequest, Reply

__all__ = ["FairQueue", "Job"]

HALF_LIFE = 30.0  # seconds after which the time that a browser used counts half
MOST_KNOWN = 1_000  # browsers whose use is remembered
STALE = RefusedRequest("a newer request of the same tab came", status=409, hint="wait for the answer to the newer one")


@dataclass(eq=False)
class Job:
    """A request on its way to a worker and back.

    `task` is its name, `content` what the worker gets. A newer request of the same tab and task makes it stale, unless
    `lasting`. `slow`: it needs the slow lane. `outdated`: a newer one came while it ran. `stale` tells the worker that
    nobody waits for the answer.
    """

    browser: Browser
    task: str
    content: bytes
    reply: asyncio.Future[Reply]
    lasting: bool = False
    slow: bool = False
    outdated: bool = False
    stale: threading.Event = field(default_factory=threading.Event)

    def replaced_by(self, newer: Job) -> bool:
        """Whether a newer request of the same browser makes this one stale."""
        return bool(self.browser.tab) and self.task == newer.task and not self.lasting

    def finish(self, reply: Reply) -> None:
        """Give the answer, unless there is one already."""
        if not self.reply.done():
            self.reply.set_result(reply)

    def drop(self, reply: Reply) -> None:
        """Answer without waiting for the worker."""
        self.stale.set()
        self.finish(reply)


@dataclass(eq=False)
class Usage:
    """What a browser waits for and has used; `slow`: its last request was slow, the next one probably too."""

    waiting: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    used: float = 0.0
    since: float = 0.0
    slow: bool = False

    def recent(self, now: float) -> float:
        """The seconds used; half of them after `HALF_LIFE`, and so on."""
        return self.used * math.exp2((self.since - now) / HALF_LIFE)


class FairQueue:
    """Waiting requests by browser."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._browsers: dict[Browser, Usage] = {}
        self._arrival: dict[Job, int] = {}
        self._arrived = 0
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._arrival)

    @property
    def running(self) -> int:
        """How many requests were taken and are not finished."""
        return sum(len(usage.running) for usage in self._browsers.values())

    def put(self, job: Job) -> None:
        """Add a request, or refuse it with the status 503 if too many wait."""
        usage = self._browsers.setdefault(job.browser, Usage())
        place = None
        for older in [one for one in (*usage.waiting, *usage.running) if one.replaced_by(job)]:
            older.outdated = True
            if older in self._arrival or older.slow:  # a quick one that runs may finish
                place = self._arrival.get(older)
                self.discard(older)
                older.drop(STALE.reply)
        address = sum(job.browser.address == other.browser.address for other in self._arrival)
        if self.waiting >= self._limits.waiting or address >= self._limits.waiting_of_address:
            raise RefusedRequest("the server is busy", status=503, hint="it answers again in a moment", retry_after=2)
        self._arrived += 1
        self._add(job, self._arrived if place is None else place)

    def put_slow(self, job: Job) -> None:
        """Put a request that was taken and not finished into the slow lane, unless a newer one came meanwhile."""
        self._browsers.setdefault(job.browser, Usage()).slow = job.slow = True
        if job.outdated:
            job.drop(STALE.reply)
        else:
            self._add(job, 0)

    def _add(self, job: Job, place: int) -> None:
        self._arrival[job] = place
        self._browsers.setdefault(job.browser, Usage()).waiting.append(job)
        self._wake()

    def _wake(self) -> None:
        """Let all that wait in `take` look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def discard(self, job: Job) -> None:
        """Remove a request that waits."""
        if job in self._arrival:
            del self._arrival[job]
            self._browsers[job.browser].waiting.remove(job)

    async def take(self, slow: bool) -> Job:
        """The next request of a lane, when there is one."""
        while (job := self._next(slow)) is None:
            await self._changed.wait()
        usage = self._browsers[job.browser]
        self.discard(job)
        usage.running.append(job)
        return job

    def done(self, job: Job, seconds: float) -> None:
        """Count the time that a taken request used."""
        now = self._clock()
        usage = self._browsers[job.browser]
        usage.running.remove(job)
        usage.used, usage.since = usage.recent(now) + seconds, now
        usage.slow = usage.slow and seconds > self._limits.quick
        self._forget()
        self._wake()

    def _next(self, slow: bool) -> Job | None:
        """The request of the browser that used least; of a browser, the first."""
        now, most = self._clock(), self._limits.running_of_browser
        ready: list[tuple[float, int, Job]] = []
        for usage in self._browsers.values():
            used = round(usage.recent(now), 2)  # what was used long ago does not count
            job = usage.waiting[0] if usage.waiting and len(usage.running) < most else None
            if job is not None and (job.slow or usage.slow) == slow:
                ready.append((used, self._arrival[job], job))
        return min(ready, key=lambda one: one[:2])[2] if ready else None

    def _forget(self) -> None:
        """Forget the browsers that neither wait nor run, if there are too many."""
        if len(self._browsers) > MOST_KNOWN:
            self._browsers = {who: usage for who, usage in self._browsers.items() if usage.waiting or usage.running}
