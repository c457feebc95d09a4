"""Exact in float32 at length 100 and 1,000, where the original fails from 10 tokens on."""

from __future__ import annotations

import random

import pytest

from tests.agreement import assert_agrees, compile_quietly
from tests.tiers import in_turn
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import SOp, Value

LETTERS = tuple("abcdefghij")
DIGITS = tuple(range(10))
BRACKETS = tuple("(){}abcdef")


def suite(longest: int) -> dict[str, tuple[SOp, tuple[Value, ...]]]:
    """The programs that have to be exact, with a vocabulary of 10 each."""
    fraction = programs.make_frac_prevs(rasp.tokens == "a")
    return {
        "length": (programs.make_length(), LETTERS),
        "reverse": (programs.make_reverse(rasp.tokens), LETTERS),
        "hist": (programs.make_hist(), LETTERS),
        "sort_unique": (programs.make_sort_unique(rasp.tokens, rasp.tokens), DIGITS),
        "sort": (programs.make_sort(rasp.tokens, rasp.tokens, max_seq_len=longest, min_key=1), DIGITS),
        "frac_prevs": (fraction, LETTERS),
        "square": (rasp.Map(lambda x: x * x, fraction), LETTERS),
        "rounded": (rasp.numerical(rasp.Map(lambda x: round(10 * x), fraction)), LETTERS),
        "reciprocal": (rasp.Map(lambda x: 1 / (1 + x), fraction), LETTERS),
        "shuffle_dyck2": (programs.make_shuffle_dyck2(), BRACKETS),
        "count": (programs.make_count(rasp.tokens, "a"), LETTERS),
        "numerical_count": (rasp.numerical(programs.make_count(rasp.tokens, "a")), LETTERS),
        "shift_by": (programs.shift_by(3, rasp.tokens), LETTERS),
    }


def balanced(rng: random.Random, longest: int) -> list[Value]:
    """A shuffle of two balanced bracket sequences."""
    tokens: list[Value] = []
    open_brackets = {"(": 0, "{": 0}
    closing = {"(": ")", "{": "}"}
    while len(tokens) + sum(open_brackets.values()) < longest - 1:
        kind = rng.choice("({")
        if open_brackets[kind] and rng.random() < 0.5:
            open_brackets[kind] -= 1
            tokens.append(closing[kind])
        else:
            open_brackets[kind] += 1
            tokens.append(kind)
    return [*tokens, *(closing[kind] for kind, count in open_brackets.items() for _ in range(count))]


def draw(name: str, vocab: tuple[Value, ...], longest: int, count: int) -> list[list[Value]]:
    """Random inputs of all lengths, the longest among them; distinct tokens for sort_unique."""
    rng = random.Random(name)
    inputs = []
    for number in range(count):
        if name == "sort_unique":
            inputs.append(rng.sample(vocab, 1 + number % len(vocab)))
        elif name == "shuffle_dyck2" and number % 2:
            inputs.append(balanced(rng, 2 + number % (longest - 1)))
        else:
            length = longest if number < 3 else rng.randint(1, longest)
            favourite = rng.choice(vocab)
            inputs.append([rng.choice((*vocab, *[favourite] * (number % 20))) for _ in range(length)])
    return inputs


def check(name: str, level: int, longest: int, count: int, singles: int, reference: int) -> None:
    """Every random input agrees, padded and not: decoded identical, raw numbers within 1e-4."""
    program, vocab = suite(longest)[name]
    model = compile_quietly(program, vocab, longest, level=level)
    inputs = draw(name, vocab, longest, count)
    assert assert_agrees(model, program, inputs, singles=singles, reference=reference) == count


@pytest.mark.parametrize(("name", "level"), in_turn(suite(100), LEVELS))
def test_exact_at_length_100(name: str, level: int) -> None:
    """Vocabulary of 10, against the reference interpreter."""
    check(name, level, 100, count=12, singles=3, reference=12)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", suite(100))
def test_exact_at_length_100_on_two_thousand_inputs(name: str, level: int) -> None:
    """The same on 2,000 inputs each, 100 of them through the reference interpreter, 200 also unpadded."""
    check(name, level, 100, count=2000, singles=200, reference=100)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["length", "hist", "reverse"])
def test_exact_at_length_1000(name: str, level: int) -> None:
    """Decoded identical at length 1,000.

    The raw error bound is 0: the share c/(c+w) is a fixed-point number, the staircase that decodes it is exact on its
    plateaus (see `craft.staircases.staircase`), and what follows is integer arithmetic. So the logits are exactly
    one-hot; of an output in bits, integers.
    """
    program, vocab = suite(1000)[name]
    model = compile_quietly(program, vocab, 1000, level=level)
    inputs = draw(name, vocab, 1000, 8)
    assert assert_agrees(model, program, inputs, singles=2, reference=1) == 8
    ids, _, lengths = model.vocabulary.encode(inputs)
    logits = model.logits(ids)
    ((_, output),) = model.circuit.outputs
    in_bits = output.codebook is not None
    for row, length in zip(logits, lengths, strict=True):
        real = row[1 : length + 1]
        assert (real == real.round()).all()
        if not in_bits:
            assert ((real == 0) | (real == 1)).all()
            assert (real.sum(axis=1) == 1).all()
