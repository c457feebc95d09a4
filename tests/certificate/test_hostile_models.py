"""Models that are wrong in places where a rule might not look: every one is rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.certificate.check_cases import Exhaustive, Parsed, example, stored_network
from tests.certificate.hostile_models import (
    ALTERED,
    Altered,
    flushed,
    overflows_before_the_stream,
    pad_overflows,
    partial_sums_overflow,
    stored_before_its_bias,
)
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr_check import ARITHMETICS

SUMMED = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("before")


@pytest.mark.parametrize("what", ALTERED)
def test_altered_models_are_wrong_and_rejected(what: str) -> None:
    """Each of them gives a wrong answer, or none, on some input."""
    model = example("reverse", 2, 3)
    altered = Altered(Parsed(model))
    assert altered.reason() == ""
    ALTERED[what](altered)
    assert Exhaustive(model).wrong(altered.weights)
    assert altered.reason()


def test_pad_that_overflows_under_a_causal_mask_is_rejected() -> None:
    """Tokens do not see PAD, but a number that is not finite there reaches them."""
    model = tracr.compile(SUMMED, "abc", 3, causal=True)
    altered = Altered(Parsed(model))
    assert altered.reason() == ""
    pad_overflows(altered)
    assert Exhaustive(model).wrong(altered.weights)
    assert "too large" in altered.reason()


def test_numbers_that_may_be_flushed_are_rejected() -> None:
    """Right in float32; wrong in float16 if results below 2^-14 are replaced by 0, which its arithmetic allows."""
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="float16")
    altered = Altered(Parsed(model))
    assert altered.reason("float16") == ""
    flushed(altered)
    assert not Exhaustive(model).wrong(altered.weights)
    assert altered.reason() == ""
    ids = model.encode("cba")
    kept, lost = (stored_network(altered.weights, ids, stored) for stored in (in_float16, in_flushed_float16))
    assert model.outputs[0].codes(kept[:, 1:]).tolist() != model.outputs[0].codes(lost[:, 1:]).tolist()
    assert altered.reason("float16")


def test_sums_stored_before_their_bias_are_rejected() -> None:
    """Right in float32; wrong in bfloat16 where the product is stored before the bias is added, as torch does."""
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="bfloat16")
    altered = Altered(Parsed(model))
    assert altered.reason("bfloat16") == ""
    stored_before_its_bias(altered)
    assert not Exhaustive(model).wrong(altered.weights)
    assert altered.reason() == ""
    logits = stored_network(altered.weights, model.encode("cbb"), in_bfloat16)
    assert model.outputs[0].codes(logits[:, 1:]).tolist() == [[0, 0, 0]]
    assert "largest logit" in altered.reason("bfloat16")


def test_a_sum_that_overflows_before_the_stream_is_added_is_rejected() -> None:
    """Right in float32. In float16 the sum is infinite, and 0 times infinity reaches the tokens."""
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="float16")
    altered = Altered(Parsed(model))
    assert altered.reason("float16", padded=False) == ""
    overflows_before_the_stream(altered)
    assert altered.reason(padded=False) == ""
    with np.errstate(all="ignore"):
        assert np.isnan(stored_network(altered.weights, model.encode("cba"), in_float16)).all()
    assert "too large" in altered.reason("float16", padded=False)


@pytest.mark.parametrize(
    ("factor", "bias", "fits"), [(8.0, 0.0, True), (4096.0, 0.0, False), (14.0, 0.0, True), (14.0, -50_000.0, False)]
)
def test_products_of_a_head_that_overflow_and_cancel_are_rejected(factor: float, bias: float, fits: bool) -> None:
    """No number larger than float16 has occurs, not even in a sum that is computed in float32.

    14 times 2048 and its negative fit together, but not with a bias of -50,000: one of them and the bias are -78,672.
    """
    altered = Altered(Parsed(tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="float16")))
    partial_sums_overflow(altered, factor, bias)
    assert altered.reason(padded=False) == ""
    assert altered.reason("float16", padded=False).partition(" (")[0] == ("" if fits else "numbers too large")


@pytest.mark.parametrize(("size", "fits"), [(0.98e30, True), (0.99e30, False)])
def test_means_of_large_values_that_overflow_are_rejected(size: float, fits: bool) -> None:
    """In bfloat16 weights may add up to more than 1: the mean of equal values is larger than each of them."""
    altered = Altered(Parsed(tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="bfloat16")))
    dim = altered.dimension(size)
    altered.component(0)
    altered.weights["blocks.0.attn.W_V"][0, dim, -1] = 1.0
    assert altered.reason("bfloat16").partition(" (")[0] == ("" if fits else "numbers too large")


@pytest.mark.parametrize(("weight", "fits"), [(220.0, True), (260.0, False)])
def test_scores_that_overflow_are_rejected(weight: float, fits: bool) -> None:
    """Two tokens have a component each: their scores are 220² or 260², and float16 ends before 256².

    The largest components of queries and keys give twice 220², but no pair of a query and a key has both.
    """
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="float16")
    altered = Altered(Parsed(model))
    dims = [altered.dimension([float(token == own) for token in range(3)]) for own in range(2)]
    altered.head(dict.fromkeys(dims, weight), {}, None)
    assert altered.reason() == ""
    assert altered.reason("float16").partition(" (")[0] == ("" if fits else "scores may be too large")


@pytest.mark.parametrize(
    ("name", "added", "missing"), [("frac_prevs", "attn.b_O", "mlp.b_out"), ("sort", "mlp.b_out", "attn.b_O")]
)
def test_a_bias_without_heads_or_neurons_is_rejected(name: str, added: str, missing: str) -> None:
    """Layer 0 has no neurons (or no heads): tracr's backends leave out their bias, transformer_lens adds it."""
    model, tokens = example(name, 2, 4), (3, 1, 2, 1) if name == "sort" else "xaxb"
    altered = Altered(Parsed(model))
    owners = [hint for one in altered.hints["layers"][0]["heads"] for hint in one.items()]
    dim, owner = (owners or list(altered.hints["layers"][0]["mlp"].items()))[0]
    altered.hints["layers"][0]["mlp"][dim] = owner
    assert altered.reason() == ""
    altered.weights[f"blocks.0.{added}"][int(dim)] += 16.0
    altered.weights[f"blocks.0.{missing}"][int(dim)] -= 16.0
    found = model.with_weights(altered.weights)(tokens)
    assert found != model(tokens)
    weights = {one: array.astype(np.float32) for one, array in altered.weights.items()}
    logits = execute(weights, model.encode(tokens), causal=False, dot=ORDERS["blas"])[:, 1:]
    assert model.outputs[0].decode(model.outputs[0].codes(logits))[0].tolist() == found
    assert "belongs to no heads or neurons" in altered.reason()


