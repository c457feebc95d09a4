"""Exchanges things in a saved model that look alike: components, heads, neurons, rows, signs, owners in the hints.

Often the other half of an exchange is made too, and then the network is the same. The hints are not always told.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.trials.program_changes import pick

__all__ = ["exchange"]

Array = NDArray[Any]
Weights = dict[str, Array]
Hints = dict[str, Any]
Rng = np.random.Generator
HEAD = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")
READERS = ("W_Q", "W_K", "W_V", "W_in", "W_U")
NUMBERS = (1e-6, 0.05, 0.5, -1.0, 3.0, 300.0, 2.0**24)


def exchange(weights: Weights, hints: Hints, rng: Rng) -> str:
    """Change one or two things in place; what was changed, in words."""
    found: list[str] = []
    for _ in range(int(rng.integers(1, 3))):
        for way in rng.permutation(len(WAYS)).tolist():
            if what := WAYS[way](weights, hints, int(rng.integers(len(hints["layers"]))), rng):
                found.append(what)
                break
    return "; ".join(found) or "nothing"


def _head(weights: Weights, layer: int) -> list[Array]:
    return [weights[f"blocks.{layer}.attn.{name}"] for name in HEAD]


def _components_permuted(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """The components of queries, of keys, or of both; of values, of W_O, or of both."""
    q, b_q, k, b_k, v, b_v, w_o = _head(weights, layer)
    if not q.size or not v.size:
        return ""
    one, way = int(rng.integers(len(q))), int(rng.integers(3))
    if rng.random() < 0.6:
        order = rng.permutation(q.shape[2])
        if way != 1:
            q[one], b_q[one] = q[one][:, order], b_q[one][order]
        if way != 2:
            k[one], b_k[one] = k[one][:, order], b_k[one][order]
        return f"components of {('both', 'keys', 'queries')[way]} of {layer}.{one} permuted"
    order = rng.permutation(v.shape[2])
    if way != 1:
        v[one], b_v[one] = v[one][:, order], b_v[one][order]
    if way != 2:
        w_o[one] = w_o[one][order]
    return f"components of {('values and W_O', 'W_O', 'values')[way]} of {layer}.{one} permuted"


def _heads_exchanged(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Two heads: all of them, or their queries, keys, values or W_O; the hints are told or not."""
    arrays = _head(weights, layer)
    if len(arrays[0]) < 2:
        return ""
    one, other = rng.choice(len(arrays[0]), 2, replace=False).tolist()
    way = str(pick(rng, ("all", "all, and hints", "hints", "queries", "keys", "values", "W_O")))
    places = {"queries": (0, 1), "keys": (2, 3), "values": (4, 5), "W_O": (6,), "hints": ()}.get(way, tuple(range(7)))
    for place in places:
        arrays[place][[one, other]] = arrays[place][[other, one]]
    if "hints" in way:
        heads = hints["layers"][layer]["heads"]
        heads[one], heads[other] = heads[other], heads[one]
    return f"{way} of heads {layer}.{one} and {layer}.{other} exchanged"


