from __future__ import annotations

import random
import shutil
import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.runtime.kernel.networks import random_network
from tracr.ir.domains import Finite
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.variants.variant_model import with_other_weights
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.forward import forward
from tracr.runtime.kernel import kernel
from tracr.runtime.kernel.kernel import Kernel

KERNEL: Any = vars(kernel)["_kernel"]  # the extension in C
needed = pytest.mark.skipif(KERNEL is None, reason="installed without a C compiler")


def test_is_built_where_there_is_a_compiler() -> None:
    assert KERNEL is not None or shutil.which("cc") is None


def _ids(model: tracr.CompiledModel) -> np.ndarray:
    """Random inputs with BOS in front, some of them padded."""
    rng = np.random.default_rng(0)
    vocabulary = model.vocabulary
    ids = rng.integers(len(vocabulary.tokens), size=(40, 1 + vocabulary.longest))
    ids[:, 0] = vocabulary.bos_id
    ids[20:, -1] = vocabulary.pad_id
    return ids


def _logits(model: tracr.CompiledModel, parameters: Parameters, ids: np.ndarray, causal: bool = False) -> np.ndarray:
    logits, numbers = Kernel(parameters, model.vocabulary, model.outputs, causal).logits(ids)
    assert numbers
    return logits


@needed
def test_biases_cancel_before_they_are_multiplied() -> None:
    """A key's bias, which the BOS direction cancels, once met a query's square first, and BOS's logit was lost."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    model = tracr.compile(rasp.SelectorWidth(same & before), range(1, 1001), 6, level=2)
    assert model([700, 3, 700, 1000, 1000, 700]) == [0, 0, 1, 0, 1, 2]


@needed
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort_freq", "dyck1", "detect_pattern", "closer"])
def test_is_the_forward_pass(name: str, causal: bool, level: int) -> None:
    example = EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, causal, level)
    ids = _ids(model)
    parameters = model.cast(np.float32)
    expected = forward(parameters, ids, np, causal=causal)
    np.testing.assert_allclose(_logits(model, parameters, ids, causal), expected, atol=3e-5)
    for codes, output in zip(model.codes(ids), model.outputs, strict=True):
        np.testing.assert_array_equal(codes, output.codes(expected))


@needed
@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_any_weights(seed: int, causal: bool) -> None:
    parameters, ids = random_network(np.random.default_rng(seed))
    model = tracr.compile(rasp.tokens, "ab", 2)
    expected = forward(parameters, ids, np, causal=causal)
    found = _logits(model, parameters.map(lambda array: array.astype(np.float32)), ids, causal)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-3 * max(1.0, np.abs(expected).max(initial=0)))


@needed
@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort_freq", "shuffle_dyck2"])
def test_calls_do_not_depend_on_those_before(name: str) -> None:
    """What a pass keeps for the next (memory, what a head attends to) is for inputs that ask the same only."""
    example = EXAMPLES[name]
    program = example.made_for(example.vocab, 9).program
    model, fresh = (tracr.compile(program, example.vocab, 9) for _ in range(2))
    rng = random.Random(0)
    for _ in range(200):
        count, length = rng.choice([1, 1, 1, 3, 9]), rng.choice([9, 9, 9, 1, 4])
        inputs = [[rng.choice(example.vocab[:2]) for _ in range(length)] for _ in range(count)]
        assert model(inputs) == fresh(inputs)
        fresh.__dict__.pop("_float32_kernel")


@needed
def test_the_exponential_is_exact_to_a_few_units() -> None:
    """One head that attends to BOS with score 0 and to token i with score -i/8 reads off e^(-i/8)."""
    scores = -np.arange(900) / 8
    count, one = len(scores), np.ones((1, 1, 1))
    W_E = np.zeros((count + 1, 3))
    W_E[:count, 0], W_E[:count, 1], W_E[:, 2] = scores, 1, 1
    layer = LayerParameters(
        W_Q=np.array([[[0], [0], [1.0]]]),
        W_K=np.array([[[1.0], [0], [0]]]),
        W_V=np.array([[[0], [1.0], [0]]]),
        W_O=np.concatenate([0 * one, 0 * one, one], axis=2),
        b_Q=np.zeros((1, 1)),
        b_K=np.zeros((1, 1)),
        b_V=np.zeros((1, 1)),
        b_O=np.zeros(3),
        W_in=np.zeros((3, 0)),
        b_in=np.zeros(0),
        W_out=np.zeros((0, 3)),
        b_out=np.zeros(3),
    )
    parameters = Parameters(W_E, np.zeros((2, 3)), (layer,), np.array([[0], [0], [1.0]]))
    ids = np.stack([np.full(count, count), np.arange(count)], axis=1)
    model = tracr.compile(rasp.tokens, "ab", 2)
    share = _logits(model, parameters.map(lambda array: array.astype(np.float32)), ids)[:, 1, 0] - 1
    expected = np.exp(scores) / (1 + np.exp(scores))
    assert np.abs(share - expected).max() < 4 * 2.0**-24
    assert share[0] == 0.5
    assert (share[scores < -88] == 0).all()


@needed
def test_weights_that_are_all_zero() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 4)
    assert not _logits(model, model.parameters.map(np.zeros_like), _ids(model)).any()


@needed
def test_biases_are_written_where_no_weight_is() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 4)
    first = model.parameters.layers[0]
    layer = {field.name: np.zeros_like(getattr(first, field.name)) for field in fields(LayerParameters)}
    layer["b_O"], layer["b_out"] = layer["b_O"] + 1, layer["b_out"] + 2
    biased = replace(model.parameters, layers=(LayerParameters(**layer),))
    ids = _ids(model)
    np.testing.assert_allclose(_logits(model, biased, ids), forward(biased, ids, np, causal=False))


@needed
def test_a_batch_in_parts_is_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "processors", lambda: 3)
    inputs = [list("abcab"), list("caabb"), list("bbbbc")] * 3_333
    threaded = tracr.compile(EXAMPLES["reverse"].program, "abc", 5)
    assert threaded(inputs) == [row[::-1] for row in inputs]
    monkeypatch.setattr(kernel, "processors", lambda: 1)
    ids = np.tile(_ids(threaded), (250, 1))
    alone = tracr.compile(EXAMPLES["reverse"].program, "abc", 5)
    np.testing.assert_array_equal(threaded.logits(ids), alone.logits(ids))


OUTPUTS: dict[str, Any] = {
    "categories": EXAMPLES["reverse"].program,
    "numbers": EXAMPLES["frac_prevs"].program,
    "any number": rasp.numerical(
        rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ), rasp.indices)
    ),
    "None": rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1), rasp.tokens),
    "None or a number": rasp.numerical(
        rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k < q), rasp.indices)
    ),
    "only None": rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.FALSE), rasp.indices),
    "two": {"reverse": EXAMPLES["reverse"].program, "hist": EXAMPLES["hist"].program},
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_answers_are_the_same_without_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tracr.compile(OUTPUTS[name], "abx", 9)
    inputs: list[Any] = [
        *[list("abx"[:size] * 3) for size in (1, 2, 3)],
        [list("abxab"), list("xxbab")],
        [list("abxab"), list("xx")],
        [*"ab", compiled.options.pad],
        "abx",
        ("a", "b"),
        [("a", "b"), ("b", "x")],
        [("a", "b"), ["b"]],
        np.array(["a", "b"]),
        [],
    ]
    with_kernel = [compiled(tokens) for tokens in inputs]
    monkeypatch.setattr(kernel, "_kernel", None)
    without = tracr.compile(OUTPUTS[name], "abx", 9)
    for tokens, answer in zip(inputs, with_kernel, strict=True):
        expected = without(tokens)
        assert repr(answer) == repr(expected) or np.allclose(answer, expected, atol=1e-6)


class Letters(str):
    """A string that says itself what is in it."""

    def __iter__(self) -> Any:
        return iter("aa")


class Tokens(list[str]):
    """A list that says itself what is in it."""

    def __iter__(self) -> Any:
        return iter("aa")


@needed
@pytest.mark.parametrize(
    "tokens",
    [
        *(["a", "?"], [["a"], ["?"]], ["a"] * 6, [["a"], "?"], [["a"], 3], [[], ["a"]], ["a", ["b"]], [["BOS"]]),
        *("", "a?", "aaaaaa", [["a"], ["a", "b"]], [["a"], "a"], ("a", "b"), 3, None, Letters("abc"), Tokens("abc")),
    ],
)
def test_what_is_not_plain_is_left_to_the_general_way(tokens: Any) -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 5)
    plain = model._kernel(np.float32)
    assert plain is not None
    assert plain.answer(tokens) is None
    assert plain.answer(list("abc")) == plain.answer("abc") == [1, 1, 1]


class Odd:
    """A token that raises when it is looked up."""

    def __hash__(self) -> int:
        raise ValueError("odd")


class Changing:
    """A token that may become another."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changing) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


