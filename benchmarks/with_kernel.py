"""The time of a call with the C kernel and without it, for a few programs of the library."""

from __future__ import annotations

import argparse
import importlib
import timeit

import tracr
from tracr.rasp import programs

NAMES = ("hist", "sort", "shuffle_dyck2")


def microseconds(name: str) -> float:
    """The time of one call of a model of the library, the best of five."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    timer = timeit.Timer(lambda: model(example.shown))
    count, _ = timer.autorange()
    return min(timer.repeat(5, count)) / count * 1e6


def main() -> None:
    """Print a line for each program."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    kernel = importlib.import_module("tracr.runtime.kernel.kernel")
    if not kernel.BUILT:
        raise SystemExit("the kernel was not built: there was no C compiler when tracr was installed")
    fast = [microseconds(name) for name in NAMES]
    kernel.__dict__["_kernel"] = None  # as where it was not built
    slow = [microseconds(name) for name in NAMES]
    for name, one, other in zip(NAMES, fast, slow, strict=True):
        print(f"{name:15}{one:8.1f} µs with the kernel{other:8.1f} µs without: {other / one:.0f} times")


if __name__ == "__main__":
    main()
