"""Setting variables: what the interpreter gives with them replaced, or a refusal that says why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import load_compiled, some_inputs
from tests.interventions import interventions_agree, replaced_output
from tests.strategies import VOCABULARIES, Case, cases
from tests.tally import NotCompared, Tally, compile_case, mostly_compared
from tests.tiers import mostly_slow, some_levels, usual
from tracr.ir.options import LEVELS
from tracr.model.interventions import folded, locations
from tracr.rasp import programs, rasp
from tracr.runtime.table_interpreter import evaluate_batch


@pytest.mark.parametrize(("name", "level"), mostly_slow(programs.EXAMPLES, LEVELS))
def test_setting_variables_does_what_the_interpreter_says(name: str, level: int) -> None:
    """Variables of every library program, one or several: many interventions run, and none gives anything else."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    ran, _ = interventions_agree(model, some_inputs(example.vocab, example.max_seq_len, 2), seed=level, trials=30)
    assert ran > 2


def check(case: Case, level: int) -> None:
    """At least one of several interventions runs, and those that run give what the interpreter says."""
    ran, _ = interventions_agree(compile_case(case, level=level), case.inputs(3), case.seed)
    if not ran:
        raise NotCompared("every intervention was refused")


@pytest.mark.slow
@mostly_compared(0.8)
@given(case=cases(max_ops=8))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_setting_variables_of_random_programs(case: Case) -> None:
    """The same on random programs at every level, padded and causal too."""
    for level in LEVELS:
        check(case, level)


@pytest.mark.parametrize("level", LEVELS)
def test_functions_of_what_is_set_follow(level: int) -> None:
    """At level 2 the embedding holds `squared`, and of the tokens only what the selector reads."""
    squared = rasp.SequenceMap(lambda x, y: x * y, rasp.tokens, rasp.tokens).named("squared")
    alike = rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: (key < 0) == (query < 0))
    mean = rasp.numerical(rasp.Aggregate(alike, rasp.numerical(squared)))
    model = tracr.compile(rasp.Map(lambda x: x * x, mean), [-1, 0, 0.5], 4, level=level)
    others = [-1, 0.5, -1]
    assert model.run([0, 0, -1], set={"tokens": others}).decoded == model(others) == [1.0, 0.0625, 1.0]


@pytest.mark.parametrize("level", LEVELS)
def test_setting_a_variable_leaves_padding_alone(level: int) -> None:
    """What its directions hold at PAD is part of how heads pass PAD over."""
    model = tracr.compile(programs.EXAMPLES["reverse"].program, "abc", 4, level=level)
    inputs = [["a", "b"], ["a", "b", "c", "a"]]
    usual, changed = model.run(inputs), model.run(inputs, set={"indices": [[1, 0], [3, 2, 1, 0]]})
    for name in ("hook_embed", "hook_pos_embed"):
        np.testing.assert_array_equal(changed[name][0, 3:], usual[name][0, 3:])
    assert not np.array_equal(changed["hook_pos_embed"][0, :3], usual["hook_pos_embed"][0, :3])


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, usual(1000, long=4000), 500))
def test_thousands_of_random_programs(start: int) -> None:
    """The same by the thousand, most of them at one level."""
    with Tally(least=0.9) as tally:
        for seed in range(start, start + 500):
            rng = random.Random(seed)
            case = Case(seed, rng.choice(VOCABULARIES), rng.randint(1, 9), rng.randint(1, 5), rng.random() < 0.3)
            for level in some_levels(seed):
                with tally.draw():
                    check(case, level)


def number_times_flag() -> rasp.SOp:
    """A number and a flag that inputs give two of four combinations."""
    number = rasp.Map({"a": 1, "b": 2}.get, rasp.tokens).named("num")
    return (number * (rasp.tokens == "a").named("is_a")).named("product")