@needed
def test_tokens_are_known_by_what_they_equal() -> None:
    words = tracr.compile(rasp.tokens, ("one", "two", 1000, 1.5), 5)
    for _ in range(3):  # other objects each time
        assert words(["".join(["o", "ne"]), "".join(["t", "wo"]), int("1000"), float("1.5")]) == [
            "one",
            "two",
            1000,
            1.5,
        ]
        assert words([1000.0, True + 999]) == [1000, 1000]
    token, first, second = (Changing(name) for name in "aab")
    model = tracr.compile(rasp.tokens, (first, second), 5)
    assert model([token])[0] is first
    token.name = "b"
    assert model([token])[0] is second


@needed
def test_errors_of_tokens_are_not_lost() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 5)
    with pytest.raises(tracr.InputError, match="cannot be looked up: ValueError: odd"):
        model(["a", Odd()])
    with pytest.raises(tracr.InputError, match="not in the vocabulary"):
        model(["a", {}])


class Clearing:
    """A token that empties a list when it is looked up."""

    def __init__(self, given: list[Any]) -> None:
        self.given = given

    def __hash__(self) -> int:
        self.given.clear()
        return hash("a")

    def __eq__(self, other: object) -> bool:
        return other == "a"


@needed
@pytest.mark.parametrize("batch", [False, True])
def test_a_list_may_change_while_it_is_read(batch: bool) -> None:
    """The list of a token, or the batch of its input, is gone when the next token is read: it is not read then."""
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 5)
    plain = model._kernel(np.float32)
    assert plain is not None
    for _ in range(50):
        given: list[Any] = []
        tokens = [Clearing(given), *("".join(["a", letter]) for letter in "bcde")]
        given += [tokens[:]] if batch else tokens
        assert plain.answer(given) is None


