"""Changes several weights of a model so that they make up for each other, exactly or nearly, or all but one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["compensate"]

Array = NDArray[Any]
Weights = dict[str, Array]
Hints = dict[str, Any]
SHARES = (1.0, 1.0, 1 + 2e-7, 1 + 1e-4, 1.01, 0.97, 0.5, 0.0, -1.0)  # of what a second change should be
WRITERS, READERS = ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out"), ("W_Q", "W_K", "W_V", "W_in", "W_U")


def compensate(weights: Weights, hints: Hints, rng: np.random.Generator) -> str:
    """Change one to three things in place, with hints to match; what was changed, in words."""
    found = []
    for _ in range(int(rng.integers(1, 4))):
        way, layer = WAYS[int(rng.integers(len(WAYS)))], int(rng.integers(len(hints["layers"])))
        share = float(rng.choice(SHARES))
        found.append(f"{way(weights, hints, layer, share, rng)}, {share:.8g} of it")
    return "; ".join(found)


def _power(rng: np.random.Generator) -> float:
    return 2.0 ** int(rng.integers(-6, 7))


def _neuron_scaled(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """A neuron that is larger by a power of two, and writes less."""
    w_in, b_in, w_out = (weights[f"blocks.{layer}.mlp.{name}"] for name in ("W_in", "b_in", "W_out"))
    if not len(b_in):
        return "nothing"
    one, power = int(rng.integers(len(b_in))), _power(rng)
    w_in[:, one] *= power
    b_in[one] *= power
    w_out[one] *= share / power
    return f"neuron {layer}.{one} times {power:g}"


def _neuron_turned(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """relu(x) as relu(x + K) - K + relu(-x), for x above -K."""
    names = [f"blocks.{layer}.mlp.{name}" for name in ("W_in", "b_in", "W_out", "b_out")]
    w_in, b_in, w_out, b_out = (weights[name] for name in names)
    if not len(b_in):
        return "nothing"
    one, large = int(rng.integers(len(b_in))), 2.0 ** int(rng.integers(1, 9))
    weights[names[0]] = np.hstack([w_in, -w_in[:, [one]]])
    weights[names[1]] = np.append(b_in, -b_in[one])
    weights[names[2]] = np.vstack([w_out, share * w_out[one]]).astype(w_out.dtype)
    weights[names[1]][one] += large
    b_out -= (large * w_out[one]).astype(b_out.dtype)
    return f"neuron {layer}.{one} in two, beside {large:g}"


def _head_scaled(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """A component of queries that is larger by a power of two, and of keys that is smaller; or values and W_O."""
    q, b_q, k, b_k, v, b_v, w_o = _head(weights, layer)
    if not q.size or not v.size:
        return "nothing"
    head, power = int(rng.integers(len(q))), _power(rng)
    if rng.random() < 0.5:
        one = int(rng.integers(v.shape[2]))
        v[head, :, one] *= power
        b_v[head, one] *= power
        w_o[head, one] *= share / power
        return f"value {layer}.{head}.{one} times {power:g}"
    one = int(rng.integers(q.shape[2]))
    for array in (q[head, :, one], b_q[head, one : one + 1]):
        array *= power
    for array in (k[head, :, one], b_k[head, one : one + 1]):
        array *= share / power
    return f"query {layer}.{head}.{one} times {power:g}"


def _head_turned(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """q_i + t q_j and k_j - t k_i: the products add up to the same; or all keys with one number more."""
    q, b_q, k, b_k, *_ = _head(weights, layer)
    if not q.size or q.shape[2] < 2:
        return "nothing"
    head, t = int(rng.integers(len(q))), float(rng.choice([0.5, 1.0, 2.0, -1.0]))
    i, j = rng.choice(q.shape[2], 2, replace=False).tolist()
    if rng.random() < 0.3:
        b_k[head, i] += 64 * t
        k[head, int(rng.integers(k.shape[1])), i] -= 64 * t * (1 - share)
        return f"keys {layer}.{head}.{i} plus {64 * t:g}"
    for reads, bias, one, other, factor in ((q, b_q, i, j, t), (k, b_k, j, i, -t * share)):
        reads[head, :, one] += factor * reads[head, :, other]
        bias[head, one] += factor * bias[head, other]
    return f"components {i} and {j} of {layer}.{head} turned"


def _head(weights: Weights, layer: int) -> list[Array]:
    return [weights[f"blocks.{layer}.attn.{name}"] for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")]


def _constant_moved(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """A constant in one place, taken away in another: positions and tokens, values and b_O, b_O and b_in and b_out."""
    number, attn, mlp = _power(rng), f"blocks.{layer}.attn.", f"blocks.{layer}.mlp."
    dim, way = int(rng.integers(len(weights["unembed.W_U"]))), int(rng.integers(3))
    if way == 1 and weights[f"{attn}b_V"].size:
        weights[f"{attn}b_V"][0, 0] += number
        weights[f"{attn}b_O"] -= (number * share * weights[f"{attn}W_O"][0, 0]).astype(np.float32)
        return f"{number:g} in the first value of layer {layer}"
    if way == 2 and weights[f"{attn}W_O"].size and weights[f"{mlp}W_out"].size:
        weights[f"{attn}b_O"][dim] += number
        weights[f"{mlp}b_in"] -= (number * share * weights[f"{mlp}W_in"][dim]).astype(np.float32)
        weights[f"{mlp}b_out"][dim] -= number
        return f"{number:g} between the sub-layers of layer {layer}, dimension {dim}"
    weights["pos_embed.W_pos"][:, dim] += number
    weights["embed.W_E"][:, dim] -= number * share
    return f"{number:g} at positions, dimension {dim}"


def _dimensions_turned(weights: Weights, hints: Hints, layer: int, share: float, rng: np.random.Generator) -> str:
    """The stream in other coordinates: x_j + t x_i for x_j, or x_i times a power of two; one reader may differ."""
    i, j = rng.choice(len(weights["unembed.W_U"]), 2, replace=False).tolist()
    turn = np.eye(len(weights["unembed.W_U"]))
    turn[i, i if rng.random() < 0.5 else j] = _power(rng)
    back = np.linalg.inv(turn)
    readers = [name for name, array in sorted(weights.items()) if name.endswith(READERS) and array.size]
    broken = str(rng.choice(readers))
    for name, array in weights.items():
        part = name.rpartition(".")[2]
        if part in WRITERS:
            array[...] = array @ turn
        elif part in READERS:
            new = back @ array
            array[...] = array + (share if name == broken else 1.0) * (new - array)
    for one in (owners for of in hints["layers"] for owners in (*of["heads"], of["mlp"])):
        if str(i) in one:
            one.setdefault(str(j), one[str(i)])
    return f"dimensions {i} and {j} turned, in {broken}"


Way = Callable[[Weights, Hints, int, float, np.random.Generator], str]
WAYS: tuple[Way, ...] = (
    _neuron_scaled,
    _neuron_turned,
    _head_scaled,
    _head_turned,
    _constant_moved,
    _dimensions_turned,
)
