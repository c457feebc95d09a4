"""Measures how much faster a call is with `Kernel.answer`, which encodes and decodes plain input in C.

    python benchmarks/answering.py

Prints, for each program, the time of a call through numpy (`Vocabulary.encode`, the same kernel, `Output.decode`)
divided by the time with `answer`, in the same run: for a string, a list of tokens and a batch of 200 lists. Only
programs with one-letter tokens have strings.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import tracr
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.kernel.kernel import Kernel

PROGRAMS = ("reverse", "hist", "frac_prevs", "sort", "dyck1", "most_freq")
BATCH = 200
SECONDS = 0.05  # the length of each measurement


def best(call: Callable[[], object]) -> float:
    """The time of a call, the shortest of several measurements."""
    calls, times = 1, [0.0]
    while times[-1] < SECONDS:  # enough calls to be measured
        calls *= 2
        times.append(_time_of(call, calls))
    return min(_time_of(call, calls) for _ in range(5)) / calls


def _time_of(call: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - start


def ratio(model: tracr.CompiledModel, given: Any) -> str:
    """The time without `answer` divided by the time with it."""
    kernel = model._float32_kernel
    assert kernel is not None
    assert kernel.answer(given) is not None
    fast = best(lambda: model(given))
    with patch.object(Kernel, "answer", lambda self, tokens: None):
        slow = best(lambda: model(given))
    return f"{slow / fast:.1f}x"


def main() -> None:
    """Measure and print."""
    rng = random.Random(0)
    print(f"{'program':<12}{'string':>8}{'list':>8}{'batch':>8}")
    for name in PROGRAMS:
        example = EXAMPLES[name]
        model = tracr.compile(example.program, example.vocab, example.max_seq_len)
        batch = [[rng.choice(example.vocab) for _ in range(example.max_seq_len)] for _ in range(BATCH)]
        letters = all(isinstance(token, str) and len(token) == 1 for token in example.vocab)
        string = ratio(model, "".join(map(str, batch[0]))) if letters else ""
        print(f"{name:<12}{string:>8}{ratio(model, batch[0]):>8}{ratio(model, batch):>8}")


if __name__ == "__main__":
    main()
