"""Level 2 stores what it computes in the smallest way it finds: sums, keys found by number, features, few bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import assert_agrees, load_compiled, some_inputs
from tests.interventions import interventions_agree
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import mostly_slow
from tracr.compiler.frontend.rules import Inference, infer_node
from tracr.compiler.frontend.rules.counts import masks, widths_by_position
from tracr.compiler.frontend.trace import trace
from tracr.compiler.pipeline import tabulated
from tracr.compiler.program.linear_tables import chosen_sums, sum_of
from tracr.compiler.program.matching import numbered_keys, tolerances
from tracr.craft.variables import Feature, Number
from tracr.ir.domains import Finite
from tracr.ir.options import Options
from tracr.ir.selectors import SelectorNode
from tracr.model.compiled import CompiledModel
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding
from tracr.values import Value

NEW = ("linear_tables", "match", "factor", "few_bits")
EQ, LT = rasp.Comparison.EQ, rasp.Comparison.LT
REVERSE = programs.make_reverse(rasp.tokens)


def size(model: CompiledModel) -> tuple[int, int, int, int]:
    """Layers, dimensions, heads and parameters."""
    return model.n_layers, model.d_model, sum(len(layer.heads) for layer in model.schedule.layers), model.n_parameters


def block_parameters(model: CompiledModel) -> int:
    """The weights of attention and MLPs."""
    return sum(array.size for layer in model.parameters.layers for array in vars(layer).values())


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_no_library_program_is_larger_than_at_level_1(name: str) -> None:
    """Not in layers, dimensions, heads or parameters."""
    example = programs.EXAMPLES[name]
    one, two = (tracr.compile(example.program, example.vocab, example.max_seq_len, level=level) for level in (1, 2))
    assert all(small <= large for small, large in zip(size(two), size(one), strict=True)), (size(two), size(one))


def test_reverse_of_50_tokens() -> None:
    """Two layers, and a thousandth of the original's 8.98 million parameters in its blocks."""
    model = tracr.compile(REVERSE, range(50), 50, level=2)
    assert model.n_layers == 2
    assert model.d_model <= 18
    assert block_parameters(model) <= 2522
    assert {dimension.label for dimension in model.residual} == {
        *(f"tokens:bit{bit}" for bit in range(6)),
        "tokens:bos",
        "tokens:pad",
        "indices",
        "indices^2",
        "length_share",
        "length",
        *(f"reverse:bit{bit}" for bit in range(6)),
    }
    assert model.verify(400)


