"""Runs tasks in this process, over processes, or over a Ray cluster; results come in the order of the tasks."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from tracr.extras import need
from tracr.threads import blas_threads

__all__ = ["SERIAL", "Workers", "end_with_parent", "over_processes", "over_ray"]

T = TypeVar("T")
R = TypeVar("R")
AHEAD = 2  # tasks submitted in advance per worker


class Workers(Protocol):
    """Runs functions on tasks. The functions are picklable and pure."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The results, in the order of the tasks; there may be infinitely many tasks."""
        ...


class _Serial:
    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        return map(function, tasks)


SERIAL: Workers = _Serial()


class _Pool:
    """Workers that are used through `submit`, which gives a ticket, and `result`, which waits for one."""

    def __init__(self, size: int, submit: Callable[[Any, Any], Any], result: Callable[[Any], Any]) -> None:
        self._ahead, self._submit, self._result = AHEAD * size, submit, result

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        remaining = iter(tasks)
        tickets = deque(self._submit(function, task) for task in itertools.islice(remaining, self._ahead))
        while tickets:
            result: R = self._result(tickets.popleft())
            tickets.extend(self._submit(function, task) for task in itertools.islice(remaining, 1))
            yield result


@contextlib.contextmanager
def over_processes(jobs: int) -> Iterator[Workers]:
    """`jobs` processes; only this one if `jobs` is 1. They end when this process ends, even if it is killed."""
    if jobs <= 1:
        yield SERIAL
        return
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent)
    try:
        yield _Pool(jobs, lambda function, task: pool.submit(_call, function, task), lambda future: future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """End this worker when its parent ends; a killed executor does not end its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _call(function: Callable[[T], R], task: T) -> R:
    with blas_threads(1):
        return function(task)


@contextlib.contextmanager
def over_ray(address: str | None = None, *, gpus: bool = False) -> Iterator[Workers]:
    """All processors of the Ray cluster at `address`, else of the one in RAY_ADDRESS, else of this machine.

    With `gpus` every task has a GPU for itself, if the cluster has any. The workers need no shared file system if the
    tasks read and write no files, only `tracr`.
    """
    ray = need("ray", extra="sweep")
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        there = ray.cluster_resources()
        devices = int(there.get("GPU", 0)) if gpus else 0
        remote = ray.remote(max_retries=3, num_gpus=1 if devices else 0)(_call)
        size = devices or max(1, int(there.get("CPU", 1)))
        yield _Pool(size, lambda function, task: remote.remote(function, task), ray.get)
    finally:
        if started:
            ray.shutdown()