@pytest.mark.parametrize("level", [0, 1])
def test_values_that_never_meet_are_refused(level: int) -> None:
    """No input gives num = 1 and is_a = False, so the table has no answer; the message says where, and what to do."""
    model = tracr.compile(number_times_flag(), "ab", 4, level=level)
    with pytest.raises(tracr.InputError, match=r"product meets num = 1 and is_a = False.*position 0") as refused:
        model.run("aba", set={"is_a": [False, True, True]})
    assert "set product as well" in str(refused.value)
    with pytest.raises(tracr.InputError, match="position 2 of input 1"):
        model.run(
            [list("ab"), list("bab")], set={"is_a": [[True, False], [False, True, True]], "num": [[1, 2], [2, 1, 2]]}
        )
    both: dict[str, list[rasp.Value]] = {"is_a": [False, True, True], "num": [2, 1, 1]}
    assert model.run("aba", set=both).decoded == replaced_output(model, "aba", both) == [0, 1, 1]
    given: dict[str, list[rasp.Value]] = {
        "is_a": [False, True, True],
        "product": [0, 1, 0],
    }  # what is_a leads to matters no more
    assert model.run("aba", set=given).decoded == [0, 1, 0]


@pytest.mark.parametrize("level", LEVELS)
def test_what_was_proved_of_selectors_may_not_hold(level: int) -> None:
    """Every query selects one key, on inputs; copied values are equal, on inputs."""
    last = rasp.Select(rasp.indices, (rasp.length - 1).named("last"), rasp.Comparison.EQ)
    model = tracr.compile(rasp.Aggregate(last, rasp.tokens).named("out"), "ab", 3, level=level)
    assert model.run("ab", set={"last": [0, 1]}).decoded == ["a", "b"]
    with pytest.raises(tracr.InputError, match="out selects 0 keys, where inputs select 1"):
        model.run("ab", set={"last": [0, 2]})
    number = rasp.Map({"a": 1, "b": 3}.get, rasp.tokens).named("number")
    same = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ), number).named("same")
    model = tracr.compile(rasp.categorical(same), "ab", 3, level=level, passes={"fold": False})
    assert model.run("aab", set={"number": [3, 3, 1]}).decoded == [3, 3, 1]
    with pytest.raises(tracr.InputError, match="same averages 1, 3, where inputs select equal values"):
        model.run("aab", set={"number": [1, 3, 1]})


