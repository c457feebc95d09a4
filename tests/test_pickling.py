"""Pickles, copies and process pools: models travel as tables, expressions with their functions' names."""

from __future__ import annotations

import copy
import io
import multiprocessing
import operator
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, every_error, load_compiled
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tracr import errors
from tracr.ir.options import LEVELS
from tracr.model.variants.variant_model import with_other_weights
from tracr.rasp import programs, rasp
from tracr.rasp.traversal import topological

LAMBDA = rasp.Map(lambda token: token.upper(), rasp.tokens).named("upper")
VARIANTS = {
    "plain": lambda model: model,
    "rotated": lambda model: model.rotated(1),
    "noisy": lambda model: model.with_noise(1e-9),
    "with layer norms": lambda model: model.with_layer_norm(),
    "rotated with layer norms": lambda model: model.with_layer_norm().rotated(2),
    "changed weights": lambda model: with_other_weights(model, model.parameters.map(lambda w: 2 * w)),
}


def through_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def assert_same_model(model: tracr.DesignedModel, other: tracr.DesignedModel) -> None:
    """Weights, labels, options, stages."""
    assert type(other) is type(model)
    assert other.options == model.options
    assert other.residual == model.residual
    assert other.own_weights == model.own_weights
    assert type(other) is type(model)
    assert other.variant.steps == model.variant.steps
    assert np.array_equal(other.directions, model.directions)
    for stage in ("trace", "infer", "translate", "schedule", "construct", "assemble"):
        assert other.show(stage) == model.show(stage)
    for (name, before), (_, after) in zip(model.parameters.named(), other.parameters.named(), strict=True):
        assert np.array_equal(before, after), name


# Models


@mostly_compared()
@settings(max_examples=40)
@given(case=cases(), level=st.sampled_from(LEVELS), kind=st.sampled_from(list(VARIANTS)))
def test_a_model_comes_out_of_a_pickle_as_it_went_in(case: Case, level: int, kind: str) -> None:
    """Of random programs, at all levels, in all variants: same weights, labels and answers."""
    model = VARIANTS[kind](compile_case(case, level=level))
    again = through_pickle(model)
    assert_same_model(model, again)
    assert str(again.verify(200)) == str(model.verify(200))
    inputs = inputs_for(model, case, 10)
    assert list(map(repr, again(inputs))) == list(map(repr, model(inputs)))


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_library_models_come_out_of_a_pickle(name: str) -> None:
    """Those made of lambdas, too: a model has none."""
    example = programs.EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=2)
    model([example.vocab[0]])  # what a model keeps for its next call is not pickled
    assert_same_model(model, through_pickle(model))


def test_a_copy_shares_the_weights_and_a_deep_copy_has_its_own() -> None:
    """What is done to the weights of a deep copy is not done to the model."""
    model = tracr.compile(LAMBDA, "ab", 3).rotated(3)
    deep = copy.deepcopy(model)
    assert_same_model(model, deep)
    assert copy.copy(model).parameters is model.parameters
    deep.parameters.W_U[:] = 0
    assert model("ab") == copy.copy(model)("ab") == ["A", "B"]
    assert deep("ab") != ["A", "B"]


def test_whatever_models_give_can_be_pickled() -> None:
    """Runs, reports, ground truth, labels; loaded, stored and compressed models."""
    model = tracr.compile(LAMBDA, "abc", 3)
    run = through_pickle(model.run("ab"))
    assert run.decoded == ["A", "B"]
    assert np.array_equal(run.logits, model.run("ab").logits)
    assert run.model("c") == ["C"]
    assert through_pickle(model.verify()) == model.verify()
    assert through_pickle(model.ground_truth).to_json() == model.ground_truth.to_json()
    assert through_pickle(model.residual) == model.residual
    wrong = with_other_weights(model, model.parameters.map(np.zeros_like))
    assert str(through_pickle(wrong.verify())) == str(wrong.verify())
    assert copy.deepcopy(model.run("ab")).decoded == ["A", "B"]


def test_compressed_models_can_be_pickled() -> None:
    """With their projection, how it was found, and the model they come from."""
    model = tracr.compile(LAMBDA, "abc", 3)
    small = tracr.compress(model, method="exact")
    for again in (through_pickle(small), copy.deepcopy(small)):
        assert_same_model(model, again.compiled)
        assert again.labels == small.labels
        assert again.training == small.training
        assert again("abc") == small("abc")
        assert np.array_equal(again.W, small.W)


def test_loaded_models_can_be_pickled(tmp_path: Path) -> None:
    """They have no expressions at all."""
    model = tracr.compile(LAMBDA, "abc", 3).with_layer_norm()
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert_same_model(loaded, through_pickle(loaded))


def test_a_solved_schedule_is_pickled() -> None:
    """Unpickling needs no solver, and finds the same weights."""
    pytest.importorskip("ortools")
    model = tracr.compile(programs.make_reverse(rasp.tokens), "ab", 3, level=2, passes={"solve": True})
    assert_same_model(model, through_pickle(model))


