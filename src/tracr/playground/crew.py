"""The workers, and the order in which they take requests.

`workers` requests are worked on at the same time. One that is not done after a second (`quick`) no longer counts: its
worker gets a lower priority, and another worker takes the next request. Programs that take long thus slow each other,
and hardly the quick ones.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from tracr.playground.limits import ServerLimits
from tracr.playground.queue import FairQueue, Job
from tracr.playground.replies import RefusedRequest, Reply
from tracr.playground.workers import WorkerDied, WorkerProcess

__all__ = ["Crew"]

WATCH = 0.25  # seconds between looks at idle workers
TRIES = 2  # a worker can be killed from outside: its request is tried again


class Crew:
    """Worker processes that take requests from a queue."""

    def __init__(self, limits: ServerLimits, queue: FairQueue) -> None:
        self._limits, self._queue = limits, queue
        size = limits.workers + limits.slow_workers
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="tracr-worker")
        self.workers = [WorkerProcess(limits) for _ in range(size)]
        self._quick = asyncio.Semaphore(limits.workers)
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self.workers]
        self._tasks.append(asyncio.create_task(self._watch()))
        atexit.register(self._kill)

    @property
    def alive(self) -> int:
        """How many workers run, not counting the spare ones for slow requests."""
        return min(self._limits.workers, sum(worker.alive for worker in self.workers))

    async def _serve(self, worker: WorkerProcess) -> None:
        """Take requests for one worker."""
        loop = asyncio.get_running_loop()
        while True:
            async with self._quick:
                job = await self._queue.take()
                start = time.monotonic()
                answering = loop.run_in_executor(self._threads, self._answer, worker, job)
                finished, _ = await asyncio.wait({answering}, timeout=self._limits.quick)
            if not finished:
                worker.slow_down()
            reply = await answering  # never raises
            self._queue.done(job, time.monotonic() - start)
            job.finish(reply)
            if not finished:
                await loop.run_in_executor(self._threads, _restart, worker)

    def _answer(self, worker: WorkerProcess, job: Job) -> Reply:
        """The answer to a request, from a thread."""
        for _ in range(TRIES):
            if job.stale.is_set():
                break
            try:
                return worker.answer(job.content, job.stale) or self._too_long()
            except WorkerDied:
                continue
            except Exception:  # no new process could be started
                traceback.print_exc(file=sys.stderr)
                return RefusedRequest(500, "the server has no worker", hint="try again", retry_after=5).reply
        return RefusedRequest(
            422, "the compiler ended without an answer", hint="the program probably needs too much memory: shorten it"
        ).reply

    def _too_long(self) -> Reply:
        seconds = self._limits.seconds
        return RefusedRequest(
            422,
            f"the program takes longer than {seconds:g} seconds, the limit of this server",
            hint="use a smaller vocabulary, a shorter length or a lower level",
        ).reply

    async def _watch(self) -> None:
        """Replace workers that were killed; one that has a request replaces itself."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH)
            for worker in [one for one in self.workers if not one.alive]:
                await loop.run_in_executor(None, _restart, worker, False)

    async def stop(self) -> None:
        """End all workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._kill()
        self._threads.shutdown()
        atexit.unregister(self._kill)

    def _kill(self) -> None:
        for worker in self.workers:
            worker.kill()


def _restart(worker: WorkerProcess, always: bool = True) -> None:
    """Replace a worker: always, or if it was killed. If the system starts no process, it is tried again later."""
    try:
        if always:
            worker.replace()
        else:
            worker.revive()
    except OSError:
        traceback.print_exc(file=sys.stderr)
