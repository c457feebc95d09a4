"""Compares the time of `validating.validate` with that of compiling, for the library and for long programs.

python benchmarks/validating.py        a line per program: milliseconds for each, and their ratio; seconds
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from tracr.compiler import compiling, validating
from tracr.rasp import programs, rasp

LENGTHS = (10, 60)
REPEATS = 5


def main() -> None:
    """Measure and print."""
    total = [0.0, 0.0]
    for name, program, xs in _cases():
        vocab = list(dict.fromkeys(xs))
        compiled = _seconds(lambda: compiling.compile_rasp_to_model(program, vocab, len(xs)))  # noqa: B023
        validated = _seconds(lambda: validating.validate(program, xs))  # noqa: B023
        total = [total[0] + compiled, total[1] + validated]
        print(f"{name:20} compile {compiled * 1e3:7.1f} validate {validated * 1e3:7.1f} x {validated / compiled:.2f}")
    print(f"{'all':20} compile {total[0] * 1e3:7.1f} validate {total[1] * 1e3:7.1f} x {total[1] / total[0]:.2f}")


def _scrambled(number: int, x: int) -> int:
    return (3 * x + number) % 7


def _cases() -> Iterator[tuple[str, rasp.SOp, list[rasp.Value]]]:
    for name, example in programs.EXAMPLES.items():
        yield name, example.program, (list(example.vocab) * example.max_seq_len)[: example.max_seq_len]
    for operations in LENGTHS:
        shift: rasp.SOp = rasp.indices
        program: rasp.SOp = rasp.tokens
        for number in range(operations):
            shift = rasp.Map(partial(_scrambled, number), shift, simplify=False)
            program = (program + shift) % 5
        yield f"{2 * operations} operations", program, [0, 1, 2, 3, 4]


def _seconds(f: Callable[[], object]) -> float:
    """The time of the fastest of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
