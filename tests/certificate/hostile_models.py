"""Models that were altered by hand to be wrong where a rule of the checker might not look, with hints to match."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.certificate.check_cases import Parsed
from tracr_check.verdict import Rejected

__all__ = [
    "ALTERED",
    "Altered",
    "flushed",
    "overflows_before_the_stream",
    "pad_overflows",
    "partial_sums_overflow",
    "stored_before_its_bias",
]

Weights = dict[str, NDArray[Any]]
HUGE = 1e20


class Altered:
    """A model with more dimensions, neurons or heads that the checker has to see."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed, self.hints = parsed, copy.deepcopy(parsed.hints)
        self.weights: Weights = {name: array.astype(np.float64) for name, array in parsed.weights.items()}

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return len(self.weights["embed.W_E"]) - 2

    def reason(self, arithmetic: str = "float32", padded: bool = True) -> str:
        """Why the checker rejects it; empty if it accepts it."""
        kept, self.parsed.hints = self.parsed.hints, self.hints
        try:
            return self.parsed.reason(self.weights, arithmetic, padded)
        except (Rejected, ArithmeticError, LookupError, ValueError) as error:  # `check_folder` rejects them too
            return str(error)
        finally:
            self.parsed.hints = kept

    def dimension(self, tokens: float | list[float], bos: float = 0.0, pad: float = 0.0) -> int:
        """One dimension more, with a number for each token, one for BOS and one for PAD."""
        self._widen({"W_E": 1, "W_pos": 1, "W_Q": 1, "W_K": 1, "W_V": 1, "W_O": 2, "b_O": 0})
        self._widen({"W_in": 0, "W_out": 1, "b_out": 0, "W_U": 0})
        self.weights["embed.W_E"][:-2, -1] = tokens
        self.weights["embed.W_E"][-2:, -1] = bos, pad
        return self.weights["embed.W_E"].shape[1] - 1

    def _widen(self, axes: dict[str, int], only: str = "") -> None:
        """Zeros at the end of an axis of arrays."""
        for name, array in self.weights.items():
            axis = axes.get(name.rpartition(".")[2])
            if axis is not None and name.startswith(only):
                shape = [1 if place == axis else size for place, size in enumerate(array.shape)]
                self.weights[name] = np.concatenate([array, np.zeros(shape)], axis)

    def neuron(self, reads: dict[int, float], bias: float, writes: dict[int, float], layer: int = 0) -> None:
        """One neuron more."""
        mlp = f"blocks.{layer}.mlp."
        width = len(self.weights[mlp + "b_out"])
        column, row = np.zeros((width, 1)), np.zeros((1, width))
        column[list(reads), 0], row[0, list(writes)] = list(reads.values()), list(writes.values())
        self.weights[mlp + "W_in"] = np.hstack([self.weights[mlp + "W_in"], column])
        self.weights[mlp + "b_in"] = np.append(self.weights[mlp + "b_in"], bias)
        self.weights[mlp + "W_out"] = np.vstack([self.weights[mlp + "W_out"], row])

    def head(self, matches: Mapping[int, float], value: dict[int, float], writes: int | None) -> None:
        """One head more in layer 0; each of its components compares a dimension of queries and keys."""
        axes = dict.fromkeys(("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_O"), 0)
        self._widen(axes, "blocks.0.attn.")
        for place, (dim, number) in enumerate(matches.items()):
            self.weights["blocks.0.attn.W_Q"][-1, dim, place] = number
            self.weights["blocks.0.attn.W_K"][-1, dim, place] = number
        for dim, number in value.items():
            self.weights["blocks.0.attn.W_V"][-1, dim, 0] = number
        if writes is not None:
            self.weights["blocks.0.attn.W_O"][-1, 0, writes] = 1.0
        self.hints["layers"][0]["heads"].append({})

    def component(self, layer: int) -> None:
        """One component more in each head of a layer."""
        axes = {"W_Q": 2, "W_K": 2, "W_V": 2, "b_Q": 1, "b_K": 1, "b_V": 1, "W_O": 1}
        self._widen(axes, f"blocks.{layer}.attn.")

    def disturb(self, dim: int, size: float = 1e4) -> None:
        """The first logit reads a dimension, which should hold 0."""
        self.weights["unembed.W_U"][dim, 0] = size


def _unread_neuron(model: Altered) -> None:
    """A neuron that overflows and writes nothing: infinity times 0 is not a number."""
    dim = model.dimension(HUGE)
    model.neuron({dim: HUGE}, 0.0, {})


def _unread_head(model: Altered) -> None:
    """A head that writes nothing, and whose scores overflow."""
    dim = model.dimension(1.0)
    model.head({dim: HUGE}, {}, None)


def _unread_value(model: Altered) -> None:
    """A component of values that overflows, which no dimension reads."""
    dim = model.dimension(HUGE)
    model.head({}, {dim: HUGE}, None)


def _large_scores(model: Altered) -> None:
    """Queries and keys of the last layer, much longer: their products overflow, the order of scores is the same."""
    last = len(model.hints["layers"]) - 1
    for name in ("W_Q", "b_Q", "W_K", "b_K"):
        model.weights[f"blocks.{last}.attn.{name}"] *= 2.0**62