def test_a_causal_mask_that_stands_for_a_selector() -> None:
    """The causal mask may replace a selector of earlier positions, but not if the positions are set to other values."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    model = tracr.compile(rasp.SelectorWidth(before).named("width"), "ab", 3, causal=True, level=0)
    assert model.run("aba", set={"indices": [0, 2, 2]}).decoded == [1, 2, 3]
    with pytest.raises(tracr.InputError, match="width would differ from the program"):
        model.run("aba", set={"indices": [2, 1, 0]})


@pytest.mark.parametrize("level", LEVELS)
def test_a_selector_that_was_made_simpler(level: int) -> None:
    """Over positions and a function of them it is one table over positions, which does not see the function set."""
    parity = rasp.Map(lambda i: i % 2, rasp.indices).named("parity")
    odd = rasp.Select(parity, rasp.tokens, lambda key, _: key == 1)
    first = rasp.Select(rasp.indices, rasp.tokens, lambda key, _: key == 0)
    program = (rasp.SelectorWidth(odd | first).named("width") + parity).named("out")
    model = tracr.compile(program, "ab", 4, level=level)
    assert model("abab") == [3, 4, 3, 4]
    with pytest.raises(tracr.InputError, match="width would differ from the program"):
        model.run("abab", set={"parity": [0, 1, 0, 0]})


@pytest.mark.parametrize("level", [1, 2])
def test_variables_that_are_computed_once(level: int) -> None:
    """One of them alone cannot be set where that makes a difference; together they can."""
    left, right = (rasp.Map(lambda token: token == "a", rasp.tokens).named(name) for name in ("left", "right"))
    before = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)
    program = rasp.SequenceMap(lambda x, y: (x, y), left, rasp.Aggregate(before, right, False))
    model = tracr.compile(program, "ab", 3, level=level)
    assert (model.variables["right"].state, model.variables["right"].instead) == ("shared", "left")
    assert "left" in model.variables.missing["right"]
    assert model.variables["left"].stands_for == ("right",)
    for label, rest in (("left", "right"), ("right", "left")):
        with pytest.raises(tracr.InputError, match=rf"{label} cannot be set alone: it is computed once with {rest}"):
            model.run("aba", set={label: [True] * 3})
    with pytest.raises(tracr.InputError, match="cannot have different values"):
        model.run("aba", set={"left": [True] * 3, "right": [False] * 3})
    both = {"left": [False, True, True], "right": [False, True, True]}
    assert model.run("aba", set=both).decoded == replaced_output(model, "aba", both)
    apart = tracr.compile(program, "ab", 3, level=level, passes={"share": False})
    assert apart.run("aba", set={"left": [True] * 3}).decoded == replaced_output(apart, "aba", {"left": [True] * 3})


def test_a_loaded_model_has_no_selectors_as_written(tmp_path: Path) -> None:
    """What its tables cannot tell is refused: variables shared with others, and those behind simpler selectors."""
    parity = rasp.Map(lambda i: i % 2, rasp.indices).named("parity")
    odd = rasp.Select(parity, rasp.tokens, lambda key, _: key == 1)
    first = rasp.Select(rasp.indices, rasp.tokens, lambda key, _: key == 0)
    again = rasp.Map(lambda i: i % 2, rasp.indices).named("again")
    program = (rasp.SelectorWidth(odd | first).named("width") * parity + again).named("out")
    tracr.compile(program, "ab", 4).save(tmp_path / "model")
    model = load_compiled(tmp_path / "model")
    assert model.run("aba", set={"width": [1, 2, 3]}).decoded == [0, 3, 0]
    with pytest.raises(tracr.InputError, match="selector of width was simplified"):
        model.run("aba", set={"parity": [1, 1, 1], "again": [1, 1, 1]})
    plain = tracr.compile(rasp.SequenceMap(lambda x, y: (x, y), parity, again), "ab", 4)
    plain.save(tmp_path / "plain")
    loaded = load_compiled(tmp_path / "plain")
    assert loaded.variables.missing == plain.variables.missing
    with pytest.raises(tracr.InputError, match="cannot be set alone"):
        loaded.run("aba", set={"parity": [1, 1, 1]})
    assert loaded.run("aba", set={"parity": [1, 1, 1], "again": [1, 1, 1]}).decoded == [(1, 1)] * 3


def test_a_comparison_that_was_taken_apart() -> None:
    """Of many keys made of token and position the parts are compared: setting the key would not be seen."""
    key = rasp.SequenceMap(lambda token, i: token + i / 100, rasp.tokens, rasp.indices).named("key")
    width = rasp.SelectorWidth(rasp.Select(key, key, rasp.Comparison.LT)).named("width")
    program = rasp.SequenceMap(lambda w, big: (w, big), width, rasp.Map(lambda x: x > 50, key))
    model = tracr.compile(program, range(60), 6)
    assert model.variables["key"].state == "bypassed"
    with pytest.raises(tracr.InputError, match="key cannot be set: select compares what it is computed from"):
        model.run([1, 2], set={"key": [2.0, 1.01]})
    assert model.run([1, 2], set={"tokens": [9, 3]}).decoded == model([9, 3])


@pytest.mark.parametrize("level", LEVELS)
def test_every_variable_is_listed(level: int) -> None:
    """What became of it, and the reason if it is not kept; an intervention on it says the same."""
    model = tracr.compile(number_times_flag(), "ab", 4, level=level)
    assert list(model.variables) == ["tokens", "num", "is_a", "product"]
    if level < 2:
        assert model.variables.settable == tuple(model.variables)
        assert model.variables["num"].hook == "blocks.0.hook_resid_post"
        assert model.variables.missing == {}
    else:
        assert model.variables["is_a"].state == "absorbed"
        assert "is_a: absorbed: the optimiser made it part of product; cannot be set" in model.show("variables")
        with pytest.raises(tracr.InputError, match="the optimiser made it part of product"):
            model.run("a", set={"is_a": [True]})
    with pytest.raises(tracr.TracrError, match="no variable 'nothing'"):
        model.variables["nothing"]


def test_sums_and_means_may_take_any_value() -> None:
    """Weights add and average any numbers, and the result is decoded as it is, not as the nearest value on inputs."""
    is_x, is_a = (rasp.numerical(rasp.tokens == token).named(f"is_{token}") for token in "xa")
    weighted = rasp.LinearSequenceMap(is_x, is_a, 2, -1).named("weighted")
    for level in (0, 1):
        model = tracr.compile(weighted, "abx", 4, level=level)
        assert model("xab") == [2, -1, 0]
        assert model.run("xab", set={"is_a": [True, True, False]}).decoded == [1, -1, 0]  # 1 is none of its values


def test_hooks_are_not_rounded() -> None:
    """What a hook makes of the logits is decoded as it is; without one, numbers are the nearest value."""
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "abcx", 4)

    def more(name: str, tensor: np.ndarray) -> np.ndarray | None:
        return tensor + 0.01 if name == "logits" else None

    assert model.run("xa", hook=more).decoded == pytest.approx([1.01, 0.51], abs=1e-6)
    assert model.run("xa", hook=lambda name, tensor: None).decoded == model.run("xa").decoded == model("xa") == [1, 0.5]


WRONG = {
    "no mapping": ([True, True], "set must map variables to values"),
    "a number": ({"is_x": 1}, "needs a list of values, one for every token, not 1"),
    "nothing": ({"is_x": None}, "needs a list of values"),
    "a set": ({"is_x": {True, False}}, "needs a list of values"),
    "a string": ({"is_x": "ab"}, "is_x cannot be 'a'"),
    "a wrong length": ({"is_x": [True] * 3}, "a value for every token: 2 of them, not 3"),
    "a wrong value": ({"is_x": [True, 7]}, "is_x cannot be 7"),
    "an unhashable value": ({"is_x": [[True], [False]]}, r"is_x cannot be \[True\]"),
    "a matrix": ({"is_x": np.ones((2, 2))}, r"is_x cannot be \[1.0, 1.0\]"),
    "a key that is no name": ({3: [True, True]}, "a variable is named by its label"),
    "an expression": ({rasp.tokens: ["a", "b"]}, "write its label, 'tokens'"),
    "an unknown name": ({"nothing": [1, 1]}, "there are indices, tokens, is_x"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_named(mistake: str) -> None:
    """Wrong shapes, kinds and values: an InputError that says what to write."""
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "abcx", 5)
    change, message = WRONG[mistake]
    with pytest.raises(tracr.InputError, match=message) as refused:
        model.run("aa", set=change)  # type: ignore[arg-type]
    assert "hint:" in str(refused.value)


def test_batches_need_values_for_every_input() -> None:
    """A list for each; arrays do; PAD may have values, which are left out."""
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "abcx", 5)
    with pytest.raises(tracr.InputError, match="values for 1 inputs, but there are 2 inputs"):
        model.run([list("aa"), list("ab")], set={"is_x": [[True, True]]})
    with pytest.raises(tracr.InputError, match="needs a list of values"):
        model.run([list("aa"), list("ab")], set={"is_x": [True, True]})
    array: Any = np.array([1, 0])
    assert model.run("aa", set={"is_x": array}).decoded == [1, 0.5]
    assert model.run("aa", set={"tokens": "xa"}).decoded == [1, 0.5]
    padded = ["a", "a", "pad"]
    for values in ([True, False], [True, False, True]):
        assert model.run(padded, set={"is_x": values}).decoded == [1, 0.5, "pad"]


def test_setting_what_breaks_a_proof_counts_as_an_error() -> None:
    """Position 0 is always there, unless positions are set otherwise: the default was proved away."""
    model = tracr.compile(rasp.Aggregate(rasp.Select(rasp.indices, 0, rasp.Comparison.EQ), rasp.tokens), "ab", 2)
    number = locations(model.program, model.layout)["indices"].variable.node
    assert number is not None
    node = model.program.sops[number]
    assert not evaluate_batch(model.program, ["a"], {node.id: np.array([[0]], np.int32)}).errors[0]
    assert evaluate_batch(model.program, ["a"], {node.id: np.array([[1]], np.int32)}).errors[0]


def test_setting_a_folded_variable() -> None:
    """A folded variable is set in its readers' activations; also two together, one read through the other."""
    is_x, is_a = (rasp.numerical(rasp.tokens == token).named(f"is_{token}") for token in "xa")
    weighted = rasp.LinearSequenceMap(is_x, is_a, 2, -1).named("weighted")
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    program = rasp.Aggregate(before, weighted).named("mean")
    with pytest.raises(tracr.InputError, match=r"not have all of tokens\)[\s\S]*factor"):  # `weighted` is embedded
        tracr.compile(program, "abx", 4, level=2).run("xa", set={"is_x": [0, 1]})
    model = tracr.compile(program, "abx", 4, level=2, passes={"factor": False})
    assert set(folded(model.program, model.layout)) == {"is_x", "is_a", "weighted"}
    assert model("xa") == [2.0, 0.5]
    assert model.run("xa", set={"is_x": [0, 1]}).decoded == [0.0, 0.5]
    assert model.run("xa", set={"is_x": [0, 1], "is_a": [1, 0]}).decoded == [-1.0, 0.5]
    assert model.run("xa", set={"weighted": [0, 2]}).decoded == [0.0, 1.0]
    assert model.run("xa", set={"is_x": [1, 1], "weighted": [0, 2]}).decoded == [0.0, 1.0]
    assert model.run([list("xa"), list("bbb")], set={"is_x": [[1, 1], [1, 0, 0]]}).decoded == [
        [2.0, 1.5],
        [2.0, 1.0, 2 / 3],
    ]
    assert tracr.compile(is_x, "abx", 4, level=2).run("ax", set={"is_x": [1, 0]}).decoded == [1, 0]


