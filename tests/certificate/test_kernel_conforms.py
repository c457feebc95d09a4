"""The C kernel takes shares and sums from tables; they are those that the arithmetic float32 allows."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.certificate.check_cases import Parsed
from tests.certificate.hostile_models import Altered
from tracr.certificate.backends import kernel_backend
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp
from tracr.runtime.forward import forward
from tracr.runtime.kernel.kernel import BUILT, Kernel

WRONG = 2.0**10  # what the logit of 1 gets where no "b" is in the input


def counts_b() -> CompiledModel:
    """How many tokens are "b"."""
    letter = rasp.Map(lambda token: "b", rasp.tokens)
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, letter, rasp.Comparison.EQ)).named("count")
    return tracr.compile(count, vocab="abc", max_seq_len=6)


def with_a_share_of_bos(model: CompiledModel, score: float, share: float) -> tuple[Altered, int]:
    """A head more, of queries that select "b"; BOS has a score next to 0, and a value. A neuron is on if it gives more.

    Also the dimension from which the value of BOS is read.
    """
    altered = Altered(Parsed(model))
    query, others = altered.dimension(1.0), altered.dimension(0.0, bos=1.0, pad=1.0)
    key, only = altered.dimension([-200.0, 0.0, -200.0], bos=score, pad=-200.0), altered.dimension(0.0, bos=1.0)
    value, found, on = altered.dimension(0.0, bos=share), altered.dimension(0.0), altered.dimension(0.0)
    altered.head({}, {value: 1.0}, found)
    altered.component(0)
    for place, (own, other) in enumerate(((query, key), (others, only))):
        altered.weights["blocks.0.attn.W_Q"][-1, own, place] = 1.0 if own == query else 200.0
        altered.weights["blocks.0.attn.W_K"][-1, other, place] = 1.0
    altered.neuron({found: 2.0**24}, -(2.0**24) * share, {on: WRONG})
    altered.weights["unembed.W_U"][on, 1] = 1.0
    width = next(one["id"] for one in altered.parsed.model["program"]["sops"] if one["op"]["kind"] == "width")
    altered.hints["layers"][0]["heads"][-1] = {str(found): width}
    altered.hints["layers"][0]["mlp"][str(on)] = width
    return altered, value


def assert_kernel_conforms(model: CompiledModel, altered: Altered) -> None:
    """The model is accepted, and the kernel's logits are those of numpy."""
    assert not altered.reason()
    parameters = Parameters.of({name: array.astype(np.float32) for name, array in altered.weights.items()})
    kernel = Kernel(parameters, model.vocabulary, model.outputs, causal=False)
    for text in ("acca", "abcb"):
        ids = model.encode(text)
        found, numbers = kernel.logits(ids)
        assert numbers
        np.testing.assert_allclose(found[:, 1:], forward(parameters, ids, np, causal=False)[:, 1:], atol=1e-3)


@pytest.mark.skipif(not BUILT, reason="the kernel is not built")
def test_what_has_all_the_weight_is_copied_exactly() -> None:
    """BOS has all the weight, and a score of 1 less than that of "b", which is not in the input.

    Relative to "b" its share is s = 1 / e, and v s / s is more than v.
    """
    model = counts_b()
    altered, _ = with_a_share_of_bos(model, -1.0, 15_524_161 * 2.0**-24)
    share, value = np.float32(np.exp(-1.0)), np.float32(15_524_161 * 2.0**-24)
    assert value * share / share > value
    assert_kernel_conforms(model, altered)


@pytest.mark.skipif(not BUILT, reason="the kernel is not built")
def test_what_cancels_in_the_embedding_is_added_first() -> None:
    """The token BOS has 2^20 where its position has -2^20: the stream holds 0 there, and a value beside it is exact."""
    model = counts_b()
    share = float(np.float32(1 / 3))
    altered, value = with_a_share_of_bos(model, 1.0, share)
    large = altered.dimension(0.0, bos=2.0**20)
    altered.weights["pos_embed.W_pos"][0, large] = -(2.0**20)
    altered.weights["blocks.0.attn.W_V"][-1, large] = altered.weights["blocks.0.attn.W_V"][-1, value]
    assert np.float32(2.0**20 + share) - 2.0**20 > share
    assert_kernel_conforms(model, altered)


@pytest.mark.skipif(not BUILT, reason="the kernel is not built")
@pytest.mark.parametrize("score", [-80.0, -87.2, -87.336])
def test_only_numbers_below_the_smallest_normal_one_become_zero(score: float) -> None:
    """exp of a score down to that of 2^-126 = e^-87.3365 has a relative error of at most (8 + |x|) 2^-24."""
    one = np.ones((1, 1))
    found = kernel_backend().attend(one, np.array([[0.0], [score]]), np.array([[0.0], [1.0]]))[0, 0]
    exact = np.exp(np.float64(np.float32(score)))
    assert abs(found / exact - 1) <= (8 - score) * 2.0**-24
