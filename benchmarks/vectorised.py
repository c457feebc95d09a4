"""Measures how much faster the vectorised interpreter is than the reference, on batches of 1,000 inputs.

    python benchmarks/vectorised.py

Prints a ratio for each program and length: processor time per input of the reference divided by that of the vectorised
interpreter, on inputs that are already codes (as in `verify`), and with encoding and decoding of Python values.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import trace
from tracr.ir.options import Options
from tracr.rasp import programs, rasp
from tracr.runtime.table_interpreter import Batch, evaluate_batch

BATCH = 1000
VOCAB = tuple("abcx")


def best(f: Callable[[], object], repeats: int) -> float:
    """The shortest of several times."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    rng = random.Random(0)
    suite = {
        "frac_prevs": programs.make_frac_prevs(rasp.tokens == "x"),
        "hist": programs.make_hist(),
        "reverse": programs.make_reverse(rasp.tokens),
        "sort_unique": programs.make_sort_unique(rasp.tokens, rasp.tokens),
        "count": programs.make_count(rasp.tokens, "a"),
    }
    print("program       length  on codes  with encoding and decoding")
    for name, program in suite.items():
        for length in (10, 20, 50):
            inputs = [[rng.choice(VOCAB) for _ in range(rng.randint(1, length))] for _ in range(BATCH)]
            if name == "sort_unique":
                inputs = [rng.sample(VOCAB, rng.randint(1, 4)) for _ in range(BATCH)]
            tabulated = infer(trace({name: program}), Options(VOCAB, length))
            batch = Batch.of(inputs, VOCAB)
            reference = best(lambda p=program, xs=inputs: [p(x) for x in xs], 2)  # type: ignore[misc]
            codes = best(lambda t=tabulated, b=batch: evaluate_batch(t, b), 5)  # type: ignore[misc]
            whole = best(lambda t=tabulated, xs=inputs: evaluate_batch(t, xs).outputs(), 5)  # type: ignore[misc]
            print(f"{name:<12}  {length:>6}  {reference / codes:>7.0f}x  {reference / whole:>7.0f}x")


if __name__ == "__main__":
    main()
