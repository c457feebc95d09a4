"""Threads of numpy's BLAS: one for small matrices, where starting more costs longer than the product."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["blas_threads"]


@functools.cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Getter and setter of the OpenBLAS that numpy's wheel carries; None with any other BLAS."""
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
    """Run the body with this many BLAS threads; `None` leaves them as they are."""
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
