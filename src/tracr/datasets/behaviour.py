"""A key for what a program computes, on the inputs that its model is checked on.

`meaning.py` compares how programs compute; two programs with different meanings can still compute the same function.
This key compares their outputs. It is a digest of all outputs that are not numbers, and one number: the sum of all
outputs that are numbers, each multiplied by a fixed random factor. Outputs that are equal up to rounding give equal
digests, and sums that differ by at most `reach`. The converse may fail: programs that differ can be taken for one, with
a probability of about 1e-6 for each pair. Splits are made of groups of such programs, so no pair of programs that
compute the same is ever separated.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.datasets.meaning import plain_text
from tracr.errors import FormatError
from tracr.ir.domains import Domain, Finite
from tracr.ir.program import Tables
from tracr.model.input_sets import every_evaluation, inputs_of, is_small
from tracr.nearness import ROUNDING, margin
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.values import Value, is_number

__all__ = ["Behaviour", "behaviour"]

SEED = 20_240_101  # of the factors: datasets made with another could not be compared
LARGEST = 1e300  # larger numbers are compared exactly, like values that are not numbers
RAISES = np.uint64(1)  # the code of an input on which the program raises; 0 is the code of a number


@dataclass(frozen=True)
class Behaviour:
    """The key: a digest of the outputs that are not numbers, the sum of the others, and how far equal sums differ."""

    pattern: str
    total: float
    reach: float

    def to_json(self) -> dict[str, Any]:
        """The key as `json` can write it."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Behaviour:
        """The key that `to_json` wrote."""
        try:
            return cls(str(data["pattern"]), float(data["total"]), float(data["reach"]))
        except (KeyError, TypeError, ValueError):
            raise FormatError(
                f"this is not the key of a behaviour: {data!r:.80}", hint="make the shard again"
            ) from None


def behaviour(program: Tables, budget: int = 2_000) -> Behaviour:
    """The key of a tabulated program, on all inputs if they are at most `budget`, else on a sample of about that many.

    >>> import tracr
    >>> from tracr.rasp import rasp
    >>> first, second = (
    ...     behaviour(tracr.compile(program, vocab="ab", max_seq_len=3).program)
    ...     for program in (rasp.tokens == "a", ~(rasp.tokens == "b"))
    ... )
    >>> first.pattern == second.pattern and abs(first.total - second.total) <= first.reach
    True
    """
    state = hashlib.blake2b(digest_size=16)
    terms: list[float] = []
    scale, start = 0.0, 0
    options = program.options
    state.update(json.dumps([[plain_text(token) for token in options.vocab], list(program.lengths)]).encode())
    for evaluation in _evaluations(program, budget):
        for codes, numbers in (_outputs(evaluation, number) for _, number in program.outputs):
            state.update(codes.tobytes())
            factors = _factors(start + len(numbers))[start:]
            terms += (factors * numbers).tolist()
            scale += float(np.abs(factors) @ margin(numbers, ROUNDING))
            start += len(numbers)
    return Behaviour(state.hexdigest(), math.fsum(terms), scale)


def _evaluations(program: Tables, budget: int) -> Iterator[Evaluation]:
    if is_small(program, budget):
        yield every_evaluation(program)
        return
    for codes in inputs_of(program, budget, 0)[0]:
        yield evaluate_batch(program, Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32)))


def _outputs(evaluation: Evaluation, number: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """An output at every position that holds a token: a code for what is not a number, and the number (else 0)."""
    valid = evaluation.batch.valid
    held = np.broadcast_to(evaluation.codes[number], valid.shape)[valid]
    codes, numbers = _by_code(evaluation.program.sops[number].domain, held)
    if evaluation.errors.any():
        raises = np.broadcast_to(evaluation.errors[:, None], valid.shape)[valid]
        codes, numbers = np.where(raises, RAISES, codes), np.where(raises, 0.0, numbers)
    return codes, numbers


def _by_code(domain: Domain, held: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    if not isinstance(domain, Finite):  # numbers, and NaN for None
        missing = np.isnan(held)
        return np.where(missing, _code(None), np.uint64(0)), np.where(missing, 0.0, held)
    if domain.numeric and not domain.maybe_none and max(map(abs, domain.ends)) < LARGEST:
        codes, numbers = np.zeros(len(domain) + 2, dtype=np.uint64), np.zeros(len(domain) + 2)
        codes[-2:], numbers[:-2] = RAISES, domain.numbers
    else:
        codes = np.array([_code(value) for value in domain.values] + [RAISES] * 2, dtype=np.uint64)
        numbers = np.array([_number(value) for value in domain.values] + [0.0] * 2, dtype=np.float64)
    return codes[held], numbers[held]


def _is_float(value: Value) -> bool:
    return is_number(value) and abs(value) < LARGEST


def _number(value: Value) -> float:
    return float(value) if is_number(value) and abs(value) < LARGEST else 0.0


@functools.lru_cache(maxsize=4096)
def _code(value: Value) -> np.uint64:
    """0 for a number, which the sum compares; else a hash of the value."""
    if _is_float(value):
        return np.uint64(0)
    digest = hashlib.blake2b(plain_text(value).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little") | 2)  # neither 0 nor RAISES


@functools.lru_cache(maxsize=2)
def _drawn(size: int) -> NDArray[np.float64]:
    return np.random.default_rng(SEED).standard_normal(size)


def _factors(count: int) -> NDArray[np.float64]:
    """The first `count` factors; a longer list begins with a shorter one."""
    return _drawn(1 << (count - 1).bit_length() if count > 1 else 1)[:count]
