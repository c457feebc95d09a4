"""Weights and values at the ends of the formats, where a bound of the checker was too small or was rounded away.

Each model is wrong in some execution that the arithmetic allows; an earlier checker accepted it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.certificate.check_cases import Parsed, stored_network
from tests.certificate.hostile_models import Altered
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp
from tracr_check import ARITHMETICS
from tracr_check.aggregate import Reading
from tracr_check.boxes import Read, rounded
from tracr_check.verdict import Rejected


def compiled(program: Any, **options: Any) -> CompiledModel:
    """A small model."""
    return tracr.compile(program, vocab="abc", max_seq_len=6, **options)


def first() -> Any:
    """The first token, at every position."""
    nothing = rasp.Map(lambda place: 0, rasp.indices)
    return rasp.Aggregate(rasp.Select(rasp.indices, nothing, rasp.Comparison.EQ), rasp.tokens).named("first")


def hist() -> Any:
    """How often a token occurs."""
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist")


@pytest.mark.parametrize("arithmetic", ["float32", "float32-leak", "float32-fused", "float64", "bfloat16"])
def test_equal_scores_are_not_apart(arithmetic: str) -> None:
    """All scores are 2^62. In float64, 2^62 - 104 is 2^62."""
    model = compiled(first(), dtype="bfloat16" if arithmetic == "bfloat16" else "float32")
    weights = {name: array.copy() for name, array in model.parameters.named()}
    for name, array in weights.items():
        if name.rpartition(".")[2] in ("W_Q", "W_K", "b_Q", "b_K"):
            array[:] = 0.0
            if name.endswith(("b_Q", "b_K")):
                array[..., 0] = 2.0**31
    wrong = model.with_weights(weights)
    assert wrong("abcb") != model("abcb")
    assert not wrong.certify(arithmetic).accepted


def flushed(array: NDArray[Any]) -> NDArray[np.float32]:
    """float16 whose small numbers are replaced by 0."""
    stored = array.astype(np.float16).astype(np.float32)
    return np.where(np.abs(stored) < 2.0**-14, np.float32(0), stored)


def test_a_share_that_is_flushed_before_it_is_written_is_rejected() -> None:
    """The value is divided by 2^14, and W_O multiplied by it: the head gives less than float16 must hold."""
    model = compiled(hist(), dtype="float16")
    assert model.certify("float16").accepted
    weights = {name: array.copy() for name, array in model.parameters.named()}
    weights["blocks.0.attn.W_V"] *= 2.0**-14
    weights["blocks.0.attn.W_O"] *= 2.0**14
    logits = stored_network(weights, model.encode("aaabbc"), flushed)
    assert model.outputs[0].codes(logits[:, 1:]).tolist()[0] != [2, 2, 2, 1, 1, 0]
    assert not model.with_weights(weights).certify("float16").accepted


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16"])
def test_many_products_that_are_flushed_are_rejected(arithmetic: str) -> None:
    """The logit of "b" is 2^127 times the sum of twelve products, each of 0.75 2^-126; flushed, all of them are 0."""
    model = tracr.compile(first(), vocab="ab", max_seq_len=3, dtype=arithmetic)
    altered = Altered(Parsed(model))
    layer = max(place for place, one in enumerate(altered.hints["layers"]) if any(one["heads"]))
    head, owners = f"blocks.{layer}.attn.", altered.hints["layers"][layer]["heads"][0]
    source = next(int(dim) for dim in owners if altered.weights["unembed.W_U"][int(dim), 1])
    component = np.flatnonzero(altered.weights[f"{head}W_O"][0][:, source])[0]
    value = altered.weights[f"{head}W_V"][0][:, component].copy()
    small, grown = altered.dimension(0.0), altered.dimension(0.0)
    for _ in range(12):
        altered.component(layer)
    altered.weights[f"{head}W_V"][0, : len(value), -12:] = value[:, None] * 1.5 * 2.0**-27
    altered.weights[f"{head}W_O"][0, -12:, small] = 2.0**-100
    altered.neuron({small: 2.0**99}, 0.0, {grown: 2.0**28}, layer)
    altered.weights["unembed.W_U"][[source, grown], 1] = 0.0, 1.0
    altered.weights["unembed.W_U"][:, 0] *= 4.0
    altered.hints["layers"][layer]["heads"][0][str(small)] = owners[str(source)]
    altered.hints["layers"][layer]["mlp"][str(grown)] = owners[str(source)]
    assert "largest logit" in altered.reason(arithmetic)


def test_flushed_numbers_grow_in_later_roundings() -> None:
    """Of 2^22 terms each product and each sum is flushed, and all later roundings are up: more than twice the terms."""
    a, terms = ARITHMETICS["float32"], 2**22
    later = np.log1p(2.0**-24) * np.arange(terms)
    lost = 2 * a.tiny * float(np.exp(later).sum())
    assert lost > 2 * (terms + 4) * a.tiny
    zero = np.zeros(1)
    reading = Reading(zero, zero, zero, (0.0, 0.0), 0.0, 0.0, 1.0, 0.1, 3, terms, a)
    assert lost < reading.alone(zero + 2.0**-1000)[0]
    assert reading.alone(zero)[0] == 0.0  # all products are 0
    assert lost < reading.flushed(None)


def test_a_chain_of_near_values_is_not_one_value() -> None:
    """0, 0.9e-9, 1.8e-9, ...: each is near the next one, but the last is far from the first."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    program = rasp.numerical(rasp.Map(lambda token: ord(token) - 97, rasp.tokens)).named("number")
    parsed = Parsed(tracr.compile(program, vocab=letters, max_seq_len=2))
    for sop in parsed.model["program"]["sops"]:
        if sop["encoding"] == "numerical":
            sop["domain"]["values"] = [0.9e-9 * place for place in range(26)]
    nothing = {name: np.zeros_like(array) for name, array in parsed.weights.items()}
    assert "may be read as another value" in parsed.reason(nothing)


