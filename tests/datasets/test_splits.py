"""Splits: no function is on both sides."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import tracr
from tracr.datasets import Behaviour, Controls, behaviour, meaning, sample, split
from tracr.datasets.splits import read_splits, same_functions
from tracr.nearness import same_value
from tracr.rasp import rasp
from tracr.rasp.expressions import SOp

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length
NUMBERS = (1, 2, 3)


def key(program: SOp, vocab: object = NUMBERS, max_seq_len: int = 3, budget: int = 2_000) -> Behaviour:
    return behaviour(tracr.compile(program, vocab, max_seq_len).program, budget)  # type: ignore[arg-type]


def joined(*behaviours: Behaviour) -> bool:
    return set(same_functions(behaviours)) == {0}


everywhere = rasp.Select(indices, indices, rasp.Comparison.TRUE)
SAME = [
    (tokens == 1, ~(tokens != 1)),
    (tokens == 1, rasp.Map(lambda x: x < 2, tokens)),
    (tokens + 0.1 + 0.2, tokens + 0.3),
    (rasp.numerical(tokens), tokens * 1),
    (length, rasp.SelectorWidth(everywhere)),
    (rasp.Aggregate(everywhere, tokens), rasp.Aggregate(everywhere, 2 * rasp.numerical(tokens)) * 0.5),
    (tokens / 3, tokens * (1 / 3)),
    (rasp.Map(lambda x: "a" if x == 1 else None, tokens), rasp.Map(lambda x: None if x != 1 else "a", tokens)),
    (tokens == 1, rasp.Map(lambda x: int(x == 1), tokens)),  # True is 1
    (rasp.Map(lambda x: (x == 1, "a"), tokens), rasp.Map(lambda x: (int(x == 1), "a"), tokens)),
]
DIFFERENT = [
    (tokens == 1, tokens == 2),
    (tokens, tokens + 1e-6),
    (rasp.Map(str, tokens), tokens),
    (rasp.Map(lambda x: None if x == 1 else x, tokens), rasp.Map(lambda x: 0 if x == 1 else x, tokens)),
    (indices, rasp.Map(lambda x: min(x, 1), indices)),
    (rasp.Map(lambda x: "ab"[x % 2], tokens), rasp.Map(lambda x: "ba"[x % 2], tokens)),
    (rasp.Map(lambda x: "a" if x == 1 else None, tokens), rasp.Map(lambda x: "a" if x == 1 else 0, tokens)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", SAME)
def test_one_function_written_twice_is_one(pair: tuple[SOp, SOp]) -> None:
    """Whatever the operations, names, encodings and roundings; on all inputs and on a sample."""
    assert joined(*map(key, pair))
    assert joined(*(key(program, max_seq_len=6, budget=50) for program in pair))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", DIFFERENT)
def test_different_functions_are_two(pair: tuple[SOp, SOp]) -> None:
    """Also if only one value differs, or a value is None or a string instead of a number."""
    assert not joined(*map(key, pair))


def test_the_inputs_are_part_of_the_function() -> None:
    """Another vocabulary or length is another function."""
    assert not joined(key(tokens), key(tokens, (1, 2)))
    assert not joined(key(tokens), key(tokens, max_seq_len=2))


def test_rounding_at_a_border_does_not_separate() -> None:
    """There is no grid whose borders could fall between two roundings: chains of near keys are one group."""
    rng = np.random.default_rng(0)
    base = Behaviour("p", 1.0, 1e-9)
    chain = [replace(base, total=1.0 + step * 0.9e-9) for step in range(50)]
    apart = [replace(base, total=3.0), replace(base, pattern="q")]
    order = rng.permutation(52)
    found = same_functions([[*chain, *apart][place] for place in order])
    groups = [found[int(np.flatnonzero(order == place)[0])] for place in range(52)]
    assert len(set(groups[:50])) == 1
    assert len(set(groups)) == 3


@pytest.mark.filterwarnings("ignore")
def test_no_function_of_random_programs_is_in_two_splits() -> None:
    """Compared pair by pair with the reference interpreter, on all inputs."""
    controls = Controls(vocab=("a", "b"), max_seq_len=3, max_ops=2)
    records = list(sample(120, 0, controls))
    inputs = [list(xs) for size in (1, 2, 3) for xs in itertools.product("ab", repeat=size)]
    programs = [record.program for record in records]
    outputs = [[value for xs in inputs for value in program(xs)] for program in programs]
    keys = [key(program, "ab") for program in programs]
    shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
    found = split(keys, [str(record.meaning) for record in records], shares)
    groups = same_functions(keys)
    equal = 0
    for one, other in itertools.combinations(range(len(records)), 2):
        same = all(map(same_value, outputs[one], outputs[other]))
        assert same == (groups[one] == groups[other])
        if same:
            equal += 1
            assert found[one] == found[other]
            assert records[one].meaning != records[other].meaning
    assert equal > 20  # a split by meaning alone would leak
    counts = Counter(found)
    largest = max(Counter(groups).values())
    assert all(abs(counts[name] - share * len(records)) <= largest for name, share in shares.items())


def test_splits_do_not_depend_on_the_order() -> None:
    """The same programs in another order fall in the same splits; another seed gives others."""
    rng = np.random.default_rng(1)
    keys = [Behaviour("p", float(place // 2), 0.1) for place in range(60)]
    names = [f"name {place}" for place in range(60)]
    found = split(keys, names)
    order = rng.permutation(60)
    again = split([keys[place] for place in order], [names[place] for place in order])
    assert [again[int(np.flatnonzero(order == place)[0])] for place in range(60)] == found
    assert split(keys, names, seed=1) != found
    assert Counter(found) == {"train": 48, "validation": 6, "test": 6}


def test_meanings_differ_where_functions_are_the_same() -> None:
    """The key of `meaning` compares how a program computes, that of `behaviour` what."""
    models = [tracr.compile(program, NUMBERS, 3) for program in (length, rasp.SelectorWidth(everywhere))]
    assert meaning(models[0].program) != meaning(models[1].program)
    assert joined(*(behaviour(model.program) for model in models))


@pytest.mark.parametrize("text", ["", "train", "train=1,train=0", "a=0.5,b=0.4", "a=-1,b=2", "a b=1", "a=nan"])
def test_shares_that_make_no_sense_are_refused(text: str) -> None:
    """They must be named, positive, and add up to 1."""
    with pytest.raises(tracr.TracrError, match="train"):
        read_splits(text)
