"""Codes in bits: s-ops with very many values compile small, and compute what the one-hot code does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import assert_agrees, compile_quietly, load_compiled, some_inputs
from tests.strategies import VOCABULARIES, Case, cases
from tests.tally import Tally, compile_case, mostly_compared
from tests.tiers import usual
from tracr.compiler.lower import bits
from tracr.craft.variables import Variable
from tracr.model.interventions import locations
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp, Value

LETTERS = "abcdefghij"


@pytest.fixture
def in_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything with more than two values is stored in bits, whatever reads it."""
    monkeypatch.setattr(bits, "IN_BITS_ABOVE", 2)
    monkeypatch.setattr(bits, "FEW_CLASSES", 1000)


def compact(model: tracr.CompiledModel) -> list[Variable]:
    """The variables of a model that are in bits."""
    return [variable for variable in model.layout.slots if variable.compact]


def assert_exact(model: tracr.CompiledModel, inputs: list[list[Value]]) -> None:
    """Bits are 1 and -1 exactly wherever there is a token, in float32."""
    run = model.run(inputs)
    for location in locations(model.program, model.layout).values():
        if location.variable.compact and location.hook != "hook_embed":
            for row, tokens in enumerate(inputs):
                held = run[location.hook][row, 1 : len(tokens) + 1, location.slots[location.slots >= 0]]
                assert np.isin(held, (-1.0, 1.0)).all()


def check(case: Case, inputs: int) -> int:
    """Compile with bits and compare with the interpreter; how many variables are in bits."""
    program, found = case.program, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "IN_BITS_ABOVE", 2)
        patch.setattr(bits, "FEW_CLASSES", 1000)
        for level in (1, 2):
            model = compile_case(case, level=level)
            assert_agrees(model, program, case.inputs(inputs), singles=2)
            found = max(found, len(compact(model)))
    return found


@pytest.mark.slow
@mostly_compared()
@given(case=cases(composite=True))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_models_compute_random_programs_in_bits(case: Case) -> None:
    """With everything in bits that can be, the decoded output is still the interpreter's, None included."""
    check(case, inputs=12)


def test_random_programs_use_bits() -> None:
    """The property above is about codes in bits, not about programs without any."""
    found = []
    with Tally(least=0.95) as tally:
        for seed in range(60):
            case = Case(seed, VOCABULARIES[seed % 3], 2 + seed % 8, 2 + seed % 5, seed % 3 == 0, seed % 4 == 0)
            with tally.draw():
                found.append(check(case, inputs=10))
    assert sum(number > 0 for number in found) >= 40
    assert max(found) >= 4


@pytest.mark.slow
@mostly_compared(0.9)
@given(case=cases(max_ops=14, max_seq_len=10, composite=True))
@settings(max_examples=usual(350, long=1000), deadline=None, suppress_health_check=list(HealthCheck))
def test_models_compute_larger_random_programs_in_bits(case: Case) -> None:
    """The same for larger programs."""
    check(case, inputs=20)


def select(keys: SOp, queries: Any, predicate: Any) -> rasp.Select:
    return rasp.Select(keys, queries, predicate)


def following(sop: SOp, default: Value = None) -> SOp:
    """The value of the next position."""
    return rasp.Aggregate(select(rasp.indices, rasp.indices, lambda k, q: k == q + 1), sop, default)


def rotated(x: str) -> str:
    return LETTERS[(LETTERS.index(x) + 3) % len(LETTERS)]