def test_setting_a_folded_variable_that_is_not_all_there() -> None:
    """3x - 1.5 (2x - y) is 1.5y: the x that the variable is made of is nowhere."""
    x, y = rasp.numerical(rasp.tokens), rasp.numerical(rasp.indices)
    inner = rasp.LinearSequenceMap(x, y, 2, -1).named("inner")
    model = tracr.compile(rasp.LinearSequenceMap(x, inner, 3, -1.5), (1, 2), 3, level=2)
    with pytest.raises(tracr.InputError, match=r"does not have all of tokens\)[\s\S]*level 1"):
        model.run([1, 2], set={"inner": [2, 1]})


def test_setting_a_folded_variable_that_a_merged_head_blurs() -> None:
    """A head with the same weights reads the same from tokens themselves: setting the variable is refused."""
    same = rasp.Map(lambda x: x, rasp.tokens).named("same")
    one = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("one")
    other = rasp.SelectorWidth(rasp.Select(same, rasp.tokens, rasp.Comparison.EQ)).named("other")
    program = rasp.SequenceMap(lambda x, y: (x, y), one, other)
    merged = tracr.compile(program, "ab", 3, level=2, passes={"share": False})
    with pytest.raises(tracr.InputError, match=r"merged with a head that does not[\s\S]*merge_heads"):
        merged.run("ab", set={"same": ["a", "a"]})
    apart = tracr.compile(program, "ab", 3, level=2, passes={"share": False, "merge_heads": False})
    assert apart.run("ab", set={"same": ["a", "a"]}).decoded == [(1, 2), (1, 0)]
