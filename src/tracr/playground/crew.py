"""The workers, in two lanes.

Quick workers give a request half a second (`quick`). A request that is not done then starts again in the slow lane,
whose workers have a lower priority and the whole time limit. So do the next requests of its browser, until one of them
is quick. Programs that take long thus wait for each other, and not the quick ones for them.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from tracr.playground.limits import ServerLimits
from tracr.playground.queue import FairQueue, Job
from tracr.playground.replies import RefusedRequest, Reply
from tracr.playground.workers import WALL, WorkerDied, WorkerProcess

__all__ = ["Crew"]

WATCH = 0.25  # seconds between looks at the workers
TRIES = 3  # a worker can be killed from outside: its request is tried again


class Crew:
    """Worker processes that take requests from a queue."""

    def __init__(self, limits: ServerLimits, queue: FairQueue) -> None:
        self._limits, self._queue = limits, queue
        self._folder = tempfile.TemporaryDirectory(prefix="tracr-playground-", ignore_cleanup_errors=True)
        lanes = [False] * limits.workers + [True] * limits.slow_workers
        self._threads = ThreadPoolExecutor(len(lanes), thread_name_prefix="tracr-worker")
        self.workers = [WorkerProcess(limits, self._folder.name, slow) for slow in lanes]
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self.workers]
        self._tasks.append(asyncio.create_task(self._watch()))
        atexit.register(self._end)

    @property
    def alive(self) -> int:
        """How many quick workers run."""
        return sum(worker.alive for worker in self.workers if not worker.slow)

    async def _serve(self, worker: WorkerProcess) -> None:
        """Take requests for one worker."""
        loop = asyncio.get_running_loop()
        while True:
            job = await self._queue.take(worker.slow)
            start = time.monotonic()
            reply = await loop.run_in_executor(self._threads, self._answer, worker, job)
            self._queue.done(job, time.monotonic() - start)
            if reply is not None:
                job.finish(reply)
            elif not job.stale.is_set():
                self._queue.put_slow(job)

    def _answer(self, worker: WorkerProcess, job: Job) -> Reply | None:
        """The answer to a request, from a thread; `None` if it needs the slow lane, or nobody waits for it."""
        for _ in range(TRIES):
            if job.stale.is_set():
                return None
            try:
                reply = worker.answer(job.content, job.stale)
                return self._too_long() if reply is None and worker.slow else reply
            except WorkerDied:
                continue
            except Exception:  # no new process could be started
                traceback.print_exc(file=sys.stderr)
                return RefusedRequest("the server has no worker", status=503, hint="try again", retry_after=5).reply
        return RefusedRequest(
            "the compiler ended without an answer", hint="the program probably needs too much memory: shorten it"
        ).reply

    def _too_long(self) -> Reply:
        seconds = self._limits.seconds
        busy = f"{WALL * seconds:g} on a busy machine"
        return RefusedRequest(
            f"the program takes longer than {seconds:g} seconds ({busy}), the limit of this server",
            hint="use a smaller vocabulary, a shorter length or a lower level",
        ).reply

    async def _watch(self) -> None:
        """Replace workers that were killed; one that has a request replaces itself."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH)
            for worker in [one for one in self.workers if not one.alive]:
                await loop.run_in_executor(None, _revive, worker)

    async def stop(self) -> None:
        """End all workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end()
        self._threads.shutdown()
        self._folder.cleanup()
        atexit.unregister(self._end)

    def _end(self) -> None:
        for worker in self.workers:
            worker.end()


def _revive(worker: WorkerProcess) -> None:
    """Start a killed worker again. If the system starts no process now, it is tried again later."""
    try:
        worker.revive()
    except OSError:
        traceback.print_exc(file=sys.stderr)
