"""Passes and options of the optimiser: what each does to a small program, and that together they change no answer.

A new pass or option needs a program in `SMALL`. `python -m tests.compiler.test_passes` writes the texts anew; read what
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import all_inputs, assert_agrees, compile_quietly, same
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import slow, usual
from tracr import CompiledModel
from tracr.ir.switches import OPTIONS, PASSES
from tracr.rasp import programs, rasp
from tracr.rasp.programs.brackets import make_shuffle_dyck
from tracr.rasp.rasp import Comparison, SOp, Value
from tracr.runtime.table_interpreter import evaluate_batch

FOLDER = Path(__file__).parent.parent / "golden" / "passes"
EVERYTHING = rasp.Select(1, 1, Comparison.TRUE).named("everything")
SO_FAR = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("so_far")
IS_A = (rasp.tokens == "a").named("is_a")


class Small(NamedTuple):
    """A program that shows what a pass does, and what to compile it for."""

    program: SOp | dict[str, SOp]
    vocab: Sequence[Value] = "abc"
    max_seq_len: int = 4


def fraction(token: str) -> SOp:
    """How much of the input so far a token is."""
    return rasp.Aggregate(SO_FAR, rasp.numerical(rasp.tokens == token).named(f"is_{token}")).named(f"fraction_{token}")


def pair(name: str, fst: SOp, snd: SOp) -> SOp:
    """Both values."""
    return rasp.SequenceMap(lambda x, y: (x, y), fst, snd).named(name)


COUNT = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)).named("count")
ALWAYS_TWO = rasp.Map(lambda token: 2, rasp.tokens).named("two")
PREVIOUS = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ), rasp.tokens).named("previous")
BALANCE = (fraction("a") - fraction("b")).named("balance")
REPEATED = rasp.SequenceMap(lambda n, token: n > 1 and token == "a", COUNT, rasp.tokens).named("repeated")

SMALL = {
    "share": Small(pair("alike", *(rasp.Map(lambda t: t in "ab", rasp.tokens).named(name) for name in ("fst", "snd")))),
    "constants": Small(rasp.SequenceMap(lambda n, two: n * two, COUNT, ALWAYS_TWO).named("doubled")),
    "kinks": Small(rasp.SequenceMap(lambda x, y: x + y, rasp.tokens, rasp.indices).named("sum"), range(6), 6),
    "rank": Small(PREVIOUS, "abc", 12),
    "bits": Small(rasp.Map(lambda token: token % 3 == 0, rasp.tokens).named("multiple"), range(1100), 2),
    "prune": Small(rasp.Aggregate(rasp.Select(rasp.tokens, PREVIOUS == "a", lambda k, q: q), rasp.indices).named("p")),
    "merge_heads": Small(BALANCE),
    "fold": Small(fraction("a")),
    "simplify": Small(pair("place", rasp.SelectorWidth(SO_FAR).named("width"), rasp.tokens)),
    "fuse": Small(pair("marked", REPEATED, rasp.tokens)),
    "sums": Small(((fraction("a") > 0.5) & (fraction("b") > 0.3) & (fraction("c") > 0)).named("all_three")),
    "linear_tables": Small(programs.make_reverse(rasp.tokens)),
    "match": Small(programs.make_reverse(rasp.tokens)),
    "factor": Small(programs.make_reverse(rasp.tokens)),
    "few_bits": Small(PREVIOUS, range(20)),
    "schedule": Small(make_shuffle_dyck(["()", "{}"]), "(){}", 5),
    "solve": Small(make_shuffle_dyck(["()", "{}"]), "(){}", 5),
    "reuse": Small(rasp.SelectorWidth(rasp.Select(COUNT, COUNT, Comparison.EQ)).named("as_frequent")),
    "share_neurons": Small({"zero": (BALANCE == 0).named("zero"), "less": (BALANCE < 0).named("less")}),
}


SWITCHES = {**PASSES, **OPTIONS}
LEVEL_OF = {name: one.level for name, one in SWITCHES.items() if one.level is not None}
AUTOMATIC = sorted(LEVEL_OF)
LIBRARY = list(programs.EXAMPLES)


def compiled(name: str, *, on: bool) -> CompiledModel:
    """The small program of a pass, at its level, with it or without."""
    return tracr.compile(*SMALL[name], level=LEVEL_OF.get(name, 2), passes={name: on})


def size(model: CompiledModel) -> tuple[int, ...]:
    """Layers, dimensions, heads, neurons and parameters."""
    layers = model.parameters.layers
    heads, neurons = sum(len(layer.W_Q) for layer in layers), sum(layer.W_in.shape[1] for layer in layers)
    return model.n_layers, model.d_model, heads, neurons, model.n_parameters


def text(name: str) -> str:
    """The components before and after."""
    parts = []
    for title, on in (("without", False), ("with", True)):
        model = compiled(name, on=on)
        layers, dimensions, heads, neurons, parameters = size(model)
        sizes = f"{layers} layers, {dimensions} dimensions, {heads} heads, {neurons} neurons, {parameters} parameters"
        parts.append(f"== {title} {name}: {sizes}\n{model.show('lower')}\n{model.show('schedule')}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("name", SWITCHES)
def test_every_pass_before_and_after(name: str) -> None:
    """Every pass, and every option, has a small program that it makes smaller, as kept in tests/golden/passes."""
    assert name in SMALL, f"add a program to SMALL that shows what {name} does"
    if name == "solve":
        pytest.importorskip("ortools")
    assert text(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    without, with_it = compiled(name, on=False), compiled(name, on=True)
    assert with_it.n_layers <= without.n_layers
    assert with_it.n_parameters < without.n_parameters or name == "solve"  # the heuristic may be as good
    assert with_it.n_parameters <= without.n_parameters
    assert without.verify(500)
    assert with_it.verify(500)


@pytest.mark.parametrize("name", [*LIBRARY[::3], *slow(name for name in LIBRARY if name not in LIBRARY[::3])])
def test_no_pass_makes_a_program_of_the_library_larger(name: str) -> None:
    """Level 2 with all passes has no more layers than with one of them switched off, nor, with as many, parameters."""
    example = programs.EXAMPLES[name]
    best = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2)
    for one in AUTOMATIC:
        without = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2, passes={one: False})
        assert (best.n_layers, best.n_parameters) <= (without.n_layers, without.n_parameters), one


def check(case: Case, passes: set[str]) -> None:
    """Compile with just these passes: the model, and the program it was made of, give the interpreter's answers."""
    program, inputs = case.program, case.inputs(10)
    model = compile_case(case, passes=passes)
    assert_agrees(model, program, inputs, singles=2)
    evaluation = evaluate_batch(model.program, inputs)
    accepted = [xs for xs, error in zip(inputs, evaluation.errors, strict=True) if not error]
    expected = evaluate_batch(model.program, accepted).outputs()
    for name, rows in evaluate_batch(model.circuit.rewriting.applied(model.program), accepted).outputs().items():
        for row, wanted in zip(rows, expected[name], strict=True):
            assert all(map(lambda a, b: same(a, b, 1e-9), row, wanted)), (name, row, wanted)


