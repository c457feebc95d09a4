"""`run.variables` is what the interpreter says, and `model.read` reads it from the stream, or refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import same
from tests.interventions import replaced_output
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tracr.compress import exact_dim, superpose
from tracr.ir.domains import Finite
from tracr.ir.options import LEVELS
from tracr.model.reading import NOTHING
from tracr.model.residual import time_of
from tracr.natural import soften
from tracr.rasp import programs, rasp
from tracr.rasp.interpreter import evaluate
from tracr.values import Value

Make = Callable[[Any], Any]
VARIANTS: dict[str, Make] = {
    "compiled": lambda model: model,
    "rotated": lambda model: model.rotated(1),
    "layer_norm": lambda model: model.with_layer_norm(),
    "rotated, layer_norm": lambda model: model.rotated(2).with_layer_norm(),
    "noise": lambda model: model.with_noise(seed=3),
}
HIST = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=5)
SORT = tracr.compile(programs.make_sort_freq(5), vocab="abc", max_seq_len=5)


def places(run: Any) -> list[str]:
    """The activations of a run that hold the whole stream."""
    return [name for name in run if "resid" in name or name.endswith("hook_normalized")]


def wrong_readings(
    model: Any, inputs: Sequence[Sequence[Value]], *, maybe_nothing: bool = False
) -> tuple[int, list[str]]:
    """How many readings were compared, and those that are not the program's value."""
    run, compared, wrong = model.run([list(xs) for xs in inputs]), 0, []
    for label in run.variables:
        try:
            values = run.variables.rows(label)
        except tracr.InputError:  # the program raises on an input
            continue
        for at in places(run):
            try:
                read = model.read(run[at], label, at=at)
            except tracr.InputError:
                continue
            compared += 1
            for row, wanted in enumerate(values):
                got = read[row, 1 : len(wanted) + 1].tolist()
                right = (same(x, y, 1e-3) or (maybe_nothing and x is NOTHING) for x, y in zip(got, wanted, strict=True))
                if not all(right):
                    wrong.append(f"{label} at {at} on {inputs[row]}: {got}, not {wanted}")
    return compared, wrong


@mostly_compared()
@settings(max_examples=40, deadline=None)
@given(case=cases(), level=st.sampled_from(LEVELS), variant=st.sampled_from(list(VARIANTS)))
def test_the_stream_holds_the_programs_values(case: Case, level: int, variant: str) -> None:
    """Random programs, all levels and variants: wherever a variable is read, it has the program's value."""
    model = compile_case(case, level=level)
    assert wrong_readings(VARIANTS[variant](model), inputs_for(model, case, 6))[1] == []


@mostly_compared()
@settings(max_examples=25, deadline=None)
@given(case=cases(), level=st.sampled_from(LEVELS))
def test_variables_of_a_run_are_what_the_interpreter_says(case: Case, level: int) -> None:
    """Every expression of the program, shared or dropped by the compiler or not."""
    model = compile_case(case, level=level)
    for tokens in inputs_for(model, case, 4):
        values = model.interpret(tokens)
        for node, expression in zip(model.graph.nodes, model.expressions, strict=True):
            if node.is_selector:
                continue
            try:
                wanted = evaluate(expression, tokens, causal=model.options.causal)
            except tracr.TracrError:
                continue
            assert all(map(same, values[node.label], wanted)), (tokens, node.label)


@mostly_compared()
@settings(max_examples=25, deadline=None)
@given(case=cases(), level=st.sampled_from(LEVELS))
def test_whatever_the_labels_keep_can_be_read(case: Case, level: int) -> None:
    """A variable with all its directions in the stream is not refused, and one without any is.

    Level 2 may keep features of tokens that do not tell all tokens apart: those may be refused.
    """
    model = compile_case(case, level=level)
    for number in range(model.n_layers):
        for part in ("pre", "mid", "post"):
            at = f"blocks.{number}.hook_resid_{part}"
            for variable, slots in model.layout.slots.items():
                own = [one for one in model.layout.directions if one.variable is variable]
                if variable.node is None or variable.scratch or model.variables.get(variable.label) is None:
                    continue
                held = [one.held(time_of(at)) for one in own]
                domain = model.program.sops[variable.node].domain
                if isinstance(domain, Finite) and not variable.numerical and len(own) < len(domain.values):
                    continue
                if all(held) and (slots >= 0).all():
                    assert model.read(np.zeros((2, model.d_model)), variable.label, at=at).shape == (2,)
                elif not any(held):
                    with pytest.raises(tracr.InputError, match=r"not yet in|not in the stream any more"):
                        model.read(np.zeros(model.d_model), variable.label, at=at)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["hist", "sort", "frac_prevs"])
