"""Compiles a program of another project, and compares the model with the interpreter."""

from __future__ import annotations

import random
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tracr
from tracr.nearness import ANSWER, same_value
from tracr.rasp.interpreter import evaluate

KINDS = ("right", "refused", "wrong", "not built", "undefined", "too slow")


@dataclass(frozen=True)
class Given:
    """A program of another project: how to build it, and what it is for; `length` does not count BOS."""

    name: str
    build: Callable[[], Any]
    vocab: tuple[Any, ...]
    length: int
    causal: bool = False


def failing(name: str, error: BaseException) -> Given:
    """A program that could not be read: building it raises the error."""

    def build() -> Any:
        raise error

    return Given(name, build, ("a",), 1)


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    name: str
    kind: str
    detail: str = ""


class TooSlowError(Exception):
    """A program took longer than allowed."""


def examine(given: Given, level: int, inputs: int, seconds: int) -> Outcome:
    """Build, compile and run one program."""
    try:
        with _limited(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _examined(given, level, inputs)
    except TooSlowError:
        return Outcome(given.name, "too slow", f"more than {seconds} s")


def _examined(given: Given, level: int, inputs: int) -> Outcome:
    try:
        program = given.build()
    except TooSlowError:
        raise
    except (Exception, SystemExit) as error:  # the project's own code may raise anything
        return Outcome(given.name, "not built", f"{type(error).__name__}: {error}")
    if not isinstance(program, tracr.rasp.SOp):
        return Outcome(given.name, "not built", f"{type(program).__name__}, not an s-op")
    try:
        model = tracr.compile(program, given.vocab, given.length, level=level, causal=given.causal)
    except tracr.TracrError as error:
        return Outcome(given.name, "refused", str(error).splitlines()[0])
    return _compared(given, program, model, inputs)


def _compared(given: Given, program: Any, model: tracr.CompiledModel, inputs: int) -> Outcome:
    rng = random.Random(given.name)
    compared = 0
    for _ in range(inputs):
        tokens = rng.choices(given.vocab, k=rng.randint(1, given.length))
        try:
            right = evaluate(program, tokens, causal=given.causal)
        except TooSlowError:
            raise
        except Exception:  # the program is not defined on this input
            continue
        answer = model(tokens)
        compared += 1
        if not all(same_value(x, y, ANSWER) for x, y in zip(answer, right, strict=True)):
            return Outcome(given.name, "wrong", f"{tokens}: {answer} instead of {right}")
    return Outcome(given.name, "right" if compared else "undefined", f"{compared} inputs")


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise a `TooSlowError` after some seconds; on systems without alarms, never."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def counted(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many outcomes there are of each kind, in the order of `KINDS`."""
    counts = Counter(outcome.kind for outcome in outcomes)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}