def _large_stream(model: Altered) -> None:
    """A dimension that overflows when the last head writes it, and that nothing reads."""
    last = len(model.hints["layers"]) - 1
    huge, dim = model.dimension(HUGE), model.dimension(0.0)
    model.component(last)
    model.weights[f"blocks.{last}.attn.W_V"][0, huge, -1] = 1.0
    model.weights[f"blocks.{last}.attn.W_O"][0, -1, dim] = 1e25
    owners = model.hints["layers"][last]["heads"][0]
    owners[str(dim)] = next(iter(owners.values()))


def _cleared_beside_constants(model: Altered) -> None:
    """x - relu(x + K - K): in float32, x beside a large K is rounded away, so that x is not cleared."""
    one = model.dimension(1.0)
    x = model.dimension([0.25 * code for code in range(model.tokens)])
    model.neuron({x: 1.0, one: 2.0**23}, -(2.0**23), {x: -1.0})
    model.disturb(x)


def _copy_in_no_whole(model: Altered) -> None:
    """A head called a copy that averages: a neuron is on halfway between two values, where a copy never is.

    The hints name a whole that is never made up, so that the copy is never proved to be one.
    """
    value = model.dimension([float(code == 0) for code in range(model.tokens)])
    token, bos = model.dimension(1.0, bos=0.5), model.dimension(0.0, bos=1.0)
    x, y = model.dimension(0.0), model.dimension(0.0)
    model.head({token: 20.0, bos: 20.0}, {value: 1.0}, x)
    for bias, out in ((-0.3, 1.0), (-0.5, -2.0), (-0.7, 1.0)):
        model.neuron({x: 64.0}, 64 * bias, {y: out})
    model.disturb(y)
    source = next(one["id"] for one in model.parsed.model["program"]["sops"] if one["op"]["kind"] == "tokens")
    whole = next(one["id"] for one in model.parsed.model["program"]["sops"] if one["op"]["kind"] == "aggregation")
    name = f"p0.{len(model.hints['layers'][0]['heads']) - 1}.{source}"
    model.hints["parts"][name] = source
    model.hints["sums"][str(whole)] = [[name, f"p9.9.{source}"]]
    model.hints["layers"][0]["heads"][-1] = {str(x): name}
    model.hints["layers"][0]["mlp"][str(y)] = source


def pad_overflows(model: Altered) -> None:
    """PAD has a value that overflows. A causal mask gives it a weight of 0: 0 times infinity is not a number."""
    dim = model.dimension(0.0, pad=HUGE)
    model.head({}, {dim: HUGE}, None)


def flushed(model: Altered) -> None:
    """A dimension is cleared by way of a hidden number below 2^-14, which float16 may replace by 0."""
    small = model.dimension([2.0**-8 * code for code in range(model.tokens)])
    x = model.dimension([0.5 * code for code in range(model.tokens)])
    model.neuron({small: 2.0**-8}, 0.0, {x: -(2.0**15)})
    model.disturb(x)
    tokens = next(one["id"] for one in model.parsed.model["program"]["sops"] if one["op"]["kind"] == "tokens")
    model.hints["layers"][0]["mlp"][str(x)] = tokens


def stored_before_its_bias(model: Altered) -> None:
    """A neuron 256 + 1 - 256: stored in bfloat16 before the bias is added, the sum is 256. So x is not cleared."""
    one, x = model.dimension(1.0), model.dimension(1.0)
    model.neuron({one: 256.0, x: 1.0}, -256.0, {x: -1.0})
    model.disturb(x, 64.0)


def overflows_before_the_stream(model: Altered) -> None:
    """BOS: a head writes 67,000, more than float16 has, into a dimension that holds -10,000. Nothing reads it."""
    value, dim = model.dimension(0.0, bos=33_504.0), model.dimension(0.0, bos=-10_000.0)
    model.component(0)
    model.weights["blocks.0.attn.W_V"][0, value, -1] = 1.0
    model.weights["blocks.0.attn.W_O"][0, -1, dim] = 2.0
    owners = model.hints["layers"][0]["heads"][0]
    owners[str(dim)] = next(iter(owners.values()))


def partial_sums_overflow(model: Altered, factor: float, bias: float = 0.0) -> None:
    """BOS: two products of a head with 2048, which cancel, beside a bias, in a dimension that nothing reads."""
    value, dim = model.dimension(0.0, bos=2048.0), model.dimension(0.0)
    for one in (factor, -factor):
        model.component(0)
        model.weights["blocks.0.attn.W_V"][0, value, -1] = 1.0
        model.weights["blocks.0.attn.W_O"][0, -1, dim] = one
    model.weights["blocks.0.attn.b_O"][dim] = bias
    owners = model.hints["layers"][0]["heads"][0]
    owners[str(dim)] = next(iter(owners.values()))


ALTERED: dict[str, Callable[[Altered], None]] = {
    "a neuron that nothing reads overflows": _unread_neuron,
    "a head that nothing reads overflows": _unread_head,
    "a value that nothing reads overflows": _unread_value,
    "scores overflow": _large_scores,
    "a dimension that nothing reads overflows": _large_stream,
    "a dimension is cleared beside large constants": _cleared_beside_constants,
    "a copy is part of no whole": _copy_in_no_whole,
}
"""How a model is made wrong."""
