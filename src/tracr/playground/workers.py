"""One worker process: it does one request after the other, within limits on time and memory.

Requests and answers are bytes, JSON in front; nothing is unpickled. Workers are forked from a process that has imported
everything already (multiprocessing's fork server), so that a new one is ready in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from tracr.errors import TracrError
from tracr.playground.limits import ServerLimits
from tracr.playground.replies import Reply
from tracr.workers import end_with_parent

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

__all__ = ["WorkerDied", "WorkerProcess", "prepare"]

WARM = "tracr.playground.warm"
POLL = 0.02  # seconds between looks at a worker that runs a request nobody waits for
PATIENCE = 0.5  # a request nobody waits for may finish within this time: killing a worker costs more
NICE = 10  # what the slow lane adds to its priority: it gets a tenth of the time of the others
WALL = 3  # a request may take this many times its limit by the clock, if other programs keep the processors busy
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerDied(Exception):
    """The worker ended without an answer."""


def prepare() -> None:
    """Set up the process from which workers are forked. Call it before the first worker is made."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise TracrError(
            f"the playground cannot limit the memory of programs on {sys.platform}",
            hint="run it on Linux or macOS, in WSL or in a container",
        )
    os.environ.update(ONE_THREAD)
    multiprocessing.set_forkserver_preload([WARM])


class WorkerProcess:
    """A process that answers requests, one at a time.

    Args:
        limits: the limits of the server.
        folder: where it gets a folder for temporary files.
        slow: whether it is for slow requests, with a lower priority and more time.
    """

    def __init__(self, limits: ServerLimits, folder: str, slow: bool) -> None:
        self._limits, self._parent, self.slow = limits, folder, slow
        self._answered = 0
        self._ended = False
        self._lock = threading.RLock()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe()
        self._folder = tempfile.mkdtemp(dir=self._parent)
        self._process: ForkServerProcess = context.Process(
            target=work,
            args=(theirs, self._limits, self._folder, NICE if self.slow else 0),
            name="tracr-worker",
            daemon=True,
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs. (`is_alive` asks the process that forked it, which may itself be gone.)"""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def replace(self) -> None:
        """Kill the process and start another."""
        with self._lock:
            self._kill()
            self._answered = 0
            if not self._ended:
                self._start()

    def revive(self) -> None:
        """Start another process if this one was killed."""
        with self._lock:
            if not self.alive:
                self.replace()

    def end(self) -> None:
        """Kill the process, and start no other; the thread in `answer` gets a `WorkerDied`."""
        self._ended = True
        self._kill()

    def _kill(self) -> None:
        """Kill the process, and delete its temporary files."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.join(1)
        shutil.rmtree(self._folder, ignore_errors=True)

    def answer(self, task: bytes, stale: threading.Event) -> Reply | None:
        """The answer to a request; `None` if it took longer than this lane allows, or nobody waits for it.

        Raises `WorkerDied` if the process ended. After either the process is another one.
        """
        with self._lock:
            try:
                reply = self._exchange(task, stale)
            except (EOFError, OSError):
                self.replace()
                raise WorkerDied from None
            self._answered += 1
            if reply is None or self._answered >= self._limits.requests:
                self.replace()
            return reply

    def _exchange(self, task: bytes, stale: threading.Event) -> Reply | None:
        """Send a request and receive its answer; `None` if it must be stopped."""
        self._connection.send_bytes(task)
        if not self._finished(stale):
            return None
        head = json.loads(self._connection.recv_bytes(self._limits.reply))
        return Reply(**head, body=self._connection.recv_bytes(self._limits.reply))

    def _finished(self, stale: threading.Event) -> bool:
        """Wait for the answer; false if the request must be stopped."""
        most = self._limits.seconds if self.slow else self._limits.quick
        start, used = time.monotonic(), processor_seconds(self.pid)
        while not self._connection.poll(POLL):
            waited = time.monotonic() - start
            spent = processor_seconds(self.pid) - used if used else waited
            if spent > most or waited > WALL * most or (stale.is_set() and waited > PATIENCE):
                return False
        return True


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used; 0 if the system does not tell.

    >>> processor_seconds(os.getpid()) >= 0
    True
    """
    clock = ctypes.c_int()
    try:
        ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
        return time.clock_gettime(clock.value)
    except (AttributeError, OSError):  # macOS has no such function; or the process has ended
        return 0.0


def work(connection: Connection, limits: ServerLimits, folder: str, nice: int) -> None:
    """Answer requests until the server closes the connection. Runs in the worker; `folder` is for temporary files."""
    from tracr.playground.compiling import answer

    end_with_parent()
    tempfile.tempdir = folder
    _limit_memory(limits.memory)
    _settle(nice)
    with contextlib.suppress(EOFError, OSError):  # the server ended
        while True:
            reply = answer(connection.recv_bytes(), limits)
            head = asdict(reply)
            body = head.pop("body")
            connection.send_bytes(json.dumps(head).encode())
            connection.send_bytes(body)


def _limit_memory(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _settle(nice: int) -> None:
    """Lower the priority, and ignore the signals that stop the server: it lets its workers finish."""
    import gc

    gc.freeze()
    os.nice(nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