def test_a_pickle_that_the_compiler_does_not_make_is_refused() -> None:
    """As a version with other constructions would meet it: no labels are put on weights they do not belong to."""
    model = tracr.compile(LAMBDA, "ab", 3)
    reduced: Any = model.__reduce__()
    restore, (parts,) = reduced
    with pytest.raises(tracr.FormatError, match=r"other labels(?s:.)*another version"):
        restore(replace(parts, labels=parts.labels[::-1]))
    with pytest.raises(tracr.FormatError, match=r"differs from the weights(?s:.)*another version"):
        restore(replace(parts, parameters=model.parameters.map(lambda array: array + 1)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 advises against fork
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_models_work_in_process_pools(method: str) -> None:
    """Called in another process, where it also raises as here."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no fork")
    model = tracr.compile(LAMBDA, "abc", 3)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert list(pool.map(model, ["ab", "c"])) == [["A", "B"], ["C"]]
        hist = programs.make_hist()
        assert pool.submit(hist, "aab").result() == [2, 2, 1]
        assert pool.submit(tracr.compile, hist, "ab", 3).result()("ab") == [1, 1]
        with pytest.raises(tracr.InputError, match="'z' at position 0") as caught:
            pool.submit(model, "z").result()
        assert caught.value.diagnostic.hint
        with pytest.raises(errors.UnpicklableError, match="top level of a module"):
            pool.submit(LAMBDA, "ab").result()


@pytest.mark.slow
def test_torch_saves_models_and_modules() -> None:
    """`torch.save` of a model, and of the module it becomes."""
    torch = pytest.importorskip("torch")
    model = tracr.compile(LAMBDA, "abc", 3)
    for thing in (model, model.to_torch()):
        buffer = io.BytesIO()
        torch.save(thing, buffer)
        again = torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
        compiled = again if isinstance(again, tracr.DesignedModel) else again.to_compiled()
        assert_same_model(model, compiled)


# Expressions


@settings(max_examples=60)
@given(case=cases())
def test_an_expression_comes_out_of_a_pickle_as_it_went_in(case: Case) -> None:
    """Same meaning, names, places; what was shared still is."""
    program = case.program
    again = through_pickle(program)
    before, after = topological([program]), topological([again])
    assert [repr(expr) for expr in after] == [repr(expr) for expr in before]
    assert [(expr.origin, expr.depth) for expr in after] == [(expr.origin, expr.depth) for expr in before]
    for xs in case.inputs(5):
        assert repr(case.expected(again, xs)) == repr(case.expected(program, xs))


@pytest.mark.parametrize("name", ["length", "hist", "hist2", "frac_prevs", "reverse", "sort_unique", "sort_composite"])
def test_library_programs_without_lambdas_can_be_pickled(name: str) -> None:
    """They are made of comparisons and operators."""
    program = programs.EXAMPLES[name].program
    assert repr(through_pickle(program)) == repr(program)


def test_sharing_survives() -> None:
    """Inside an expression and between expressions; `rasp.tokens` is itself everywhere."""
    is_a = rasp.tokens == "a"
    both = rasp.SequenceMap(operator.and_, is_a, is_a)
    one, two, three = through_pickle([is_a, both, {"named": both.named("x")}])
    assert two.fst is two.snd is one
    assert three["named"].fst is one
    for source in (rasp.tokens, rasp.indices, rasp.length):
        assert through_pickle(source) is source
    assert through_pickle(rasp.tokens.named("word")).name == "word"
    assert copy.deepcopy(both) is both
    again: Any = copy.deepcopy([is_a, both])[1]
    assert again.fst is is_a


def test_merged_selectors_and_weighted_sums_can_be_pickled() -> None:
    """What the package builds of named functions has no lambdas either."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    same = rasp.Select(rasp.indices, 2, rasp.Comparison.EQ)
    for selector in (
        rasp.selector_and(before, same),
        rasp.selector_or(before, same),
        rasp.selector_not(before),
        rasp.selector_not(rasp.selector_and(same, before)),
    ):
        assert isinstance(selector, rasp.Select)
        assert through_pickle(selector)("abcd") == selector("abcd")
    weighted = rasp.LinearSequenceMap(rasp.indices, rasp.length, 2, -1)
    assert through_pickle(weighted)("abc") == weighted("abc") == [-3, -1, 1]


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_deep_programs_can_be_pickled(protocol: int) -> None:
    """Thousands of operations, with a recursion limit of a thousand."""
    chain: rasp.SOp = rasp.indices
    for _ in range(3_000):
        chain = rasp.SequenceMap(max, chain, rasp.indices)
    fused: rasp.SOp = rasp.indices
    for _ in range(3_000):
        fused = fused + 1
    assert sys.getrecursionlimit() <= 3_000
    deep, flat = pickle.loads(pickle.dumps([chain, fused], protocol))
    assert deep.depth == chain.depth == 3_000
    assert deep("ab") == [0, 1]
    assert flat("ab") == [3_000, 3_001]


def test_a_lambda_is_refused_with_advice() -> None:
    """Wherever it is; the error is what users of pickle catch, and a TracrError."""
    hidden = rasp.Aggregate(rasp.Select(rasp.indices, LAMBDA, rasp.Comparison.TRUE), rasp.indices) + 1
    for expr in (LAMBDA, hidden, LAMBDA == "A", rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: True)):
        with pytest.raises(pickle.PicklingError, match="<lambda>") as caught:
            pickle.dumps(expr)
        assert isinstance(caught.value, tracr.ExpressionError)
        assert "def at the top level" in caught.value.diagnostic.hint


def test_libraries_that_send_code_take_lambdas() -> None:
    """They are asked before anything is refused."""
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(LAMBDA == "A"))("ab") == [True, False]


# Errors


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_errors_come_back_from_other_processes_as_they_were(kind: type[errors.TracrError]) -> None:
    """Message, hint, place and notes: not one of them twice or cut."""
    if kind is errors.InternalError:
        error: errors.TracrError = kind("what \x1b" + "long " * 500)
    else:
        error = kind("what \x1b" + "long " * 500, expression=LAMBDA, hint="do \x1b" + "this " * 500)
    error.add_note("seen on a Monday")
    for again in (through_pickle(error), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args
        assert again.diagnostic == error.diagnostic
        assert again.__notes__ == ["seen on a Monday"]
