"""share: s-ops that compute the same become one; drop_unused: what no output needs is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.agreement import all_inputs
from tests.compiler.by_hand import inferred, node
from tests.strategies import VOCABULARIES, Case
from tests.tally import Tally, compiling
from tracr.compiler.program.share import drop_unused, share
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, Lookup
from tracr.ir.program import Tables
from tracr.ir.selectors import CompositeNode
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.rasp import Comparison, SOp
from tracr.runtime.table_interpreter import evaluate_batch


def flag(name: str) -> SOp:
    """Whether a token is a, by a lambda of its own."""
    return rasp.Map(lambda x: x == "a", rasp.tokens).named(name)


def mean(name: str, values: SOp) -> SOp:
    """The mean over all positions before, by a selector of its own."""
    before = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ)
    return rasp.Aggregate(before, rasp.numerical(values)).named(name)


def labels(typed: Tables) -> list[str]:
    return [one.label for one in typed.sops.values()]


def test_equal_s_ops_are_one() -> None:
    """Whatever their names and lambdas; their readers read the first, and selectors are shared with them."""
    program = {"one": mean("mean_1", flag("first")), "two": mean("mean_2", flag("second")) + 1}
    before = drop_unused(inferred(program))
    assert {"first", "second", "mean_1", "mean_2"} <= set(labels(before))
    after = drop_unused(share(inferred(program)))
    after.verify()
    assert "first" in labels(after)
    assert not {"second", "mean_2"} & set(labels(after))
    assert dict(after.shared) == {"second": "first", "mean_2": "mean_1"}
    assert len(before.selectors) == 2
    assert len(after.selectors) == 1
    assert after.outputs[0] == ("one", node(after, "mean_1").id)
    (reader,) = (one for one in after.sops.values() if one.id == after.outputs[1][1])
    assert node(after, "mean_1").id in reader.inputs


READERS: dict[str, Callable[[SOp], SOp]] = {
    "a map": lambda sop: rasp.Map(lambda x: not x, sop, simplify=False),
    "a pair": lambda sop: rasp.SequenceMap(lambda x, i: (x, i), sop, rasp.indices),
    "a sum": lambda sop: rasp.LinearSequenceMap(rasp.numerical(sop), rasp.indices, 2, 1),
    "a mean": lambda sop: mean("mean", sop),
    "keys": lambda sop: rasp.SelectorWidth(rasp.Select(sop, rasp.indices, lambda key, query: key and query > 0)),
    "queries": lambda sop: rasp.SelectorWidth(rasp.Select(rasp.indices, sop, lambda key, query: query and key > 0)),
    "a combination": lambda sop: rasp.SelectorWidth(
        rasp.Select(sop, sop, Comparison.EQ) & rasp.Select(rasp.indices, rasp.indices, Comparison.LT)
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_of_the_second_read_the_first(reader: str) -> None:
    """Whatever they do with it: the second is gone, and answers stay."""
    program = {"one": rasp.numerical(flag("first")), "two": READERS[reader](rasp.numerical(flag("second")))}
    before = inferred(program)
    after = drop_unused(share(before))
    after.verify()
    assert "second" not in labels(after)
    assert after.shared["second"] == "first"
    inputs = all_inputs("ab", 3)
    assert evaluate_batch(after, inputs).outputs() == evaluate_batch(before, inputs).outputs()


def test_parts_of_a_combination_are_shared() -> None:
    """A selector that is written again inside a combination is the one that stands alone."""
    alone, again = (rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ) for _ in range(2))
    earlier = rasp.Select(rasp.indices, rasp.indices, Comparison.LT)
    after = drop_unused(share(inferred({"one": rasp.SelectorWidth(alone), "two": rasp.SelectorWidth(earlier & again)})))
    after.verify()
    assert len(after.selectors) == 3  # alone, earlier, and both


@pytest.mark.parametrize(
    "other",
    [
        rasp.Map(lambda x: x == "b", rasp.tokens),
        rasp.Map(lambda i: i == 1, rasp.indices),
        rasp.SequenceMap(lambda x, i: x == "a" and i > 0, rasp.tokens, rasp.indices),
    ],
    ids=["another table", "another input", "another operation"],
)
def test_different_s_ops_stay_apart(other: SOp) -> None:
    """Another table, input or operation is another s-op."""
    program = {"one": flag("first"), "two": other.named("second")}
    after = share(inferred(program))
    assert {"first", "second"} <= set(labels(after))
    assert not after.shared


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (rasp.numerical, rasp.categorical, Encoding.CATEGORICAL),
        (rasp.categorical, rasp.numerical, Encoding.CATEGORICAL),
        (rasp.numerical, rasp.numerical, Encoding.NUMERICAL),
        (rasp.numerical, lambda sop: sop, None),
    ],
)
def test_one_wish_serves_all(first: object, second: object, expected: Encoding | None) -> None:
    """A one-hot code can be read as a number; no wish leaves it to the readers."""
    assert callable(first)
    assert callable(second)
    after = share(inferred({"one": first(flag("x")), "two": second(flag("y"))}))
    assert node(after, "x").wish is expected


def test_what_no_output_needs_is_dropped() -> None:
    """S-ops and selectors, those that combinations are made of included."""
    dead = rasp.SelectorWidth(
        rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ) | rasp.Select(rasp.indices, 1, Comparison.EQ)
    )
    kept = mean("kept", flag("x"))
    whole = inferred({"kept": kept, "dead": dead.named("dead")})
    assert any(isinstance(selector, CompositeNode) for selector in whole.selectors.values())
    less = drop_unused(replace(whole, outputs=whole.outputs[:1]))
    less.verify()
    assert labels(less) == ["indices", "tokens", "x", "kept"]
    assert len(less.selectors) == 1


def key(program: Tables, number: int) -> object:
    """What an s-op computes: operation, table and inputs."""
    one = program.sops[number]
    match one.op:
        case Lookup(inner=inner, table=table) if isinstance(one.domain, Finite):
            return "lookup", inner, tuple(repr(one.domain.values[code]) for code in table if code >= 0)
        case Aggregation(selector=selector, value=value, default=default):
            return "mean", selector, value, repr(default)
    return number


def test_sharing_changes_no_answer() -> None:
    """Random programs, written down twice: nothing is computed twice, and every label that is gone is accounted for."""
    with Tally(least=0.9) as tally:
        for seed in range(60):
            case = Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 4 + seed % 8, 3, composite=seed % 2 == 0)
            with tally.draw():
                with compiling():
                    twice = {"one": case.program, "two": case.program}
                    before = inferred(twice, case.vocab, 3, bos="<bos>", pad="<pad>")
                after = drop_unused(share(before))
                after.verify()
                assert set(labels(drop_unused(before))) - set(labels(after)) <= after.shared.keys()
                keys = [key(after, number) for number in after.sops]
                assert len(set(keys)) == len(keys)
                assert after.outputs[0][1] == after.outputs[1][1]
                inputs = all_inputs(case.vocab, 2)
                assert evaluate_batch(after, inputs).outputs() == evaluate_batch(before, inputs).outputs()
