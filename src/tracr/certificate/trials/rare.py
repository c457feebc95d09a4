"""Changes weights so that they matter at few of the streams that inputs give: one joint value, one pair, PAD or BOS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.trials.execution import ORDERS, execute
from tracr.certificate.trials.program_changes import pick

__all__ = ["SeenStreams", "matter_rarely"]

Array = NDArray[Any]
Weights = dict[str, Array]
Rng = np.random.Generator
RUNS = 60
SIZES = (0.05, 0.6, -0.6, 1.0, -1.0, 3.0, 30.0)
SCORES = (0.5, 3.0, -3.0, 100.0, -100.0, 300.0, -300.0, 2000.0)


class SeenStreams:
    """The streams of some random inputs before every sub-layer, by kind of position: each different row once."""

    def __init__(self, model: Mapping[str, Any], weights: Weights, rng: Rng) -> None:
        options, (low, high) = model["options"], model["program"]["lengths"]
        tokens = len(options["vocab"])
        ids = rng.integers(tokens, size=(RUNS, options["max_seq_len"] + 1))
        ids[RUNS // 2 :] %= np.maximum(1, rng.integers(tokens + 1, size=(RUNS - RUNS // 2, 1)))  # fewer tokens
        ids[:, 0] = tokens
        for row, length in zip(ids, rng.integers(low, high + 1, RUNS), strict=True):
            row[length + 1 :] = tokens + 1
        seen: list[Array] = []
        epsilon = model.get("variant", {}).get("epsilon")
        with np.errstate(all="ignore"):
            execute(weights, ids, options["causal"], ORDERS["blas"], seen, epsilon)
        kinds = {"tokens": ids < tokens, "BOS": ids == tokens, "PAD": ids == tokens + 1}
        self.rows = [{kind: np.unique(stream[at], axis=0) for kind, at in kinds.items() if at.any()} for stream in seen]


def matter_rarely(model: Mapping[str, Any], weights: Weights, rng: Rng) -> str:
    """Change one thing in place; what was changed, in words."""
    streams = SeenStreams(model, {name: array.astype(np.float32) for name, array in weights.items()}, rng)
    layers = (len(streams.rows) - 1) // 2
    for way in rng.permutation(len(WAYS)).tolist():
        layer = int(rng.integers(layers))
        before = streams.rows[2 * layer + (WAYS[way] is _neuron)]
        kind = str(pick(rng, ("tokens", "tokens", "tokens", *before)))
        if what := WAYS[way](weights, layer, before[kind], rng):
            return f"{what}, at {kind}"
    return "nothing"


def _special(rows: Array, rng: Rng) -> int | None:
    """A dimension that few rows hold another number in than most, drawn by how few."""
    common = np.median(rows, axis=0)
    some = (np.abs(rows - common) > 1e-3).sum(0)
    chances = np.where(some > 0, 1.0 / np.maximum(some, 1), 0.0)
    return int(rng.choice(len(some), p=chances / chances.sum())) if chances.any() else None


def _neuron(weights: Weights, layer: int, rows: Array, rng: Rng) -> str:
    """A neuron more that is on at one joint value of some dimensions only; or that is nearly on there."""
    name = f"blocks.{layer}.mlp."
    w_in, b_in, w_out = (weights[name + part] for part in ("W_in", "b_in", "W_out"))
    one = int(rng.integers(len(rows)))
    apart = rows[one] - rows.mean(0)
    kept = rng.permutation(np.argsort(-np.abs(apart), kind="stable")[:8])[: int(rng.integers(1, 9))]
    reads = np.zeros((len(w_in), 1), w_in.dtype)
    reads[kept, 0] = np.sign(apart[kept]) if rng.random() < 0.5 else np.round(4 * apart[kept]) / 4
    levels = np.unique(np.round(rows @ reads[:, 0].astype(np.float64), 4))
    if len(levels) < 2:
        return ""
    share, size = float(pick(rng, (0.5, 0.5, 0.9, 1.0, 1.01))), float(pick(rng, SIZES))
    bias, gap = -(levels[-2] + share * (levels[-1] - levels[-2])), max(levels[-1] - levels[-2], 0.01)
    row = np.zeros((1, len(w_in)), w_out.dtype)
    row[0, out := int(rng.choice(np.flatnonzero(weights["unembed.W_U"].any(1) | w_out.any(0))))] = size / gap
    weights[name + "W_in"] = np.hstack([w_in, reads])
    weights[name + "b_in"] = np.append(b_in, b_in.dtype.type(bias))
    weights[name + "W_out"] = np.vstack([w_out, row])
    return (
        f"a neuron of layer {layer} is on at {share:g} of a joint value of {sorted(kept.tolist())}, writes into {out}"
    )


def _pair(weights: Weights, layer: int, rows: Array, rng: Rng) -> str:
    """A component more of queries and keys: one dimension of each, which few hold; or of all queries."""
    names = [f"blocks.{layer}.attn.{part}" for part in ("W_Q", "b_Q", "W_K", "b_K")]
    query, key = _special(rows, rng), _special(rows, rng)
    if not len(weights[names[0]]) or query is None or key is None:
        return ""
    for name in names:
        weights[name] = np.concatenate([weights[name], np.zeros_like(weights[name][..., :1])], axis=-1)
    if weights[names[0]].shape[-1] == 1:
        return ""
    head, size = int(rng.integers(len(weights[names[0]]))), float(pick(rng, SCORES))
    weights[names[2]][head, key, -1] = size
    if rng.random() < 0.3:
        weights[names[1]][head, -1] = 1.0
        return f"all queries of {layer}.{head} read dimension {key} of keys, times {size:g}"
    weights[names[0]][head, query, -1] = 1.0
    return f"dimension {query} of queries of {layer}.{head} times {key} of keys, times {size:g}"


def _reading(weights: Weights, layer: int, rows: Array, rng: Rng) -> str:
    """What one reader of a head reads of a dimension that few hold: other weights, or where there were none."""
    name = f"blocks.{layer}.attn.{pick(rng, ('W_Q', 'W_K', 'W_V', 'W_V'))}"
    dim = _special(rows, rng)
    if not weights[name].size or dim is None:
        return ""
    head, place = int(rng.integers(len(weights[name]))), int(rng.integers(weights[name].shape[2]))
    row = weights[name][head, dim]
    if row.any() and rng.random() < 0.7:
        row *= (factor := float(pick(rng, (0.0, -1.0, 0.9, 1.001, 3.0))))
        return f"{name} of head {head} reads dimension {dim} times {factor:g}"
    row[place] += (size := float(pick(rng, SIZES)))
    return f"{name} of head {head} reads dimension {dim} plus {size:g}"


def _moved_step(weights: Weights, layer: int, rows: Array, rng: Rng) -> str:
    """The biases of neurons that read alike, moved together by a part of the smallest gap of what they read."""
    w_in, b_in = weights[f"blocks.{layer}.mlp.W_in"], weights[f"blocks.{layer}.mlp.b_in"]
    if not len(b_in):
        return ""
    one = int(rng.integers(len(b_in)))
    alike = np.flatnonzero((w_in == w_in[:, [one]]).all(0))
    alike = alike[np.argsort(np.abs(b_in[alike] - b_in[one]), kind="stable")][: int(rng.integers(1, 3))]
    levels = np.unique(np.round(rows @ w_in[:, one].astype(np.float64), 4))
    gap = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
    share = float(pick(rng, (0.1, 0.45, 0.55, 1.0, -0.1, -0.45, -0.55, -1.0)))
    b_in[alike] += b_in.dtype.type(share * gap)
    return f"biases of neurons {sorted(alike.tolist())} of layer {layer} moved by {share:g} of {gap:.3g}"


WAYS: tuple[Callable[[Weights, int, Array, Rng], str], ...] = (_neuron, _pair, _reading, _moved_step)
