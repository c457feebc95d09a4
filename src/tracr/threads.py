"""Threads: the number of BLAS threads of numpy (one for small matrices), and threads over parts of a batch.

For small matrices, starting BLAS threads takes longer than the product. BLAS waits for its threads by spinning, so on
a busy machine two of them may be many times slower than one; threads that work on parts of a batch are not.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

__all__ = ["blas_threads", "in_threads", "processors"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@functools.cache
def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`work` of every item, with as many threads as processors; numpy lets them run in parallel."""
    threads = min(len(items), processors())
    if threads < 2:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # imported only for large batches

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


@functools.cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Getter and setter of the OpenBLAS in numpy's wheel; `None` with any other BLAS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for library in sorted(folder.glob("*openblas*")):
            loaded = ctypes.CDLL(str(library))
            for prefix, suffix in (("scipy_openblas", "64_"), ("openblas", "64_"), ("openblas", "")):
                try:
                    getter = getattr(loaded, f"{prefix}_get_num_threads{suffix}")
                    setter = getattr(loaded, f"{prefix}_set_num_threads{suffix}")
                except AttributeError:
                    continue
                return getter, setter
    return None


@contextmanager
def blas_threads(number: int | None) -> Iterator[None]:
    """Run the body with this many BLAS threads; `None` changes nothing."""
    controls = _controls() if number is not None else None
    if controls is None or number is None:
        yield
        return
    getter, setter = controls
    before = getter()
    setter(number)
    try:
        yield
    finally:
        setter(before)
