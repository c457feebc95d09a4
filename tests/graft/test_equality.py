"""Functional equality: whether the program of a part can tell another part from it."""

from __future__ import annotations

from typing import Any

import pytest

import tracr
from tracr import zoo
from tracr.rasp import rasp

pytest.importorskip("torch")

from tracr import graft
from tracr.graft.equality import compared_in_program, equal_in_program
from tracr.graft.observed import CodedValues, observe


def so_far() -> Any:
    """How often the token occurred up to here."""
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("so_far")


def whether(test: Any) -> Any:
    """The MLP that tells whether a count passes a test, in a program of its own."""
    model = tracr.compile(rasp.numerical(rasp.Map(test, so_far())).named("told"), "abc", 4, causal=True, level=0)
    return next(one for one in reversed(graft.parts_of(model, "told")) if one.kind == "mlp")


@pytest.fixture(scope="module")
def repeated() -> Any:
    """A program that counts, and then looks whether the count is more than 1."""
    return zoo.load("has_prev", vocab="abc", max_seq_len=4)


def test_what_no_reader_uses_makes_no_difference(repeated: Any) -> None:
    """`has_prev` needs of its count only whether it is 1: a part that says just this is equal, others are not."""
    inputs = graft.inputs_of(repeated)
    counts = graft.Part(repeated, "blocks.0.mlp")
    assert equal_in_program(counts, whether(lambda count: count > 1), inputs)
    assert equal_in_program(counts, graft.Part(repeated, "blocks.1.mlp"), inputs)
    assert not equal_in_program(counts, whether(lambda count: count > 2), inputs)
    assert not equal_in_program(counts, whether(lambda count: count == 2), inputs)


def test_exchanges_are_counted_and_noticed(repeated: Any) -> None:
    """Where 1 and 2 are not distinguished, exchanging them is noticed; exchanging 2 and 3 is not, and is tried."""
    inputs = graft.inputs_of(repeated)
    (true,) = observe([graft.Part(repeated, "blocks.0.mlp")], inputs)
    tests: list[tuple[Any, bool]] = [(lambda count: count > 1, False), (lambda count: count > 2, True)]
    for test, notices in tests:
        (other,) = observe([whether(test)], inputs)
        found = compared_in_program(true, other.output, inputs)
        single = compared_in_program(true, other.output, inputs, draws=0)
        assert not found.says_more
        assert found.exchanges > single.exchanges > 0
        assert (found.noticed > single.noticed > 0) if notices else (found.noticed == 0)


def test_a_part_that_says_more_is_not_equal(repeated: Any) -> None:
    """The count in the place of what is derived from it says more than the program's own part."""
    inputs = graft.inputs_of(repeated)
    (true,), (counts,) = (observe([graft.Part(repeated, f"blocks.{layer}.mlp")], inputs) for layer in (1, 0))
    assert compared_in_program(true, counts.output, inputs).says_more
    assert not equal_in_program(true.part, counts.part, inputs)


def test_a_part_is_equal_to_itself_and_a_constant_to_none(repeated: Any) -> None:
    """Also under other names of its values; a part that says nothing is noticed, although it says no more."""
    inputs = graft.inputs_of(repeated)
    for part in graft.parts_of(repeated):
        (true,) = observe([part], inputs)
        same = compared_in_program(true, true.output, inputs)
        assert same.equal
        assert same.exchanges == 0
        renamed = CodedValues((true.output.classes >= 0) * (7 - true.output.classes), true.output.codes)
        assert compared_in_program(true, renamed, inputs).equal
        nothing = CodedValues((true.output.classes < 0) * -1, true.output.codes[:1])
        found = compared_in_program(true, nothing, inputs)
        assert found.noticed
        assert not found.says_more


def test_every_reader_counts_not_only_the_answer() -> None:
    """The answer needs less of a count than another component that reads it: the component can tell."""
    counts = so_far()
    odd = rasp.numerical(rasp.Map(lambda count: count % 2, counts)).named("odd")
    many = rasp.numerical(rasp.Map(lambda count: count > 2, counts)).named("many")
    model = tracr.compile({"odd": odd, "many": many}, "ab", 4, causal=True)
    inputs = graft.inputs_of(model)
    names = [one.name for one in graft.parts_of(model) if one.kind == "mlp"]
    part = next(graft.Part(model, name) for name in names if "so_far" in graft.Part(model, name).outputs[0].label)
    both = whether(lambda count: (count % 2) + 2 * (count > 2))
    assert equal_in_program(part, both, [one for one in inputs if "c" not in one])
    assert not equal_in_program(part, whether(lambda count: count > 2), inputs)
    assert not equal_in_program(part, whether(lambda count: count % 2), inputs)