def test_weights_with_two_roundings_are_rejected() -> None:
    """1 + 2^-11 + 2^-40 is 1 + 2^-10 in float16, or 1 if it is rounded to float32 first, as torch does."""
    model = tracr.compile(EXAMPLES["reverse"].program, "abc", 3, dtype="float16")
    altered = Altered(Parsed(model))
    altered.dimension([1 + 2.0**-11 + 2.0**-40, 1.0, 1.0])
    assert altered.reason() == ""
    assert "two roundings" in altered.reason("float16")
    altered.weights["embed.W_E"][0, -1] = 1 + 2.0**-11
    assert altered.reason("float16") == ""


def test_numbers_in_the_middle_are_rejected() -> None:
    """1.75 is nearer to the larger number; (a + b) / 2 is smaller, but a + (b - a) / 2 is 1.75."""
    low, high = -4.021906721552654, 7.521906721552653
    assert (low + high) / 2 < 1.75 == low + (high - low) / 2
    number = rasp.numerical(rasp.Map(lambda token: high if token == "b" else low, rasp.tokens)).named("number")
    model = tracr.compile(number, "ab", 2)
    altered = Altered(Parsed(model))
    assert altered.reason() == ""
    for name, array in altered.weights.items():
        altered.weights[name] = 0 * array
    altered.weights["embed.W_E"][:2, 0] = low, 1.75
    altered.weights["unembed.W_U"][0, 0] = 1.0
    assert model.with_weights(altered.weights)("ab") == [low, low]
    assert "another value" in altered.reason()


def in_bfloat16(array: NDArray[Any]) -> NDArray[np.float32]:
    return ARITHMETICS["bfloat16"].cast(array).astype(np.float32)


def in_float16(array: NDArray[Any]) -> NDArray[np.float32]:
    return array.astype(np.float16).astype(np.float32)


def in_flushed_float16(array: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers that are not normal in float16 are 0."""
    return np.where(np.abs(array) < 2.0**-14, 0, in_float16(array)).astype(np.float32)