@pytest.mark.parametrize(("vocab", "longest"), [(3, 5), (9, 9), (100, 100), (3, 500)])
def test_reverse_of_other_sizes(vocab: int, longest: int) -> None:
    """Lengths that are barely exact included: every position must be told from its neighbours."""
    model = tracr.compile(REVERSE, range(vocab), longest, level=2)
    assert model.n_layers == 2
    rng = np.random.default_rng(0)
    lengths = {1, 2, longest // 2, longest - 1, longest}
    inputs = [rng.integers(vocab, size=length).tolist() for length in lengths for _ in range(4)]
    assert model(inputs) == [tokens[::-1] for tokens in inputs]
    assert model([*inputs, [0] * longest])[:-1] == [tokens[::-1] for tokens in inputs]


@pytest.mark.parametrize(("name", "off"), mostly_slow(programs.EXAMPLES, NEW))
def test_every_pass_can_be_switched_off(name: str, off: str) -> None:
    """What is left is right, and not smaller in layers."""
    example = programs.EXAMPLES[name]
    all_on, less = (
        tracr.compile(example.program, example.vocab, example.max_seq_len, level=2, passes=passes)
        for passes in (None, {off: False})
    )
    assert less.verify(300)
    assert less.n_layers >= all_on.n_layers


@pytest.mark.parametrize("off", NEW)
def test_every_pass_makes_reverse_smaller(off: str) -> None:
    """Without any of them it has more dimensions."""
    whole, less = (tracr.compile(REVERSE, range(20), 20, level=2, passes=passes) for passes in (None, {off: False}))
    assert less.d_model > whole.d_model


@mostly_compared()
@given(case=cases(max_ops=8, composite=True), passes=st.sets(st.sampled_from(NEW)))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs(case: Case, passes: set[str]) -> None:
    """Whatever passes are on, padded and causal: outputs are the interpreter's, also with variables set."""
    switches = {name: name in passes for name in NEW}
    model = compile_case(case, level=2, passes=switches)
    assert_agrees(model, case.program, case.inputs(12), singles=2)
    interventions_agree(model, case.inputs(6), case.seed)


# Sums


def sums_in(program: rasp.SOp, vocab: list[Value], longest: int = 4) -> list[tuple[tuple[float, ...], float]]:
    """The factors and the constant of every table of a program that is a weighted sum."""
    options = Options(tuple(vocab), longest, level=1)
    chosen = tabulated(trace({"x": program}), options)
    found = [sum_of(chosen, node) for node in chosen.sops.values()]
    return [(tuple(factor for _, factor in one.terms), one.constant) for one in found if one is not None]


def test_tables_that_are_sums() -> None:
    """Exact ones only: no errors, no `None`, no strings, nothing that is almost a sum."""
    numbers: list[Value] = [1, 2, 5]

    def pairs(function: Callable[[Any, Any], Any]) -> rasp.SOp:
        return rasp.SequenceMap(function, rasp.tokens, rasp.length)

    assert sums_in(pairs(lambda x, y: y - 1 - x), numbers) == [((-1.0, 1.0), -1.0)]
    assert sums_in(pairs(lambda x, y: x / 2 + 3 * y), numbers) == [((0.5, 3.0), 0.0)]
    assert sums_in(pairs(lambda x, y: y + 7), numbers) == [((1.0,), 7.0)]
    for other in (
        lambda x, y: x * y,
        lambda x, y: x + y if (x, y) != (5, 4) else 0,
        lambda x, y: x + y if (x, y) != (5, 4) else None,
        lambda x, y: str(x + y),
        lambda x, y: x / 3 + y,
        lambda x, y: 7,
    ):
        assert sums_in(pairs(other), numbers) == []


# Finding keys by number


def test_numbers_for_keys() -> None:
    """The keys' own, or those of the queries that select them; what is never selected gets another."""
    numbers = Finite((0, 1, 2))
    own, unit = numbered_keys(np.eye(3, dtype=bool), numbers, numbers) or ((), 0)
    assert (list(own), unit) == ([0, 1, 2], 1.0)
    turned, _ = numbered_keys(np.eye(3, dtype=bool)[:, ::-1], numbers, Finite(("a", "b", "c"))) or ((), 0)
    assert list(turned) == [2, 1, 0]
    halves, unit = numbered_keys(np.eye(2, 3, dtype=bool), Finite((0.5, 1.5)), Finite(("a", "b", "c"))) or ((), 0)
    assert (list(halves), unit) == ([0.5, 1.5, 2.5], 0.5)
    assert numbered_keys(np.eye(3, dtype=bool), Finite((0, 1, None)), numbers) is None
    assert numbered_keys(np.tri(3, dtype=bool), numbers, numbers) is None
    assert numbered_keys(np.zeros((3, 3), dtype=bool), numbers, numbers) is None


def test_only_queries_for_keys_are_stored_loosely() -> None:
    """An s-op that is put out, too, keeps its precision."""
    last = rasp.Aggregate(rasp.Select(rasp.indices, rasp.length - 1, EQ), rasp.tokens)
    for outputs, loose in (({"last": last}, True), ({"last": last, "length": rasp.length}, False)):
        program = tracr.compile(outputs, "abc", 6, level=2).program
        (length,) = [node for node in program.sops.values() if node.label == "length"]
        assert (length.encoding is Encoding.NUMERICAL) is loose
        assert (tolerances(program, chosen_sums(program))[length.id] > 0) is loose


def test_a_query_that_may_find_nothing_has_a_default() -> None:
    """It is not looked for by number."""
    far = rasp.Aggregate(rasp.Select(rasp.indices, rasp.length + 1 - rasp.indices, EQ), rasp.tokens, "none")
    model = tracr.compile(far, "abc", 6, level=2)
    assert model("abc") == ["none", "none", "c"]
    assert model.verify(2000)


@pytest.mark.parametrize("causal", [False, True])
def test_widths_among_positions(causal: bool) -> None:
    """The cumulative sums say what the selection matrices do."""
    program = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: (k * q) % 3 == 1), rasp.tokens, "b")
    options = Options(tuple("abc"), 7, level=2, causal=causal)
    traced = trace({"x": program})
    inference = Inference(options, (1, 7), len(traced.nodes), frozenset())
    for node in traced.nodes:
        infer_node(node.expr, inference, node)
    (selector,) = inference.selectors.values()
    assert isinstance(selector, SelectorNode)
    facts = inference.facts[selector.keys], inference.facts[selector.queries]
    found = widths_by_position(selector.table, *facts, inference.shape, causal)
    by_length = masks(selector.table, *facts, inference.shape, causal)
    assert found is not None
    assert found.by_shape is not None
    assert by_length is not None
    assert found.by_shape.tolist() == np.concatenate([mask.sum(axis=1) for mask in by_length]).tolist()


