"""The inputs of a case with their right answers, and pairs of inputs drawn from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from tracr.errors import EvaluationError, TracrError
from tracr.nearness import ANSWER, same_value
from tracr.values import Value
from tracr.zoo import Entry

__all__ = ["InputPair", "InputPool", "PairKind", "changed_positions"]

PairKind = Literal["resampled", "minimal"]
MOST = 4_096  # inputs that are kept
TRIES = 50  # draws of one input before all inputs are searched

Tokens = tuple[Value, ...]


def changed_positions(first: Tokens, second: Tokens) -> tuple[int, ...]:
    """The positions at which two answers differ; numbers may differ by rounding.

    >>> changed_positions((1, 0.5), (1, 0.25))
    (1,)
    """
    pairs = enumerate(zip(first, second, strict=True))
    return tuple(i for i, (x, y) in pairs if not same_value(x, y, ANSWER))


@dataclass(frozen=True)
class InputPair:
    """Two inputs of one length, and the right answers to them."""

    clean: Tokens
    corrupted: Tokens
    clean_answer: Tokens
    corrupted_answer: Tokens

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions at which the answers differ; the first token is 0."""
        return changed_positions(self.clean_answer, self.corrupted_answer)

    @property
    def changes(self) -> bool:
        """Whether the answers differ."""
        return bool(self.positions)


@dataclass(frozen=True, eq=False)
class InputPool:
    """The inputs of the longest length on which a program is defined: all of them, or several thousand random ones."""

    entry: Entry

    def answer(self, tokens: Tokens) -> Tokens | None:
        """The right answer, or `None` where the task is not defined."""
        if not self.entry.inputs.holds(tokens):
            return None
        try:
            return tuple(self.entry.reference(tokens))
        except EvaluationError:
            return None

    def _candidates(self) -> Iterator[Tokens]:
        """All inputs in a random order, or random ones; the same in every run."""
        vocab, length = self.entry.vocab, self.entry.max_seq_len
        rng = np.random.default_rng(0)
        total = len(vocab) ** length
        if total <= 4 * MOST:
            found = list(itertools.product(vocab, repeat=length))
            yield from (found[number] for number in rng.permutation(total).tolist())
            return
        for _ in range(8 * MOST):
            # Inputs with few different tokens are rare, and programs often treat them in a special way.
            few = rng.choice(len(vocab), size=int(rng.integers(1, len(vocab) + 1)), replace=False)
            yield tuple(vocab[code] for code in rng.choice(few, size=length).tolist())
            if length <= len(vocab):
                yield tuple(vocab[code] for code in rng.permutation(len(vocab))[:length].tolist())

    def _defined(self) -> Iterator[tuple[Tokens, Tokens]]:
        seen: set[Tokens] = set()
        for tokens in self._candidates():
            if tokens not in seen and (answer := self.answer(tokens)) is not None:
                seen.add(tokens)
                yield tokens, answer

    def varies(self) -> bool:
        """Whether two inputs have different answers; looks no further than the first that differs."""
        found = itertools.islice(self._defined(), MOST)
        first = next(found, None)
        return first is not None and any(changed_positions(first[1], answer) for _, answer in found)

    def variety(self, count: int) -> float:
        """The share of `count` independent pairs whose answers differ."""
        answers = [answer for _, answer in itertools.islice(self._defined(), 2 * count)]
        pairs = list(zip(answers[::2], answers[1::2], strict=False))
        return sum(bool(changed_positions(*pair)) for pair in pairs) / max(1, len(pairs))

    @cached_property
    def inputs(self) -> list[tuple[Tokens, Tokens]]:
        """The inputs with their answers."""
        return list(itertools.islice(self._defined(), MOST))

    def pairs(self, count: int, seed: int, kind: PairKind, changing: float) -> tuple[InputPair, ...]:
        """Pairs of which at least the share `changing` have different answers."""
        if kind not in get_args(PairKind):
            raise TracrError(f"there is no kind of pairs {kind!r}", hint=f"kinds are {', '.join(get_args(PairKind))}")
        rng = np.random.default_rng(seed)
        draw = self._resampled if kind == "resampled" else self._minimal
        must = np.zeros(count, dtype=bool)
        must[: int(np.ceil(changing * count))] = True
        return tuple(draw(rng, change) for change in rng.permutation(must).tolist())

    def _resampled(self, rng: np.random.Generator, change: bool) -> InputPair:
        """Two inputs drawn from the pool; if the answer must change, the second until it does."""
        clean, answer = self.inputs[int(rng.integers(len(self.inputs)))]
        for _ in range(TRIES):
            corrupted, other = self.inputs[int(rng.integers(len(self.inputs)))]
            if changed_positions(answer, other) if change else corrupted != clean:
                return InputPair(clean, corrupted, answer, other)
        fitting = [one for one in self.inputs if not change or changed_positions(answer, one[1])]
        corrupted, other = fitting[int(rng.integers(len(fitting)))]
        return InputPair(clean, corrupted, answer, other)

    def _minimal(self, rng: np.random.Generator, change: bool) -> InputPair:
        """An input and one that differs from it in one token; if the answer must change, inputs where it can."""
        order = rng.permutation(len(self.inputs)).tolist()
        for number in order:
            clean, answer = self.inputs[number]
            near = [(tokens, other) for tokens in self._neighbours(clean) if (other := self.answer(tokens)) is not None]
            fitting = [one for one in near if not change or changed_positions(answer, one[1])]
            if fitting:
                corrupted, other = fitting[int(rng.integers(len(fitting)))]
                return InputPair(clean, corrupted, answer, other)
        raise TracrError(
            f"no two inputs of {self.entry.name} differ in one token{' and in their answers' if change else ''}",
            hint='use pairs of the kind "resampled"',
        )

    def _neighbours(self, tokens: Tokens) -> Iterator[Tokens]:
        for place, token in enumerate(tokens):
            for other in self.entry.vocab:
                if other != token:
                    yield (*tokens[:place], other, *tokens[place + 1 :])