def _neurons_exchanged(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Two neurons, or what they read, their biases, or what they write."""
    arrays = [weights[f"blocks.{layer}.mlp.{name}"] for name in ("W_in", "b_in", "W_out")]
    if len(arrays[1]) < 2:
        return ""
    one, other = rng.choice(len(arrays[1]), 2, replace=False).tolist()
    way = int(rng.integers(4))
    for place, array in enumerate((arrays[0].T, *arrays[1:])):
        if way in (3, place):
            array[[one, other]] = array[[other, one]]
    return f"{('W_in', 'b_in', 'W_out', 'all')[way]} of neurons {layer}.{one} and {layer}.{other} exchanged"


def _scaled_by_three(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Queries times a number that is no power of two, keys divided by it; or values and W_O; both are rounded."""
    arrays = _head(weights, layer)
    if not arrays[0].size or not arrays[4].size:
        return ""
    one, factor, first = (
        int(rng.integers(len(arrays[0]))),
        float(pick(rng, (3.0, 0.3, 1.7, 1 / 3))),
        bool(rng.integers(2)),
    )
    (a, b), others = ((arrays[0], arrays[1]), arrays[2:4]) if first else ((arrays[4], arrays[5]), arrays[6:])
    for array in (a, b):
        array[one] *= factor
    for array in others:
        array[one] /= factor
    return f"{'queries' if first else 'values'} of {layer}.{one} times {factor:.3g}, and back"


def _rows_exchanged(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Two rows of positions or tokens, BOS and PAD among them: whole, or in the dimensions of one reader only."""
    name = str(pick(rng, ("embed.W_E", "pos_embed.W_pos")))
    array = weights[name]
    one, other = rng.choice(len(array), 2, replace=False).tolist()
    differ = np.flatnonzero(array[one] != array[other])
    if not len(differ):
        return ""
    dims = differ if rng.random() < 0.5 else rng.choice(differ, 1)
    array[np.ix_([one, other], dims)] = array[np.ix_([other, one], dims)]
    return f"rows {one} and {other} of {name} exchanged in dimensions {dims.tolist()}"


def _bos_moved(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """BOS stands at the first position only: a number of its token is one of its position; or only nearly."""
    tokens, positions = weights["embed.W_E"], weights["pos_embed.W_pos"]
    dim, share = int(rng.integers(tokens.shape[1])), float(pick(rng, (1.0, 1.0, 0.5, 0.0, -1.0)))
    number = float(tokens[-2, dim]) or float(pick(rng, NUMBERS))
    tokens[-2, dim] -= number
    positions[0, dim] += number * share
    return f"{number:g} of BOS in dimension {dim} is one of its position, times {share:g}"


def _pad_changed(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """What PAD holds: the row of another token, another number, or something where a reader has a row of zeros."""
    tokens, way = weights["embed.W_E"], int(rng.integers(3))
    if way == 0:
        other = int(rng.integers(len(tokens) - 1))
        tokens[-1] = tokens[other]
        return f"PAD is embedded as token {other}"
    dim, number = int(rng.integers(tokens.shape[1])), float(pick(rng, NUMBERS))
    if way == 1:
        tokens[-1, dim] += number
        return f"PAD has {number:g} more in dimension {dim}"
    alone = np.flatnonzero((tokens[-1] != 0) & (tokens[:-2] == 0).all(0) & (weights["pos_embed.W_pos"] == 0).all(0))
    names = [name for name in weights if name.rpartition(".")[2] in READERS and weights[name].size]
    if not len(alone):
        return ""
    name, dim = str(pick(rng, names)), int(rng.choice(alone))
    row = weights[name][..., dim, :]
    row[...] = 0.0 if rng.random() < 0.5 else number
    return f"{name} reads the dimension {dim} of PAD with {float(row.reshape(-1)[0]):g}"


def _signs_flipped(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """The signs of a component of queries and keys, or of values and W_O; or of one of the two."""
    q, b_q, k, b_k, v, b_v, w_o = _head(weights, layer)
    if not q.size or not v.size:
        return ""
    head, first, only = int(rng.integers(len(q))), bool(rng.integers(2)), rng.random() < 0.3
    one = int(rng.integers((q if first else v).shape[2]))
    for array in (q[head, :, one], b_q[head, one : one + 1]) if first else (v[head, :, one], b_v[head, one : one + 1]):
        array *= -1
    if not only:
        for array in (k[head, :, one], b_k[head, one : one + 1]) if first else (w_o[head, one],):
            array *= -1
    return f"signs of {'query' if first else 'value'} {layer}.{head}.{one} flipped{' alone' * only}"


def _few_units(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Many weights of an array, each moved by a few units in its last place: all alike, or at random."""
    name = str(pick(rng, [name for name, array in sorted(weights.items()) if array.any()]))
    units, share = int(rng.choice([1, 2, 8, 64])), float(rng.choice([0.1, 1.0]))
    alike = rng.random() < 0.3
    moved = np.where(
        rng.random(weights[name].shape) < share, 1 if alike else rng.choice([-1, 1], weights[name].shape), 0
    )
    weights[name] = (weights[name] * (1 + moved * units * 2.0**-23)).astype(weights[name].dtype)
    return f"{share:g} of {name} moved by {units} units{' alike' * alike}"


def _shared_number(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """A number more in a dimension at every position, which the next readers' biases take away; or most of them."""
    dim, number = int(rng.integers(len(weights["unembed.W_U"]))), float(pick(rng, (*NUMBERS, 1 / 3)))
    weights["embed.W_E"][:, dim] += number
    broken = rng.random() < 0.3
    for at in range(len(hints["layers"])):
        attn, mlp = f"blocks.{at}.attn.", f"blocks.{at}.mlp."
        for part in "QKV":
            weights[f"{attn}b_{part}"] -= (number * weights[f"{attn}W_{part}"][:, dim]).astype(np.float32)
        weights[f"{mlp}b_in"] -= (0 if broken else 1) * (number * weights[f"{mlp}W_in"][dim]).astype(np.float32)
        if weights[f"{mlp}W_out"][:, dim].any() or weights[f"{attn}W_O"][:, :, dim].any():
            break
    return f"{number:g} more in dimension {dim}, taken away by {'most' if broken else 'all'} readers"


def _owners_exchanged(weights: Weights, hints: Hints, layer: int, rng: Rng) -> str:
    """Owners of dimensions, of layers, sums or definitions exchanged; or one given to another."""
    held: list[tuple[Any, Any]] = [
        (one, dim) for of in hints["layers"] for one in (*of["heads"], of["mlp"]) for dim in one
    ]
    held += [(hints[name], key) for name in ("aux", "sums", "parts") for key in hints[name]]
    held += [(ways, at) for ways in hints["sums"].values() for at in range(len(ways))]
    if len(held) < 2:
        return ""
    first = pick(rng, held)
    alike = [one for one in held if type(one[0][one[1]]) is type(first[0][first[1]])]
    (one, key), (other, name) = first, pick(rng, alike)
    if rng.random() < 0.5:
        one[key], other[name] = other[name], one[key]
        return f"the hints {key} and {name} exchanged"
    one[key] = copy.deepcopy(other[name])
    return f"the hint {key} is that of {name}"


WAYS: tuple[Callable[[Weights, Hints, int, Rng], str], ...] = (
    _components_permuted,
    _heads_exchanged,
    _neurons_exchanged,
    _scaled_by_three,
    _rows_exchanged,
    _bos_moved,
    _pad_changed,
    _signs_flipped,
    _few_units,
    _shared_number,
    _owners_exchanged,
)
