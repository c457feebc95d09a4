"""One side, one case, one process: a job as JSON on standard input, a line of JSON for each measurement on output.

Uses only the standard library, because both sides load it. Measurements made before a side is stopped are kept.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from cases import Case
from memory import peak

Runner = Callable[[list[list[Any]]], Any]
MANY = 512  # inputs in a batch
ENOUGH = 0.15  # seconds of repetitions
LONG = 4.0  # a first run as long as this is not repeated
WORK = 1e11  # most multiplications for comparing the answers


class Side(Protocol):
    """One of the two compilers."""

    def __init__(self, case: Case, level: int) -> None: ...

    def compile(self) -> Any:
        """A model of the program, which is built again each time."""

    def answer(self, model: Any, tokens: list[Any]) -> list[Any]:
        """The answer to one input, as users call the model."""

    def size(self, model: Any) -> dict[str, int]:
        """layers, dimensions, heads, parameters, block_parameters, non_zeros."""

    def runners(self, model: Any) -> dict[str, tuple[int, Runner]]:
        """The ways to run inputs of one length, by name: the batch size and the function."""

    def compared(self, model: Any, inputs: list[list[Any]], padded: bool) -> list[list[Any]]:
        """Answers to inputs: as they are, if they have one length, or padded to the longest."""

    def more(self, model: Any, inputs: list[list[Any]], emit: Callable[..., None]) -> None:
        """Measurements that only this side has."""


def serve(side: type[Side]) -> None:
    """Do the job."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # text printed by libraries is not a measurement

    def emit(name: str, value: Any) -> None:
        print(json.dumps({name: value}), file=output, flush=True)

    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    resource.setrlimit(resource.RLIMIT_AS, (most, most))  # at most three quarters of the memory
    job = json.loads(sys.stdin.read())
    case = Case(**job["case"])
    try:
        _measure(side(case, job["level"]), case, job, emit)
    except MemoryError:
        emit("failed", "out of memory")
    except Exception as error:
        emit("failed", f"{type(error).__name__}: {error}".splitlines()[0][:300])


def _measure(side: Side, case: Case, job: dict[str, Any], emit: Callable[..., None]) -> None:
    batch = case.batch(MANY)
    emit("ready", True)
    started = time.perf_counter()
    model = side.compile()
    first = time.perf_counter() - started
    emit("first_compile", first)
    side.answer(model, batch[0])
    emit("answered", True)
    emit("memory", peak())
    size = side.size(model)
    emit("size", size)
    emit("compile", first if first > LONG * 10 else _shortest(side.compile))
    groups = case.inputs()
    each = max(4, int(WORK / (size["parameters"] * case.length * 5)))
    chosen = [group[:each] for group in groups]
    emit("unpadded", [row for group in chosen for row in side.compared(model, group, False)])
    shorter = [tokens for group in chosen for tokens in group if len(tokens) < case.length]
    emit("padded", side.compared(model, shorter, True))
    if job["speed"]:
        for way, (count, run) in side.runners(model).items():
            parts = itertools.cycle([batch[start : start + count] for start in range(0, MANY, count)])
            emit(way, count / _shortest(partial(_next, run, parts)))
    side.more(model, [tokens for group in chosen for tokens in group], emit)
    emit("memory_at_end", peak())


def _next(run: Callable[[Any], Any], parts: Iterator[Any]) -> Any:
    return run(next(parts))


def _shortest(run: Callable[[], Any]) -> float:
    """The shortest of repeated runs, the first not counted unless it is a long one."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < ENOUGH and len(times) < 1000):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
        if times[0] > LONG:
            return times[0]
    return min(times[1:])