@needed
def test_strings_that_are_not_ascii() -> None:
    """Their characters are new objects each time."""
    model = tracr.compile(EXAMPLES["reverse"].program, "aé∀😀", 5)
    for _ in range(3):
        assert model("a😀∀é") == ["é", "∀", "😀", "a"]
    plain = model._kernel(np.float32)
    assert plain is not None
    assert plain.answer("😀a") == ["a", "😀"]


@needed
def test_only_ids_and_positions_that_there_are() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 5)
    for ids in ([[3, 9]], [[3, -1]], [[3] * 7]):
        with pytest.raises(IndexError) as refusal:
            model.logits(np.array(ids))
        assert isinstance(refusal.value, tracr.InputError)


@needed
def test_logits_that_are_not_numbers_are_told_of() -> None:
    model = tracr.compile(EXAMPLES["hist"].program, "abc", 5)
    (layer,) = model.parameters.layers
    huge = replace(layer, W_in=1e30 * layer.W_in, W_out=1e30 * layer.W_out)
    broken = with_other_weights(model, replace(model.parameters, layers=(huge,)))
    assert broken._kernel(np.float32) is not None
    with pytest.warns(RuntimeWarning, match="not numbers"):
        broken(list("abc"))


def test_what_the_kernel_is_not_for() -> None:
    model = tracr.compile(EXAMPLES["sort"].program, EXAMPLES["sort"].vocab, 4)
    assert model._kernel(np.float64) is None
    assert model.with_layer_norm()._kernel(np.float32) is None
    infinite = model.parameters.map(lambda array: array + np.inf)
    assert Kernel.of(infinite, model.vocabulary, model.outputs, causal=False) is None
    huge = replace(model.parameters, W_U=model.parameters.W_U * 1e38, W_E=np.full_like(model.parameters.W_E, 1e38))
    assert Kernel.of(huge, model.vocabulary, model.outputs, causal=False) is None
    large = replace(model.parameters, W_U=np.ones((kernel.FEW_WEIGHTS + 1, 1)))
    assert Kernel.of(large, model.vocabulary, model.outputs, causal=False) is None


@needed
def test_nothing_is_leaked() -> None:
    model = tracr.compile(EXAMPLES["reverse"].program, ("aa", "bb", "cc"), 5)
    domain = model.outputs[0].domain
    assert isinstance(domain, Finite)
    value = domain.values[0]
    model([["aa"] * 5] * 4)
    before = sys.getrefcount(value)
    for _ in range(100):
        model([["aa"] * 5] * 4)
        model(["aa", "bb"])
    assert abs(sys.getrefcount(value) - before) <= 1  # the last token that was met is kept
