"""The route "unused": circuits take heads and neurons that the host does not need on the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.graft.injection.hosts import BOS, FIRST, POSITIONS, WORDS, injected_into, inputs, random_host
from tracr.graft.injection.freeing import emptied
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.running import run_host
from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison

Array = NDArray[Any]
COUNT = rasp.SelectorWidth(rasp.Select(rasp.tokens, "a", Comparison.EQ)).named("count")
SILENT = ((0, 2), (0, 3), (1, 1))  # heads that write nothing, by layer and number


def texts(seed: int = 0, count: int = 8) -> Array:
    """Inputs of the host in which nothing is asked."""
    ids = np.random.default_rng(seed).integers(FIRST + 5, WORDS, (count, POSITIONS))
    ids[:, 0] = BOS
    return ids


def lazy_host(neurons: int) -> GPT2Host:
    """A host of which some heads, and the first neurons of layer 0, write the same everywhere."""
    host = random_host(3, n_embd=32, n_head=4)
    tensors = {name: array.copy() for name, array in host.tensors.items()}
    for layer, head in SILENT:
        tensors[f"h.{layer}.attn.c_attn.weight"][:, 64 + 8 * head : 72 + 8 * head] = 0  # its values are its bias
    tensors["h.0.mlp.c_fc.weight"][:, :neurons] = 0
    return replace(host, tensors=tensors)


def test_what_writes_a_constant_is_taken() -> None:
    """The circuit needs no added heads or neurons then; answers are right, and the host computes the same elsewhere."""
    injected = injected_into(lazy_host(40), COUNT, ("a", "b"), 6, route="unused", data=texts())
    assert injected.freed is not None
    assert injected.freed.heads == {0: (2, 3)}  # one counts, one attends to BOS alone
    assert set(injected.freed.neurons) == {0}
    assert set(injected.freed.neurons[0]) <= set(range(40))
    assert injected.sizes.inner == injected.host.inner
    assert injected.freed.divergence < 1e-12
    ids = inputs(np.random.default_rng(1), ("a", "b"))
    assert injected.check(ids).accuracy == 1.0
    assert injected.elsewhere(ids).largest_logit_change < 2e-3
    taken = {(one["layer"], one["head"]) for one in injected.truth["heads"]}
    assert taken == {(0, 2), (0, 3)}
    assert injected.truth["freed"]["heads"] == [[0, 2, 3]]
    assert "freed heads: 2" in repr(injected)


def test_what_is_missing_is_added() -> None:
    """Too few unused neurons: the others are added, and answers are still right."""
    added = injected_into(lazy_host(0), COUNT, ("a", "b"), 6)
    mixed = injected_into(lazy_host(6), COUNT, ("a", "b"), 6, route="unused", data=texts(), tolerance=1e-9)
    assert mixed.host.inner < mixed.sizes.inner == added.sizes.inner - 6
    assert mixed.check(inputs(np.random.default_rng(1), ("a", "b"))).accuracy == 1.0


def test_a_tolerance_is_kept_on_other_inputs_too() -> None:
    """A host that uses all of itself: a larger tolerance frees more, and the change elsewhere is measured."""
    host = random_host(5, size=0.2)
    injected = injected_into(host, COUNT, ("a", "b"), 6, route="unused", data=texts(count=24), tolerance=0.05)
    assert injected.freed is not None
    assert 0 < injected.freed.divergence < 0.1
    assert injected.check(inputs(np.random.default_rng(1), ("a", "b"))).accuracy == 1.0
    assert injected.elsewhere(texts(9)).mean_divergence == pytest.approx(injected.freed.divergence, rel=0.5)


def test_emptying_puts_means_into_biases() -> None:
    """On an input, a head replaced by its mean there: the attention's output changes by the rest of that head alone."""
    host, ids = random_host(2), texts(4, 1)
    inside: list[Any] = []
    before = run_host(host, ids, inside=inside)
    means = [(one.mixed.mean(axis=(0, 1)), one.neurons.mean(axis=(0, 1))) for one in inside]
    changed = emptied(host, {1: (0,)}, {1: (3, 5)}, means)
    again: list[Any] = []
    after = run_host(changed, ids, inside=again)
    assert np.allclose(before.streams[0], after.streams[0])
    mine = host.tensors["h.1.attn.c_proj.weight"][:8]
    moved = inside[1].mixed @ host.tensors["h.1.attn.c_proj.weight"] + host.tensors["h.1.attn.c_proj.bias"]
    there = again[1].mixed @ changed.tensors["h.1.attn.c_proj.weight"] + changed.tensors["h.1.attn.c_proj.bias"]
    assert np.allclose(there, moved - (inside[1].mixed[..., :8] - means[1][0][:8]) @ mine)
    assert (changed.tensors["h.1.mlp.c_proj.weight"][-2:] == 0).all()
    assert np.array_equal(changed.tensors["h.1.mlp.c_fc.weight"][:, 3], host.tensors["h.1.mlp.c_fc.weight"][:, 4])


def test_weights_that_were_not_added_are_those_of_the_emptied_host() -> None:
    """`added` marks freed places too, so that training with it frozen keeps the circuit."""
    injected = injected_into(lazy_host(40), COUNT, ("a", "b"), 6, route="unused", data=texts())
    added = injected.added["transformer.h.0.mlp.c_fc.weight"]
    assert added[:, injected.sizes.first_neuron[0] :].all()
    assert not added[: injected.host.width, : injected.sizes.first_neuron[0]].any()
