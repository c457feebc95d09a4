"""An entry of the zoo: a program, the inputs it is for, and the task in plain Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracr.arguments import whole
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile as compile_program
from tracr.rasp.programs import Example
from tracr.rasp.programs.conditions import ANY, Condition
from tracr.rasp.rasp import SOp
from tracr.values import Value

__all__ = ["Entry", "at_each", "everywhere", "prefixes", "task"]

Task = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class Entry:
    """A named program.

    Args:
        name: its name in the zoo.
        build: makes the program for a vocabulary and a length.
        vocab, max_seq_len: the default vocabulary and length, BOS not counted.
        shown: an input to show it on.
        description: the task, in one sentence.
        answers: the task in plain Python, as a function of an input and the vocabulary. It shares no code with `build`.
        tags: the family first.
        causal: whether the program is meant for causal attention.
        tokens: the condition on vocabularies.
        inputs: the condition on inputs.
    """

    name: str
    build: Callable[[Sequence[Value], int], SOp]
    vocab: tuple[Value, ...]
    max_seq_len: int
    shown: tuple[Value, ...]
    description: str
    answers: Callable[[list[Any], Sequence[Value]], list[Any]]
    tags: tuple[str, ...]
    causal: bool = False
    tokens: Condition = ANY
    inputs: Condition = ANY

    @property
    def example(self) -> Example:
        """The entry as an example of the program library; it checks vocabularies and inputs."""
        return Example(
            self.build(self.vocab, self.max_seq_len),
            self.vocab,
            self.max_seq_len,
            self.description,
            self.shown,
            self.build,
            self.tokens,
            self.inputs,
            self.causal,
        )

    @property
    def program(self) -> SOp:
        """The program for the default vocabulary and length."""
        return self.build(self.vocab, self.max_seq_len)

    def reference(self, tokens: Sequence[Any]) -> list[Any]:
        """The right answer to an input over the default vocabulary, computed without RASP."""
        return self.answers(list(tokens), self.vocab)

    def made_for(self, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> Entry:
        """The entry with another default vocabulary or length; an error if the task is not defined for them."""
        length = self.max_seq_len if max_seq_len is None else whole("max_seq_len", max_seq_len, 1)
        example = self.example.made_for(self.vocab if vocab is None else vocab, length)
        return replace(self, vocab=example.vocab, max_seq_len=length)

    def load(self, level: int = 1, **options: Any) -> CompiledModel:
        """The compiled model; `options` are those of `tracr.compile`, and replace the entry's own."""
        given = {"causal": self.causal, "level": level, **options}
        return compile_program(self.program, self.vocab, self.max_seq_len, **given)


def task(
    vocab: Iterable[Value],
    max_seq_len: int,
    *,
    shown: Iterable[Value],
    says: str,
    answers: Callable[..., list[Any]],
    tags: str,
    causal: bool = False,
    tokens: Condition = ANY,
    inputs: Condition = ANY,
) -> Callable[[Callable[..., SOp]], Entry]:
    """Turn a function that returns a program into the entry of that name.

    The function takes nothing, or a vocabulary and a length. `answers` takes an input, or an input and a vocabulary.
    """

    def made(build: Callable[..., SOp]) -> Entry:
        return Entry(
            build.__name__,
            _taking_fewer(build),
            tuple(vocab),
            max_seq_len,
            tuple(shown),
            says,
            _taking_fewer(answers),
            (*tags.split(), *(["causal"] if causal else [])),
            causal,
            tokens,
            inputs,
        )

    return made


def _taking_fewer(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called with as many of the arguments as it takes."""
    count = len(inspect.signature(function).parameters)
    return lambda *arguments: function(*arguments[:count])


def at_each(answer: Callable[[list[Any], int], Any]) -> Task:
    """A task that answers at each position, given the input and the position.

    >>> at_each(lambda xs, i: xs[i] * i)([5, 5, 5])
    [0, 5, 10]
    """
    return lambda xs: [answer(xs, i) for i in range(len(xs))]


def prefixes(answer: Callable[[list[Any]], Any]) -> Task:
    """A task that answers for each prefix of the input.

    >>> prefixes(sum)([1, 2, 3])
    [1, 3, 6]
    """
    return lambda xs: [answer(xs[: i + 1]) for i in range(len(xs))]


def everywhere(answer: Callable[[list[Any]], Any]) -> Task:
    """A task with one answer for the whole input, given at all positions.

    >>> everywhere(max)([1, 3, 2])
    [3, 3, 3]
    """
    return lambda xs: [answer(xs)] * len(xs)
