"""`natural.gradients`: which parameters of a compiled model get no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracr
from tracr import natural
from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.rasp import programs, rasp

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.slow

ATTENTION = ("W_Q", "W_K", "W_V")


def share(found: natural.Gradients, name: str) -> float:
    return {one.name: one.share for one in found.matrices}[f"blocks.0.attn.{name}"]


PREVIOUS = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1), rasp.tokens)


def moved(model: tracr.CompiledModel, tokens: str) -> dict[str, Any]:
    """Where the cross-entropy of a token of one input has a gradient, from the model's values and nothing else."""
    apply, params = model.to_jax()
    domain = model.outputs[0].domain
    assert isinstance(domain, Finite)
    right = [domain.index[value] for value in model(tokens)]

    def losses(weights: Any) -> Any:
        logits = apply(weights, model.encode(tokens))[0, 1 : len(tokens) + 1]
        return -jax.nn.log_softmax(logits)[np.arange(len(right)), np.array(right)]

    return {name: np.asarray((array != 0).any(axis=0)) for name, array in jax.jacrev(losses)(params).items()}


@pytest.mark.parametrize("gap", [256, 20])
def test_masks_are_those_of_the_inputs_one_by_one(gap: float) -> None:
    """An entry is listed if its gradient is 0 on every single input."""
    model = tracr.compile(programs.make_hist(), "ab", 3, gap=gap)
    inputs = ["aab", "bbb", "aba"]
    found = natural.gradients(model, inputs)
    each = [moved(model, tokens) for tokens in inputs]
    assert found.inputs == 3
    for name, mask in found.zero.items():
        assert np.array_equal(mask, ~np.any([one[name] for one in each], axis=0)), name


@pytest.mark.parametrize("gap", [256, 20])
def test_the_plateaus_of_hist_stop_every_gradient_at_any_gap(gap: float) -> None:
    """The MLP that reads the count is flat there: nothing before it moves, whatever the gap."""
    found = natural.gradients(tracr.compile(programs.make_hist(), "abc", 4, gap=gap))
    assert [share(found, name) for name in ATTENTION] == [1, 1, 1]
    assert 0 < found.total.share < 1


def test_a_small_gap_lets_gradients_into_the_attention() -> None:
    """An output read straight off a head: at gap 256 its softmax is flat in float32, at gap 20 it is not."""
    hard, soft = (natural.gradients(tracr.compile(PREVIOUS, "abc", 4, gap=gap)) for gap in (256, 20))
    assert (share(hard, "W_Q"), share(hard, "W_K")) == (1, 1)
    assert share(soft, "W_Q") < 1
    assert share(soft, "W_K") < 1
    assert share(hard, "W_V") < 1


def test_numbers_and_variants_have_gradients_too() -> None:
    """A number has a slope at the right answer; in a rotated model fewer entries are exactly 0."""
    model = tracr.compile(programs.make_frac_prevs(rasp.tokens == "a"), "ab", 3)
    assert 0 < natural.gradients(model).total.share < 1
    assert natural.gradients(model.rotated(seed=1)).total.share < natural.gradients(model).total.share


def test_the_table_has_a_line_for_each_matrix() -> None:
    """The counts add up, and `show` prints them."""
    found = natural.gradients(tracr.compile(programs.make_hist(), "ab", 3))
    assert found.total.without == sum(one.without for one in found.matrices)
    lines = found.show().splitlines()
    assert "14 inputs" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == [*(one.name for one in found.matrices), "all"]


def test_other_arguments_are_refused() -> None:
    """With a hint."""
    model = tracr.compile(programs.make_hist(), "ab", 3)
    wrong: list[dict[str, Any]] = [{"model": 3}, {"inputs": "ab"}, {"inputs": []}, {"inputs": [["z"]]}, {"seed": -1}]
    wrong += [{"inputs": [1]}, {"inputs": b"ab"}, {"inputs": [[]]}]
    for given in wrong:
        with pytest.raises(TracrError) as error:
            natural.gradients(**{"model": model, **given})
        assert error.value.diagnostic.hint
