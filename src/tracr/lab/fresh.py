"""Private cases: random programs, drawn from a seed that is chosen when a method is scored."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tracr.arguments import whole
from tracr.datasets import Controls, meaning
from tracr.errors import TracrError, TracrWarning
from tracr.lab.one_case import Case
from tracr.lab.sampling import InputPool
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile as compile_program
from tracr.rasp.annotations import Encoding
from tracr.rasp.interpreter import evaluate
from tracr.rasp.rasp import SOp
from tracr.rasp.size import size_of
from tracr.zoo import Entry

__all__ = ["private"]

VOCABULARIES: tuple[tuple[Any, ...], ...] = (tuple("abc"), tuple("abcd"), (0, 1, 2), (0, 1, 2, 3))
LENGTHS = (5, 6)
LAYERS, HEADS = 6, 4  # the largest model
VARIED = 0.1  # the smallest share of independent pairs with different answers
TRIED = 64  # such pairs that are drawn


def private(seed: int, count: int = 8) -> list[Case]:
    """Cases that nobody has seen: random programs with different meanings; the same seed gives the same cases.

    Each compiles at level 1 to at most 6 layers with at most 4 heads each, and has a head. Its answers differ for at
    least a tenth of 64 independent pairs of inputs.

    >>> private(7, 2)[0].name
    'private-7-0'
    """
    seed, count = whole("seed", seed), whole("count", count, 1)
    found = itertools.islice(_drawn(seed), count)
    return [Case(replace(entry, name=f"private-{seed}-{number}")) for number, entry in enumerate(found)]


def _drawn(seed: int) -> Iterator[Entry]:
    seen: set[str] = set()
    for number in itertools.count():
        rng = np.random.default_rng([seed, number])
        controls = Controls(
            VOCABULARIES[int(rng.integers(len(VOCABULARIES)))],
            LENGTHS[int(rng.integers(len(LENGTHS)))],
            causal=bool(rng.integers(2)),
            min_ops=2,
            max_ops=7,
            min_selectors=1,
        )
        program = controls.program([seed, number])
        model = _compiled(program, controls)
        if model is None or not _fits(model) or (key := meaning(model.program)) in seen:
            continue
        seen.add(key)
        entry = _entry(program, controls)
        if InputPool(entry).variety(TRIED) >= VARIED:
            yield entry


def _compiled(program: SOp, controls: Controls) -> CompiledModel | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TracrWarning)
            return compile_program(program, controls.vocab, controls.max_seq_len, causal=controls.causal)
    except TracrError:
        return None


def _fits(model: CompiledModel) -> bool:
    """Whether the model is small, has heads, and its answers have a metric."""
    heads = max((one.place + 1 for one in model.schedule.heads()), default=0)
    output = model.outputs[0]
    numbers_only = output.encoding is Encoding.CATEGORICAL or output.stop - output.start == 1
    return model.n_layers <= LAYERS and 0 < heads <= HEADS and numbers_only


def _entry(program: SOp, controls: Controls) -> Entry:
    size = size_of(program)

    def answers(tokens: list[Any], vocab: Any) -> list[Any]:
        found: list[Any] = evaluate(program, tokens, causal=controls.causal)
        return found

    return Entry(
        "private",
        lambda vocab, max_seq_len: program,
        controls.vocab,
        controls.max_seq_len,
        controls.vocab[:1] * controls.max_seq_len,
        f"a random program of {size.ops} operations with {size.selectors} selectors",
        answers,
        ("private", *(["causal"] if controls.causal else [])),
        controls.causal,
    )