def test_a_number_that_is_none_stays_none_in_bfloat16() -> None:
    """All bits of NaN set, rounded up, would be a zero."""
    every = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
    assert np.isnan(ARITHMETICS["bfloat16"].cast(every)).all()


def test_an_embedding_that_float64_cannot_hold_is_rejected() -> None:
    """2^53 + 1 may be stored as 2^53 or as 2^53 + 2; the checker computes in float64 itself."""
    altered = Altered(Parsed(compiled(hist())))
    one, other = altered.dimension(0.0, bos=2.0**53), altered.dimension(0.0, bos=2.0**53)
    altered.weights["pos_embed.W_pos"][0, one] = 1.0
    altered.component(0)
    dim = int(next(iter(altered.hints["layers"][0]["heads"][0])))
    altered.weights["blocks.0.attn.W_V"][0, [one, other], -1] = 1.0, -1.0
    altered.weights["blocks.0.attn.W_O"][0, -1, dim] = 1.0
    assert altered.reason("float64")


def test_a_sum_of_very_many_terms_has_no_bound() -> None:
    """2^24 roundings of 2^-24 each: k u / (1 - k u) would be negative, or nothing."""
    for one in ARITHMETICS.values():
        many = np.array([2.0, 2.0 ** (one.sum_bits - 3), 2.0**one.sum_bits, 2.0 ** (one.sum_bits + 2)])
        found = one.gamma(many)
        assert found[0] <= found[1] < np.inf
        assert (found[2:] == np.inf).all()


def test_rounding_may_make_a_sum_overflow() -> None:
    """Two million terms that add up to 59,000: each rounding may be up, and 66,000 is infinite in float16."""
    one, terms = np.ones((1, 1)), 2_000_000
    read = Read(59_000 * one, 59_000 * one, 59_000 * one, 0 * one, terms * one, 0 * one)
    assert 59_000 * float(np.exp(terms * np.log1p(2.0**-24))) > 65_504
    with pytest.raises(Rejected, match="too large"):
        rounded(read, ARITHMETICS["float16"])
    few = replace(read, count=1000 * one)
    assert rounded(few, ARITHMETICS["float16"]) > 0


def test_weights_without_end_are_rejected() -> None:
    """All of them together, and one matrix; they are counted before they are copied."""
    parsed = Parsed(compiled(hist()))
    rows = len(parsed.weights["unembed.W_U"])
    for columns, reason in ((2**26 // rows + 1, "weights"), (2**24 // rows + 1, "unembed.W_U has")):
        large = {**parsed.weights, "unembed.W_U": np.broadcast_to(np.float32(0), (rows, columns))}
        assert reason in parsed.reason(large)


def test_neurons_that_take_too_long_are_rejected() -> None:
    """400 pairs of parallel neurons, each of which writes into 300 dimensions."""
    altered = Altered(Parsed(compiled(hist())))
    second, first = altered.dimension([3.0, 1.0, 2.0]), altered.dimension([1.0, 2.0, 3.0])
    for _ in range(299):
        altered.dimension(0.0)
    mlp, width = "blocks.0.mlp.", first + 300
    parts = {"W_in": np.zeros((width, 800)), "b_in": np.arange(800.0), "W_out": np.zeros((800, width))}
    parts["W_in"][first], parts["W_in"][second] = 1.0, np.repeat(np.arange(1.0, 401.0), 2)
    parts["W_out"][:, first:] = 1.0
    for name, more in parts.items():
        altered.weights[mlp + name] = np.concatenate([altered.weights[mlp + name], more], axis=int(name == "W_in"))
    assert "too many joint values" in altered.reason()
