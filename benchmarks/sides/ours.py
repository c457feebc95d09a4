"""This project's side of the benchmark, in its own process."""

# ruff: noqa: E402
from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from worker import MANY, Runner, serve

sys.modules["ortools"] = None  # type: ignore[assignment]  # level 2 without its solver
import tracr
from tracr.rasp import programs, rasp


class Ours:
    """`tracr.compile` and calls of the model."""

    def __init__(self, case: Any, level: int) -> None:
        self.case, self.level = case, level

    def compile(self) -> Any:
        """A model of the program."""
        return tracr.compile(self.case.build(programs, rasp), self.case.vocab, self.case.length, level=self.level)

    def answer(self, model: Any, tokens: list[Any]) -> list[Any]:
        """The model called on one input."""
        return list(model(tokens))

    def size(self, model: Any) -> dict[str, int]:
        """Of the weights as they are."""
        arrays = dict(model.parameters.named())
        return {
            "layers": model.n_layers,
            "dimensions": model.d_model,
            "heads": sum(layer.W_Q.shape[0] for layer in model.parameters.layers),
            "parameters": model.n_parameters,
            "block_parameters": sum(int(array.size) for name, array in arrays.items() if name.startswith("blocks")),
            "non_zeros": sum(int((array != 0).sum()) for array in arrays.values()),
        }

    def runners(self, model: Any) -> dict[str, tuple[int, Runner]]:
        """The one way to run a model: to call it."""
        return {"called_1": (1, lambda batch: model(batch[0])), f"called_{MANY}": (MANY, model)}

    def compared(self, model: Any, inputs: list[list[Any]], padded: bool) -> list[list[Any]]:
        """The answers of the model."""
        longest = self.case.length if padded else 0
        given = [[*tokens, *[model.options.pad] * (longest - len(tokens))] for tokens in inputs]
        return [row[: len(tokens)] for row, tokens in zip(model(given), inputs, strict=True)] if inputs else []

    def more(self, model: Any, inputs: list[list[Any]], emit: Callable[..., None]) -> None:
        """The time of compiling without the user's functions, and of filling arrays of the weights' shapes."""
        emit("functions", _functions(self.compile))
        new, again = _filling([array.shape for _, array in model.parameters.named()])
        emit("filling", new)
        emit("filling_again", again)


def _functions(compile: Callable[[], Any]) -> float:
    """Seconds that the calls of the program's own functions take in a compilation: they are recorded, then repeated."""
    from tracr.compiler.frontend.rules import tabulate

    calls: list[tuple[Any, list[tuple[Any, ...]]]] = []
    usual = tabulate.Caller.results

    def recording(self: Any, *columns: Any) -> Any:
        calls.append((self.f, list(zip(*columns, strict=True))))
        return usual(self, *columns)

    tabulate.Caller.results = recording  # type: ignore[method-assign]
    try:
        compile()
    finally:
        tabulate.Caller.results = usual  # type: ignore[method-assign]
    started = time.perf_counter()
    for function, listed in calls:
        for arguments in listed:
            try:
                function(*arguments)
            except Exception:  # the compiler deals with it
                continue
    return time.perf_counter() - started


def _filling(shapes: list[tuple[int, ...]]) -> tuple[float, float]:
    """Seconds to fill arrays of these shapes, in new memory and once more, the shorter of two each.

    numpy can allocate memory that the process has used before; mapped memory is new.
    """
    import mmap

    import numpy as np

    times = []
    for _ in range(2):
        arrays = [np.frombuffer(mmap.mmap(-1, 8 * max(1, math.prod(shape)))) for shape in shapes]
        for turn in range(2):
            started = time.perf_counter()
            for array in arrays:
                array.fill(1.0)
            times.append((turn, time.perf_counter() - started))
    return min(seconds for turn, seconds in times if turn == 0), min(seconds for turn, seconds in times if turn == 1)


if __name__ == "__main__":
    serve(Ours)
