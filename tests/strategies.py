"""Hypothesis strategies for programs and inputs, on top of the seeded generator.

A failing example prints the call that makes its program, `random_program(123, max_ops=2, ...)`, and shrinks towards
fewer ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tracr.rasp.generate import random_inputs, random_program
from tracr.rasp.interpreter import evaluate
from tracr.rasp.rasp import SOp, Value

VOCABULARIES: tuple[tuple[Value, ...], ...] = (
    ("a", "b", "c"),
    (1, 2, 3),
    (-1, 0, 0.5),
    ("x",),
    (False, True),
    (0, "a"),
)

SEEDS = st.integers(0, 2**32 - 1)


def programs(
    *,
    max_ops: int = 6,
    vocab: Sequence[Value] = ("a", "b", "c"),
    max_seq_len: int = 5,
    causal: bool = False,
    composite: bool = True,
) -> st.SearchStrategy[SOp]:
    """Programs that the interpreter evaluates on every input of `inputs(vocab, max_seq_len)`."""
    return st.builds(
        random_program,
        SEEDS,
        max_ops=st.integers(0, max_ops),
        vocab=st.just(tuple(vocab)),
        max_seq_len=st.just(max_seq_len),
        causal=st.just(causal),
        composite=st.just(composite),
    )


def inputs(vocab: Sequence[Value] = ("a", "b", "c"), max_seq_len: int = 5) -> st.SearchStrategy[list[Value]]:
    """Inputs of every length from 1."""
    return st.lists(st.sampled_from(list(vocab)), min_size=1, max_size=max_seq_len)


@dataclass(frozen=True)
class Case:
    """A program with all that is needed to compile it and try it out."""

    seed: int
    vocab: tuple[Value, ...]
    max_ops: int = 6
    max_seq_len: int = 5
    causal: bool = False
    composite: bool = True

    @property
    def program(self) -> SOp:
        """The program; every access draws it anew, so hold on to it where identity matters."""
        return random_program(
            self.seed,
            max_ops=self.max_ops,
            vocab=self.vocab,
            max_seq_len=self.max_seq_len,
            causal=self.causal,
            composite=self.composite,
        )

    def inputs(self, count: int) -> list[list[Value]]:
        """Inputs of all lengths, the longest first."""
        return random_inputs(self.seed, self.vocab, self.max_seq_len, count)

    def expected(self, program: SOp, xs: Sequence[Value]) -> list[Value]:
        """What the reference interpreter gives."""
        result: list[Value] = evaluate(program, xs, causal=self.causal)
        return result


def cases(*, max_ops: int = 6, max_seq_len: int = 5, composite: bool = True) -> st.SearchStrategy[Case]:
    """Programs over all sorts of vocabularies and lengths, causal and not; `composite` allows composite selectors."""
    return st.builds(
        Case,
        SEEDS,
        st.sampled_from(VOCABULARIES),
        st.integers(0, max_ops),
        st.integers(1, max_seq_len),
        st.booleans(),
        st.booleans() if composite else st.just(False),
    )
