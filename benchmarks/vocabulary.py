"""Measures how much smaller models of large vocabularies are in bits than one-hot, and how much faster they compile.

    python benchmarks/vocabulary.py [tokens] [length]

Prints, for each program, the ratios one-hot to bits of dimensions, parameters and compile time.
"""

from __future__ import annotations

import sys
import time

import tracr
from tracr.compiler.lower import bits
from tracr.rasp import programs, rasp


def compiled(program: rasp.SOp, tokens: int, length: int, many: int) -> tuple[tracr.CompiledModel, float]:
    """A model in which s-ops with more than `many` values are in bits, and its compile time."""
    usual, bits.IN_BITS_ABOVE = bits.IN_BITS_ABOVE, many
    start = time.process_time()
    try:
        model = tracr.compile(program, range(tokens), length, max_parameters=10**9)
    finally:
        bits.IN_BITS_ABOVE = usual
    return model, time.process_time() - start


def main() -> None:
    """Measure and print."""
    tokens, length = (int(text) for text in (sys.argv[1:] + ["3000", "64"][len(sys.argv) - 1 :]))
    suite = {
        "hist": programs.make_hist(),
        "reverse": programs.make_reverse(rasp.tokens),
        "count": programs.make_count(rasp.tokens, 7),
    }
    print(f"{tokens:,} tokens, length {length}: one-hot over bits")
    for name, program in suite.items():
        (small, fast), (large, slow) = (
            compiled(program, tokens, length, many) for many in (bits.IN_BITS_ABOVE, tokens + 1)
        )
        print(
            f"{name:8} dimensions {large.d_model / small.d_model:6.1f}   "
            f"parameters {large.n_parameters / small.n_parameters:6.1f}   compile time {slow / fast:6.1f}"
        )


if __name__ == "__main__":
    main()