def test_superposed_models_read_right_or_nothing(name: str, level: int) -> None:
    """Where variables share dimensions, a value that is read is right; and most are read."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, min(example.max_seq_len, 4), level=level)
    small = superpose(model, exact_dim(model), 0)
    inputs = [list(example.vocab)[:3], [example.vocab[0]] * 3]
    assert small.d_model <= model.d_model
    compared, wrong = wrong_readings(small, inputs, maybe_nothing=True)
    assert compared
    assert wrong == []
    assert len(wrong_readings(small, inputs)[1]) < compared


def test_softened_models_are_read() -> None:
    """Codes that are a little off are still codes."""
    compared, wrong = wrong_readings(soften(HIST), ["abca", "ccb"])
    assert compared > 3
    assert wrong == []


def test_variables_follow_what_is_set() -> None:
    """Under set= the variables are those of the program with others replaced, and the stream holds them."""
    changes: dict[str, list[Value]] = {"hist": [1, 1, 2, 1]}
    run = SORT.run("abca", set=changes)
    assert run.variables["hist"] == [1, 1, 2, 1]
    assert run.variables["rarity"] == [-1, -1, -2, -1]
    assert run.variables["sort_freq"] == run.decoded == replaced_output(SORT, "abca", changes)
    assert run.variables["tokens"] == list("abca")
    for at in ("blocks.0.hook_resid_post", "blocks.3.hook_resid_mid"):
        assert SORT.read(run[at], "hist", at=at)[0, 1:].tolist() == [1, 1, 2, 1]
    assert SORT.interpret("abca", set=changes)["rarity"] == [-1, -1, -2, -1]


def test_what_a_hook_does_is_read_and_not_in_the_variables() -> None:
    """The variables are the program's; reading shows what the stream holds."""
    at = "blocks.0.hook_resid_post"
    slots = [one.index for one in HIST.residual.of("hist")]

    def swap(name: str, tensor: Any) -> Any:
        return HIST.basis.put(tensor, slots, np.roll(tensor[..., slots], 1, axis=1)) if name == at else None

    run = HIST.run("aab", hook=swap)
    assert run.variables["hist"] == [2, 2, 1]
    assert HIST.read(run[at], "hist", at=at)[0, 2:].tolist() == [2, 2]


def test_padding_and_batches_have_the_form_of_the_output() -> None:
    """A batch gives a list per input, and PAD gives PAD."""
    run = HIST.run([["a", "a"], ["a", "b", "a"]])
    assert run.variables["hist"] == run.decoded == [[2, 2], [2, 1, 2]]
    pad = HIST.options.pad
    padded = HIST.run(["a", "a", pad])
    assert padded.variables["hist"] == padded.decoded == [2, 2, pad]
    assert set(run.variables) == set(HIST.variables)


def test_a_variable_without_a_value_is_refused() -> None:
    """Where the program raises, only what does not depend on it has values."""
    share = rasp.SequenceMap(lambda token, count: 1 / (count - 1 + (token == "a")), rasp.tokens, programs.make_hist())
    with pytest.warns(tracr.TracrWarning, match="division by zero"):
        model = tracr.compile((share.named("share") + rasp.indices).named("sum"), vocab="ab", max_seq_len=3)
    assert model.interpret("bba")["sum"] == [1, 2, 3]
    values = model.interpret("aab")
    assert [values["tokens"], values["hist"], values["indices"]] == [list("aab"), [2, 2, 1], [0, 1, 2]]
    for label in ("share", "sum"):
        with pytest.raises(tracr.InputError, match=f"{label} has no value on this input"):
            values[label]


@pytest.mark.parametrize(
    ("label", "at", "message"),
    [
        ("hist", "blocks.0.hook_resid_pre", "hist is not yet in the stream at .*: blocks.0.mlp writes it"),
        ("hits", "blocks.0.hook_resid_pre", "the program has no variable 'hits'"),
        ("hist", "blocks.7.hook_resid_pre", "the model has no activation"),
        ("hist", "blocks.0.ln1.hook_normalized", "the model has no layer norms"),
        ("hist", "blocks.0.attn.hook_q", "is not an activation of the residual stream"),
        ("tokens", "hook_pos_embed", "tokens is not in hook_pos_embed: it is in hook_embed"),
    ],
)
def test_refusals_say_where_to_read(label: str, at: str, message: str) -> None:
    """Names that do not exist, and places where the variable is not."""
    with pytest.raises(tracr.TracrError, match=message):
        HIST.read(np.zeros(HIST.d_model), label, at=at)


def test_a_cleared_variable_is_refused() -> None:
    """At level 2 a dimension is used again: the error says until when the variable is there."""
    example = programs.EXAMPLES["sort_freq"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2)
    cleared = [one for one in model.residual if one.until <= 2 * model.n_layers - 1 and one.variable in model.variables]
    assert cleared
    last = f"blocks.{model.n_layers - 1}.hook_resid_post"
    with pytest.raises(tracr.InputError, match=rf"not in the stream any more at {last}: blocks.\d.mlp clears it"):
        model.read(np.zeros(model.d_model), cleared[0].variable, at=last)


def test_unknown_variables_and_streams_are_refused() -> None:
    """A name, or a shape."""
    with pytest.raises(tracr.TracrError, match="did you mean hist"):
        HIST.run("ab").variables["hits"]
    with pytest.raises(tracr.InputError, match="numbers in its last axis"):
        HIST.read(np.zeros((2, 3)), "hist", at="blocks.0.hook_resid_post")


def test_twins_have_variables_but_no_directions() -> None:
    """The program's values are known, the directions are not."""
    twin: Any = tracr.load("docs/natural/twins/hist")
    assert twin.run([["a", "a"], ["b"]]).variables["hist"] == [[2, 2], [1]]
    assert twin.interpret("aab")["hist"] == [2, 2, 1]
    with pytest.raises(tracr.TracrError, match=r"a twin has no read.*directions of variables"):
        twin.read(np.zeros(64), "hist", at="blocks.0.hook_resid_post")