READERS: dict[str, SOp] = {
    "copy": following(rasp.tokens, "a"),
    "copy, None": following(rasp.tokens),
    "copy, another default": following(following(rasp.tokens, "?"), "!"),
    "copy of equal values": rasp.Aggregate(select(rasp.tokens, rasp.tokens, Comparison.EQ), rasp.tokens),
    "map to many": rasp.Map(rotated, rasp.tokens),
    "map to few": rasp.Map(lambda x: x < "d", rasp.tokens),
    "map of a copy": rasp.Map(rotated, following(rasp.tokens, "a")),
    "map to numbers": rasp.numerical(rasp.Map(lambda x: LETTERS.index(x) ** 2, rasp.tokens)),
    "pairs": rasp.SequenceMap(lambda x, y: x + y, rasp.tokens, following(rasp.tokens, "a")),
    "pairs with positions": rasp.SequenceMap(lambda x, i: x if i % 2 else "z", rasp.tokens, rasp.indices),
    "width of ==": rasp.SelectorWidth(select(rasp.tokens, rasp.tokens, Comparison.EQ)),
    "width of !=": rasp.SelectorWidth(select(rasp.tokens, rasp.tokens, Comparison.NEQ)),
    "width of <": rasp.SelectorWidth(select(rasp.tokens, rasp.tokens, Comparison.LT)),
    "width of a constant": rasp.SelectorWidth(select(rasp.tokens, "b", Comparison.EQ)),
    "width of a copy": rasp.SelectorWidth(select(rasp.tokens, following(rasp.tokens, "?"), Comparison.EQ)),
    "width of a permutation": rasp.SelectorWidth(select(rasp.tokens, rasp.tokens, lambda k, q: k == rotated(q))),
    "width of a choice": rasp.SelectorWidth(
        select(rasp.tokens, rasp.tokens, lambda k, q: LETTERS.index(k) == LETTERS.index(q) // 2)
    ),
    "width of a choice of queries": rasp.SelectorWidth(
        select(rasp.tokens, rasp.tokens, lambda k, q: LETTERS.index(q) == LETTERS.index(k) // 2)
    ),
    "width of few classes": rasp.SelectorWidth(select(rasp.tokens, rasp.indices, lambda k, q: (k < "c") == (q < 2))),
    "keys found by positions": rasp.SelectorWidth(
        select(rasp.tokens, rasp.indices, lambda k, q: LETTERS.index(k) == q)
    ),
    "queries that look for positions": rasp.Aggregate(
        select(rasp.indices, rasp.tokens, lambda k, q: k == LETTERS.index(q)), rasp.tokens, "a"
    ),
    "a mean": rasp.Aggregate(select(rasp.tokens, rasp.tokens, Comparison.EQ), rasp.indices, 0),
    "and": rasp.SelectorWidth(
        select(rasp.tokens, rasp.tokens, Comparison.EQ) & select(rasp.indices, rasp.indices, Comparison.LT)
    ),
    "or": rasp.SelectorWidth(
        select(rasp.tokens, rasp.tokens, Comparison.EQ) | select(rasp.indices, rasp.indices, Comparison.LT)
    ),
    "parts": rasp.Aggregate(
        (select(rasp.tokens, rasp.tokens, Comparison.EQ) & select(rasp.indices, 0, Comparison.EQ))
        | (select(rasp.tokens, rasp.tokens, Comparison.NEQ) & select(rasp.indices, 1, Comparison.EQ)),
        rasp.indices,
        0,
    ),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("gap", "level"), [(256.0, 1), (256.0, 2), (100.0, 1)])
def test_every_reader_of_bits(name: str, causal: bool, gap: float, level: int, in_bits: None) -> None:
    """Copies, tables, widths, means and combinations, whatever the predicate, are those of the interpreter."""
    if causal and "copy" in name and name != "copy of equal values":
        return  # the next position is never seen
    program = READERS[name]
    model = compile_quietly(program, LETTERS, 4, causal=causal, gap=gap, level=level)
    assert compact(model) or level == 2  # which embeds functions of tokens as they are
    inputs = some_inputs(LETTERS, 4, 60)
    assert_agrees(model, program, inputs)
    assert_exact(model, inputs)


NUMBERS: dict[str, tuple[SOp, list[Value]]] = {
    "integers": (
        rasp.Aggregate(select(rasp.indices, rasp.indices, Comparison.LEQ), rasp.tokens),
        list(range(3, 40, 4)),
    ),
    "halves": (rasp.Aggregate(select(rasp.indices, rasp.indices, Comparison.LEQ), rasp.tokens), [0.5, 1.0, 1.5, 2.0]),
    "irregular": (rasp.Aggregate(select(rasp.indices, rasp.indices, Comparison.LEQ), rasp.tokens), [-7, 1, 2, 40]),
    "thirds": (rasp.Aggregate(select(rasp.indices, rasp.indices, Comparison.LEQ), rasp.tokens), [1 / 3, 2 / 3, 1, 2]),
    "sum": (rasp.numerical(rasp.tokens * 2 + rasp.indices), list(range(9))),
    "fraction": (rasp.numerical(rasp.tokens * 0.1 + rasp.indices), list(range(900, 909))),
    "sum with None": (rasp.numerical(following(rasp.tokens) * 3), list(range(9))),
    "pairs": (rasp.SequenceMap(lambda x, y: x * y, rasp.tokens, rasp.indices), list(range(9))),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_bits_read_as_numbers(name: str, in_bits: None) -> None:
    """Linearly where values are evenly spaced, else through an MLP; None has a flag."""
    program, vocab = NUMBERS[name]
    model = compile_quietly(program, vocab, 4)
    assert compact(model)
    assert_agrees(model, program, some_inputs(vocab, 4, 60))


def test_evenly_spaced_numbers_need_no_mlp(in_bits: None) -> None:
    """A mean of integers is read off their bits."""
    mean = rasp.Aggregate(select(rasp.indices, rasp.indices, Comparison.TRUE), rasp.tokens)
    assert compile_quietly(mean, range(10), 4).parameters.layers[0].b_in.size == 0
    assert "tokens_number" in compile_quietly(mean, [1, 2, 4, 8], 4).show("translate")


def test_what_is_compared_stays_one_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting tells all values apart: bits would only be turned back, at the price of a layer."""
    monkeypatch.setattr(bits, "IN_BITS_ABOVE", 2)
    monkeypatch.setattr(bits, "FEW_CLASSES", 3)
    sort = compile_quietly(programs.make_sort_unique(rasp.tokens, rasp.tokens), range(8), 4)
    assert "tokens" not in [variable.label for variable in compact(sort)]
    assert [variable.label for variable in compact(compile_quietly(programs.make_hist(), range(8), 4))] == ["tokens"]


def test_level_0_is_one_hot(in_bits: None) -> None:
    """The paper's structure has a direction for each value."""
    assert not compact(compile_quietly(programs.make_hist(), LETTERS, 4, level=0))


def test_several_outputs(in_bits: None) -> None:
    """Logits of outputs in bits and others stand side by side."""
    outputs = {"next": following(rasp.tokens), "hist": programs.make_hist(), "same": rasp.Map(rotated, rasp.tokens)}
    model = compile_quietly(outputs, LETTERS, 5)
    assert [output.stop - output.start for output in model.outputs] == [11, 5, 10]
    for tokens in some_inputs(LETTERS, 5, 40):
        assert model(tokens) == {name: sop(tokens) for name, sop in outputs.items()}


def test_setting_a_variable_in_bits(in_bits: None) -> None:
    """`run(set=...)` writes the bits of other values, in the embedding or after a head."""
    shifted = following(rasp.tokens, "a").named("shifted")
    model = compile_quietly(rasp.Map(rotated, shifted), LETTERS, 4)
    assert model.run("abcd", set={"shifted": list("ghij")}).decoded == [rotated(x) for x in "ghij"]
    hist = compile_quietly(programs.make_hist(), LETTERS, 4)
    assert hist.run("abcd", set={"tokens": list("aabj")}).decoded == [2, 2, 1, 1]


def test_labels_and_ground_truth(in_bits: None) -> None:
    """Dimensions say which bit they are; variables in bits flow from writer to reader as any other."""
    model = compile_quietly(following(rasp.tokens).named("next"), LETTERS, 4)
    held = model.residual.of("next")
    assert [dimension.label for dimension in held] == [f"next:bit{place}" for place in range(4)]
    assert [dimension.bit for dimension in held] == [0, 1, 2, 3]
    assert all(dimension.value is None and not dimension.is_number for dimension in held)
    edges = [(edge.source, edge.target, edge.variable) for edge in model.ground_truth.edges()]
    assert ("embed", "blocks.1.attn.0", "tokens") in edges
    assert ("blocks.1.attn.0", "unembed", "next") in edges
    assert "next[4]" in model.show("translate")
    assert "next:bit0" in model.show("construct")


def test_saving(tmp_path: Path, in_bits: None) -> None:
    """A saved model is rebuilt from its tables, in bits."""
    model = compile_quietly(following(rasp.tokens), LETTERS, 4)
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert loaded.residual.labels == model.residual.labels
    assert loaded("abcd") == ["b", "c", "d", None]


def test_the_threshold() -> None:
    """1024 values are one-hot, 1025 in bits; both compute the same."""
    for size, dimensions in ((bits.IN_BITS_ABOVE, bits.IN_BITS_ABOVE), (bits.IN_BITS_ABOVE + 1, 11)):
        vocab = [f"t{place}" for place in range(size)]
        model = compile_quietly(programs.make_hist(), vocab, 8)
        assert len(compact(model)) == (dimensions == 11)
        assert_agrees(model, programs.make_hist(), some_inputs(vocab[:3] + vocab[-3:], 8, 30))
        assert model.d_model == dimensions + 2 + 8 + 1  # BOS, PAD; the counts and the share they are decoded from


BIG = 10_000
STRINGS = [f"t{place:04d}" for place in range(BIG)]
LARGE: dict[str, tuple[SOp, list[Value]]] = {
    "hist": (programs.make_hist(), list(STRINGS)),
    "hist of integers": (programs.make_hist(), list(range(BIG))),
    "reverse": (programs.make_reverse(rasp.tokens), list(STRINGS)),
    "reverse of integers": (programs.make_reverse(rasp.tokens), list(range(BIG))),
    "count": (programs.make_count(rasp.tokens, STRINGS[7]), list(STRINGS)),
}


@pytest.mark.parametrize("name", LARGE)
def test_ten_thousand_tokens(name: str) -> None:
    """A vocabulary of 10,000 at length 64: below 300 dimensions, and right on inputs with and without repetitions."""
    program, vocab = LARGE[name]
    model = compile_quietly(program, vocab, 64)
    assert model.d_model < 300
    inputs = some_inputs(vocab, 64, 15) + some_inputs(vocab[:9], 64, 15)
    inputs = [(tokens * 64)[: 1 + 4 * place % 64] for place, tokens in enumerate(inputs)]
    assert assert_agrees(model, program, inputs, singles=1) == 30
