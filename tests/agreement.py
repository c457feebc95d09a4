"""The one comparison all tests share: interpreter = vectorised interpreter = model, padded and not."""

from __future__ import annotations

import importlib
import itertools
import random
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tracr
from tracr import CompiledModel, DesignedModel
from tracr.ir.domains import Finite
from tracr.rasp.annotations import Encoding
from tracr.rasp.interpreter import evaluate
from tracr.rasp.rasp import SOp, Value
from tracr.runtime.table_interpreter import evaluate_batch

RAW = 1e-4  # how far a raw number may be off, times max(1, |number|)
ROUNDING = 1e-12  # values of a domain that differ by rounding only count as one (1/3 and 1 - 2/3)


def same(got: Any, expected: Any, tolerance: float = ROUNDING) -> bool:
    """Equal, None only to None, numbers up to rounding."""
    if got is None or expected is None or isinstance(expected, str | tuple) or isinstance(got, str | tuple):
        return type(got) is type(expected) and bool(got == expected)
    return bool(got == expected or abs(got - expected) <= tolerance * max(1, abs(expected)))


def compile_quietly(program: Any, vocab: Iterable[Value], max_seq_len: int, **options: Any) -> CompiledModel:
    """Compile; warnings about values no input takes are none of the test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracr.TracrWarning)
        return tracr.compile(program, vocab, max_seq_len, **options)


def load_compiled(folder: str | Path, **options: Any) -> DesignedModel:
    """Load a saved model that is no twin."""
    model = tracr.load(folder, **options)
    assert isinstance(model, DesignedModel)
    return model


def all_inputs(vocab: Sequence[Value], longest: int) -> list[list[Value]]:
    """Every input up to a length."""
    return [list(xs) for n in range(1, longest + 1) for xs in itertools.product(vocab, repeat=n)]


def some_inputs(vocab: Sequence[Value], max_seq_len: int, count: int, seed: int = 0) -> list[list[Value]]:
    """Random inputs of all lengths."""
    rng = random.Random(seed)
    return [[rng.choice(vocab) for _ in range(1 + i % max_seq_len)] for i in range(count)]


def inputs_of(model: DesignedModel, count: int = 40) -> list[list[Value]]:
    """Random inputs of all lengths for a model."""
    return some_inputs(model.options.vocab, model.options.max_seq_len, count)


def assert_agrees(
    model: DesignedModel,
    program: SOp,
    inputs: Sequence[Sequence[Value]],
    singles: int = 5,
    reference: int | None = None,
) -> int:
    """The model's (only) output is the interpreter's on every input it accepts; returns how many those were.

    Decoded values must be identical, raw numbers within tolerance; the first few inputs are also run alone and with
    PAD typed out. With `reference` only that many go through the reference interpreter; for the rest the vectorised
    one, which is much faster, is the oracle.
    """
    evaluation = evaluate_batch(model.program, inputs)
    (vectorised,) = evaluation.outputs().values()
    decoded = model(inputs)
    (output,) = model.outputs
    ids, _, _ = model.vocabulary.encode(inputs)
    logits = model.logits(ids)
    tolerance = ROUNDING if isinstance(output.domain, Finite) else RAW
    compared = 0
    for row, tokens in enumerate(inputs):
        expected = vectorised[row]
        if reference is None or row < reference:
            try:
                expected = evaluate(program, tokens, causal=model.options.causal)
            except tracr.EvaluationError:
                assert evaluation.errors[row], f"the vectorised interpreter accepts {tokens}, which raises"
                continue
            assert not evaluation.errors[row], f"the vectorised interpreter refuses {tokens}"
        elif evaluation.errors[row]:
            continue
        compared += 1
        for name, values in (("vectorised", vectorised[row]), ("model", decoded[row])):
            assert len(values) == len(expected), (name, tokens)
            assert all(map(lambda a, b: same(a, b, tolerance), values, expected)), (name, tokens, values, expected)
        if output.encoding is Encoding.NUMERICAL:
            raw = logits[row, 1 : len(tokens) + 1, output.start].tolist()
            for number, value in zip(raw, expected, strict=True):
                assert value is None or same(number, value, RAW), (tokens, raw, expected)
        if compared <= singles:
            assert_padding_changes_nothing(model, tokens, decoded[row], tolerance)
    return compared


def assert_padding_changes_nothing(
    model: DesignedModel, tokens: Sequence[Value], expected: list[Value], tolerance: float = ROUNDING
) -> None:
    """One input alone, and with PAD typed out behind it, gives what it gives in a batch."""
    assert all(map(lambda a, b: same(a, b, tolerance), model(list(tokens)), expected))
    spare = model.program.lengths[1] - len(tokens)
    padded = model([*tokens, *[model.options.pad] * spare])
    assert all(map(lambda a, b: same(a, b, tolerance), padded[: len(tokens)], expected))
    assert padded[len(tokens) :] == [model.options.pad] * spare


def every_error() -> list[type[tracr.TracrError]]:
    """All kinds of errors of the package."""
    found: list[type[tracr.TracrError]] = []
    waiting = [tracr.TracrError]
    for module in ("tracr.datasets.python_text", "tracr.text.parser"):  # which define some
        importlib.import_module(module)
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].__subclasses__()
    return found