@mostly_compared()
@given(case=cases(max_ops=10), passes=st.sets(st.sampled_from(AUTOMATIC)))
@example(Case(39735, (-1, 0, 0.5), 6, 3, False, False), {"fold", "linear_tables", "sums"})  # functions of sums at PAD
@example(Case(3, ("a", "b", "c"), 5, 2, False, False), {"simplify", "fold", "linear_tables"})  # choices for gone nodes
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_passes_give_the_same_answers(case: Case, passes: set[str]) -> None:
    """Random programs, causal or not, padded and not, with a random set of passes."""
    check(case, passes)


@pytest.mark.slow
@mostly_compared(0.9)
@given(case=cases(max_ops=14, max_seq_len=8), passes=st.sets(st.sampled_from(AUTOMATIC)))
@settings(max_examples=usual(500, long=1500), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_passes_give_the_same_answers_at_length(case: Case, passes: set[str]) -> None:
    """Hundreds of them, longer ones too."""
    check(case, passes)


def test_a_value_that_is_never_taken_is_not_read() -> None:
    """Fused, a table is constant, and all that its reader asks is whether it is the other value."""
    check(Case(6, (False, True), 10, 3, causal=True), {*AUTOMATIC})


def smallest(program: SOp, vocab: str = "abc", max_seq_len: int = 4, **options: Any) -> CompiledModel:
    """Level 2, compared with the interpreter on every input."""
    model = compile_quietly(program, vocab, max_seq_len, level=2, **options)
    assert_agrees(model, program, all_inputs(tuple(vocab), max_seq_len), singles=3)
    return model


# simplify


@pytest.mark.parametrize("causal", [False, True])
def test_what_no_token_influences_needs_no_head(causal: bool) -> None:
    """Widths and means that depend on the position only are known when compiling."""
    mean = rasp.Aggregate(SO_FAR, rasp.indices)
    program = rasp.SequenceMap(lambda x, y: x + 2 * y, rasp.SelectorWidth(SO_FAR), mean)
    model = smallest(program, causal=causal)
    assert not any(len(layer.W_Q) for layer in model.parameters.layers)


def test_a_width_of_everything_is_a_table_of_the_length() -> None:
    """One head counts the tokens for both."""
    twice = rasp.Map(lambda n: 2 * n, rasp.SelectorWidth(EVERYTHING))
    model = smallest(pair("lengths", rasp.length, twice))
    assert sum(len(layer.W_Q) for layer in model.parameters.layers) == 1


def test_a_table_that_depends_on_one_side_reads_one_side() -> None:
    """`x and True`, and a pair of an s-op with itself."""
    constant = rasp.Map(lambda token: True, rasp.tokens)
    for program in (
        rasp.SequenceMap(lambda x, y: x and y, IS_A, constant),
        rasp.SequenceMap(lambda x, y: x + y, rasp.tokens, rasp.tokens),
    ):
        assert smallest(program).n_layers == 0


def test_constant_terms_join_the_constant() -> None:
    """A weighted sum with something constant reads the rest."""
    three = rasp.numerical(rasp.Map(lambda token: 3, rasp.tokens)).named("three")
    model = smallest(rasp.Map(lambda x: x > 5.5, rasp.LinearSequenceMap(fraction("a"), three, 1, 2).named("sum")))
    assert "three" not in {dimension.variable for dimension in model.residual}


def test_what_returns_its_input_is_its_input() -> None:
    """A mean turned into a float, as it was."""
    program = (rasp.numerical(rasp.Map(float, fraction("a"))).named("again") + fraction("b")).named("total")
    model = smallest(program)
    assert model.circuit.rewriting.absorbed == {"again": "the same as fraction_a"}
    assert model.n_layers == 1


# fuse


def test_functions_of_functions_are_one() -> None:
    """Tables of tables of two s-ops, with `None` on the way, take one MLP; what was between is listed."""
    small = rasp.SequenceMap(lambda n, token: None if token == "c" else n, COUNT, rasp.tokens)
    odd = rasp.SequenceMap(lambda n, token: (n % 2, token), small.named("small"), rasp.tokens).named("odd")
    fused, apart = smallest(odd), smallest(odd, passes={"fuse": False})
    assert (fused.n_layers, apart.n_layers) == (2, 3)
    assert fused.circuit.rewriting.absorbed == {"small": "part of odd"}
    assert "absorbed small: part of odd" in fused.show("translate")
    assert "absorbed small: part of odd" in fused.ground_truth.show()
    with pytest.raises(tracr.InputError, match="small cannot be set: the optimiser made it part of odd"):
        fused.run("a", set={"small": [1]})


def test_what_others_read_stays() -> None:
    """An output that a fused operation was a function of is still there."""
    model = tracr.compile({"repeated": REPEATED, "marked": pair("marked", REPEATED, rasp.tokens)}, "abc", 4, level=2)
    assert model("aba")["marked"] == [(True, "a"), (False, "b"), (True, "a")]
    assert model("aba")["repeated"] == [True, False, True]
    assert model.verify()


def test_inputs_that_raise_still_do() -> None:
    """Where a step on the way raises the model is not asked; everywhere else it agrees."""
    risky = rasp.SequenceMap(lambda n, token: 1 // (4 - n) + (token == "a"), COUNT, rasp.tokens).named("risky")
    model = smallest(pair("risked", risky, rasp.tokens))
    result = model.verify()
    assert result
    assert result.errors == 3  # aaaa, bbbb, cccc


# sums


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("joined", ["and", "or"])
def test_a_chain_of_and_or_is_one_layer(count: int, joined: str) -> None:
    """However many conditions on numbers: at most one layer of neurons to find them, and one to join them."""
    conditions = [fraction(token) > 0.2 + 0.1 * place for place, token in enumerate("abcde"[:count])]
    program = conditions[0]
    for condition in conditions[1:]:
        program = program & condition if joined == "and" else program | condition
    model = compile_quietly(program, "abcde", 4, level=2)
    assert model.n_layers <= 2
    assert model.verify(2000)


def test_shuffle_dyck3_takes_three_layers() -> None:
    """Five without functions of sums."""
    program = make_shuffle_dyck(["()", "{}", "[]"])
    model = tracr.compile(program, "(){}[]", 6, level=2)
    assert model.verify(3000)
    assert model.n_layers == 3
    assert tracr.compile(program, "(){}[]", 6, level=2, passes={"sums": False}).n_layers == 5


def test_and_with_a_comparison_of_a_mean() -> None:
    """`x and y == 0`, for a mean y, is a threshold of x - y."""
    none_so_far = rasp.Map(lambda x: x == 0, fraction("b")).named("none_so_far")
    model = smallest(rasp.SequenceMap(lambda x, y: x and y, IS_A, none_so_far).named("both"))
    assert model.n_layers == 1
    assert model.circuit.rewriting.absorbed == {"none_so_far": "part of both"}


# share_neurons


def test_shared_neurons_are_one_part_of_the_circuit() -> None:
    """Groups of neurons that share some become one node, which writes both variables; setting one works as ever."""
    model = compiled("share_neurons", on=True)
    nodes = [node for node in model.ground_truth.nodes() if node.kind == "neurons"]
    assert {"zero", "less"} in [set(node.variables) for node in nodes]
    assert model.run("ab", set={"less": [True, True]}).decoded == {"zero": [False, True], "less": [True, True]}


def test_sharing_neurons_rounds_nothing() -> None:
    """Both variables hold bit for bit what they held apart."""
    models = [compiled("share_neurons", on=on) for on in (False, True)]
    inputs = [list(xs) for xs in all_inputs("abc", 4) if len(xs) == 4]
    streams = [model.run(inputs)["blocks.0.hook_resid_post"] for model in models]
    apart, shared = (stream[..., model.residual.indices("less")] for model, stream in zip(models, streams, strict=True))
    assert np.array_equal(apart, shared)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in SWITCHES:
        (FOLDER / f"{name}.txt").write_text(text(name), encoding="utf-8")