# Features


def test_positions_are_a_number_and_its_square() -> None:
    """However many there are."""
    for longest in (5, 30):
        model = tracr.compile(programs.shift_by(2, rasp.tokens), "abc", longest, level=2)
        assert [d.label for d in model.residual.of("indices")] == ["indices", "indices^2"]
        assert [d.is_number for d in model.residual.of("indices")] == [True, False]
        assert model.verify(500)


def test_functions_of_tokens_are_embedded_as_they_are() -> None:
    """As the variables of the program that they are, which can be set; setting the tokens sets them, too."""
    vowel = rasp.Map(lambda x: x in "ae", rasp.tokens).named("vowel")
    same = rasp.Aggregate(rasp.Select(vowel, vowel, EQ), rasp.numerical(rasp.Map("abcde".index, rasp.tokens)))
    both = {"mean": same.named("mean"), "copy": programs.shift_by(1, rasp.tokens)}
    alone, together = (tracr.compile(outputs, "abcde", 4, level=2) for outputs in ({"mean": both["mean"]}, both))
    assert "vowel:True" in alone.residual.labels
    assert "tokens:a" not in alone.residual.labels
    assert alone.run("abcd", set={"vowel": [True, True, False, False]}).decoded == [0.5, 0.5, 2.5, 2.5]
    for model in (alone, together):
        assert model.verify(400)
        assert setting_tokens_agrees(model)


def setting_tokens_agrees(model: CompiledModel) -> bool:
    """Setting the tokens is the same as another input."""
    if "tokens" not in {d.variable for d in model.residual if d.writer == "embed" and d.value not in ("bos", "pad")}:
        return True
    return all(
        model.run("aaaa", set={"tokens": tokens}).decoded == model(tokens)
        for tokens in some_inputs("abcde", 4, 30)
        if len(tokens) == 4
    )


def test_what_a_code_stands_for_is_labelled() -> None:
    """Flags by their values, other features by a number; `held` says what a direction is."""
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens == "a", lambda k, q: (k in "bc") == q))
    model = tracr.compile(count, "abcd", 4, level=2)
    (tokens,) = [v for v in model.layout.slots if v.label == "tokens"]
    assert tokens.codebook is not None
    assert tokens.codebook.shape == (4, tokens.size)
    assert tokens.size < 4
    assert all(isinstance(tokens.held(place), Feature | Number) for place in range(tokens.size))
    assert "tokens:a|d" in {dimension.label for dimension in model.residual}
    flags = tracr.compile(programs.make_count(rasp.tokens, "a"), "abcd", 4, level=2)
    assert "tokens:b|c|d" in {dimension.label for dimension in flags.residual}
    assert model.verify(1000)


# Saving


def test_saved_models_keep_the_way_they_are_stored(tmp_path: Path) -> None:
    """A loaded model uses the saved storage choices; an unknown choice is refused."""
    model = tracr.compile(REVERSE, range(12), 12, level=2)
    assert model.program.stored.sums
    assert model.program.stored.few_bits
    model.save(tmp_path / "model")
    again = load_compiled(tmp_path / "model")
    assert again.residual.labels == model.residual.labels
    assert again([3, 1, 2]) == [2, 1, 3]
    text = json.loads((tmp_path / "model" / "model.json").read_text())
    assert text["program"]["stored"] == {"split": [], "sums": list(model.program.stored.sums), "few_bits": True}
    text["program"]["stored"]["sums"] = [0]
    from tracr.saving.json_reader import parse
    from tracr.saving.program_json import program_tables, read_program

    reader = parse(json.dumps(text["program"]).encode(), "model.json")
    with pytest.raises(tracr.FormatError, match="not a sum"):
        read_program(reader, program_tables(model.program), model.options)
    one = tracr.compile(REVERSE, range(12), 12, level=1)
    one.save(tmp_path / "one")
    assert "stored" not in json.loads((tmp_path / "one" / "model.json").read_text())["program"]
