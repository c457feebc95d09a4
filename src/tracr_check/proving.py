"""The proof: the embedding, layer after layer, and the logits.

The state after each sub-layer contains every stream that an execution can have there, at token positions by the values
of the program's variables, at BOS, and at PAD by position. The last step compares the logits with the program.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.attention import after_attention
from tracr_check.boxes import Boxes, State, exactly, grid_of, natural
from tracr_check.definitions import define
from tracr_check.facts import Facts
from tracr_check.following import Follower
from tracr_check.head import Attention, HeadWeights, States
from tracr_check.joint import joint_values
from tracr_check.mlp import Neurons, Placed, Work, after_mlp
from tracr_check.outputs import check_outputs
from tracr_check.padding import joint_of, pad_rows, pad_size
from tracr_check.parts import Parts
from tracr_check.program import Program
from tracr_check.variables import Array, Codes, Env, Var
from tracr_check.verdict import Rejected, need

__all__ = ["Weights", "follow", "logits_of", "prove"]

PAD_ROWS = 100_000
SMALLEST = 2.0**-100  # of weights
MOST = 2**26  # numbers of all weights
LARGEST = 2**24  # of one matrix


class Weights:
    """The weights, cast to the arithmetic; every shape is checked."""

    def __init__(
        self, given: Mapping[str, NDArray[Any]], program: Program, logits: int, arithmetic: Arithmetic
    ) -> None:
        self.layers = len({name.split(".")[1] for name in given if name.startswith("blocks.")})
        need(sum(array.size for array in given.values()) <= MOST, f"more than {MOST:,} weights")
        self.left = dict(given)
        self.arithmetic = arithmetic
        self.embed = self.take("embed.W_E", (program.vocabulary + 2, -1))
        self.width = self.embed.shape[1]
        self.positions = self.take("pos_embed.W_pos", (program.longest + 1, self.width))
        self.blocks = [self.block(f"blocks.{number}.") for number in range(self.layers)]
        self.unembed = self.take("unembed.W_U", (self.width, logits))
        need(not self.left, f"there are weights that no rule covers: {', '.join(sorted(self.left)[:3])}")

    def take(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array of this shape (-1: any size), cast."""
        need(name in self.left, f"there is no {name}")
        array = self.left.pop(name)
        fits = array.ndim == len(shape) and all(b in (-1, a) for a, b in zip(array.shape, shape, strict=True))
        need(fits and array.dtype.kind == "f", f"{name} has the shape {array.shape}, not {shape}")
        need(math.prod(array.shape[-2:]) <= LARGEST, f"{name} has more than {LARGEST:,} numbers")
        with np.errstate(over="ignore"):
            found = self.arithmetic.cast(array)
        need(np.isfinite(found).all(), f"{name} has numbers that are not finite in {self.arithmetic.name}")
        small = (found != 0) & (np.abs(found) < max(SMALLEST, self.arithmetic.stored_tiny))
        need(not small.any() and np.abs(found).max(initial=0.0) < self.arithmetic.largest, f"{name}: extreme numbers")
        return found

    def block(self, name: str) -> tuple[list[HeadWeights], Array, Neurons]:
        """The weights of a layer: its heads, their bias, its neurons."""
        d = self.width
        w_q = self.take(f"{name}attn.W_Q", (-1, d, -1))
        heads, _, rank = w_q.shape
        w_v = self.take(f"{name}attn.W_V", (heads, d, -1))
        wide = w_v.shape[2]
        arrays = [
            w_q,
            self.take(f"{name}attn.b_Q", (heads, rank)),
            self.take(f"{name}attn.W_K", (heads, d, rank)),
            self.take(f"{name}attn.b_K", (heads, rank)),
            w_v,
            self.take(f"{name}attn.b_V", (heads, wide)),
            self.take(f"{name}attn.W_O", (heads, wide, d)),
        ]
        bias = self.take(f"{name}attn.b_O", (d,))
        w_in = self.take(f"{name}mlp.W_in", (d, -1))
        hidden = w_in.shape[1]
        rest = [
            self.take(f"{name}mlp.{one}", s)
            for one, s in (("b_in", (hidden,)), ("W_out", (hidden, d)), ("b_out", (d,)))
        ]
        return [HeadWeights(*(array[h] for array in arrays)) for h in range(heads)], bias, Neurons(w_in, *rest)

    def without(self, dims: NDArray[np.bool_]) -> Weights:
        """The same weights, but nothing is written into some dimensions."""
        found = copy.copy(self)
        found.embed, found.positions = (np.where(dims, 0.0, one) for one in (self.embed, self.positions))
        found.blocks = [
            (
                [replace(one, w_o=np.where(dims, 0.0, one.w_o)) for one in heads],
                np.where(dims, 0.0, bias),
                replace(mlp, w_out=np.where(dims, 0.0, mlp.w_out), b_out=np.where(dims, 0.0, mlp.b_out)),
            )
            for heads, bias, mlp in self.blocks
        ]
        return found


def prove(
    program: Program, slices: list[Any], weights: Mapping[str, NDArray[Any]], hints: Any, a: Arithmetic, padded: bool
) -> None:
    """Prove the theorem, or raise `Rejected`."""
    follow(program, slices, Weights(weights, program, logits_of(slices), a), hints, a, padded, Follower())


def logits_of(slices: list[Any]) -> int:
    """The number of logits."""
    return int(max(stop for _, _, stop in slices))


def follow(
    program: Program, slices: list[Any], given: Weights, hints: Any, a: Arithmetic, padded: bool, follower: Follower
) -> None:
    """Prove the theorem of a network that a follower relates to the weights (`following.py`)."""
    _check_hints(hints)
    facts = Facts(program)
    define(program, facts, hints["aux"])
    parts = Parts(program, facts, wholes=hints["sums"])
    attention, work = Attention(program, facts, parts, a, hints["parts"]), Work()
    states = follower.embedded(_in_range(_embedded(given, program, a, padded), a))
    need(len(hints["layers"]) == given.layers, "hints for another number of layers")
    for number, ((heads, bias, neurons), hint) in enumerate(zip(given.blocks, hints["layers"], strict=True)):
        try:
            owners = [{int(dim): owner for dim, owner in one.items()} for one in hint["heads"]]
            after = _in_range(after_attention(states, heads, bias, owners, attention, number), a)
            states = follower.attended(number, states, after)
            parts.prove()
            mlp_owners = {int(dim): owner for dim, owner in hint["mlp"].items()}
            after = _in_range(_after_mlp(states, neurons, mlp_owners, program, parts, a, work), a)
            states = follower.transformed(number, states, after)
        except Rejected as rejected:
            raise Rejected(rejected.reason, rejected.place or f"layer {number}") from None
    parts.all_proved()
    read = states.tokens, given.unembed, *follower.logits(states, given.unembed)
    check_outputs(program, parts, read, slices, a, follower.words)


def _check_hints(hints: Any) -> None:
    """Hints name s-ops and selectors by whole numbers, other variables by names."""
    heads = [one for layer in hints["layers"] for one in (*layer["heads"], layer["mlp"])]
    owners = [owner for one in heads for owner in one.values()]
    defined = [one[name] for one in hints["aux"].values() for name in ("of", "selector") if name in one]
    numbers = [number for some in defined for number in (some if isinstance(some, list) else [some])]
    numbers += [source for source in hints["parts"].values() if source is not None]
    whole = all(type(one) is int for one in numbers)
    names = [name for ways in hints["sums"].values() for some in ways for name in some]
    need(whole and all(type(one) in (int, str) for one in owners), "the number of a variable is no whole number")
    need(all(type(one) is str for one in (*names, *hints["parts"])), "the name of a part is no text")


def _in_range(states: States, a: Arithmetic) -> States:
    """The same states; no dimension overflows at any position, read or not: 0 times infinity is no number."""
    for state in (states.tokens, states.bos, states.pad):
        if state is not None:
            need(state.sizes.max(initial=0.0) < a.largest, "numbers too large")
    return states


def _embedded(weights: Weights, program: Program, a: Arithmetic, padded: bool) -> States:
    """The stream after the embedding: the sum of a row for the token and a row for the position.

    Positions 1, 2, ... hold tokens 0, 1, ...; position 0 holds BOS. The sum of two numbers is exact if they are
    multiples of a grid and few enough; its error belongs to "1".
    """
    tokens, positions = weights.embed[: program.vocabulary], weights.positions[1:]
    bos = _solo("B", weights.embed[program.vocabulary][None], weights.positions[:1], weights.width, a)
    row = np.broadcast_to(weights.embed[program.vocabulary + 1], positions.shape)
    pad = _solo("P", row, positions, weights.width, a) if padded else None
    used = positions[: program.lengths[1]]
    off = _sum_error(np.abs(tokens).max(0), np.abs(used).max(0), grid_of(tokens).min(0), grid_of(used).min(0), a)
    dims = np.flatnonzero(off)
    rest = Boxes(dims, -off[None, dims], off[None, dims], np.zeros((1, len(dims))))
    state = State(weights.width, {"T": exactly(tokens), "I": exactly(used), "1": rest})
    return States(state, bos, pad)


def _sum_error(first: Array, second: Array, first_grid: Array, second_grid: Array, a: Arithmetic) -> Array:
    """The error of a sum of two numbers, from their sizes and grids: none if one is 0, or if the sum fits."""
    size, grid = first + second, np.minimum(first_grid, second_grid)
    exact = (first == 0) | (second == 0) | a.stores(size, grid)
    return np.where(exact, 0.0, a.stored_unit * size + a.stored_tiny)


def _solo(name: Var, first: Array, second: Array, width: int, a: Arithmetic) -> State:
    """A state of one variable: the rows of BOS or PAD."""
    total, off = first + second, _sum_error(np.abs(first), np.abs(second), grid_of(first), grid_of(second), a)
    boxes = Boxes(np.arange(width), total - off, total + off, natural(total - off, total + off, a.stored_bits))
    return State(width, {name: boxes})


def _after_mlp(
    states: States,
    neurons: Neurons,
    owners: Mapping[int, Var],
    program: Program,
    parts: Parts,
    a: Arithmetic,
    work: Work,
) -> States:
    """The stream after an MLP, at token positions, BOS and PAD."""

    def rows(names: set[Var], owner: Var) -> tuple[Env, Codes, int]:
        env = joint_values(program, names | {owner} - {"1"}, states.tokens.dead)
        return (env, np.zeros(env.rows, np.int64), 1) if owner == "1" else (env, env.codes[owner], program.sizes[owner])

    for owner in owners.values():
        need(owner in program.sizes, f"there is no variable {owner!r:.40}")
    hinted = {dim: program.leaf(owner) or owner for dim, owner in owners.items()}
    placed = Placed(lambda dim, names: hinted.get(dim, "1"), rows, parts.improve, work)
    tokens = after_mlp(states.tokens, neurons, placed, a)
    bos = after_mlp(states.bos, neurons, _apart("B", states.bos, work), a)
    pad = None if states.pad is None else after_mlp(states.pad, neurons, _apart("P", states.pad, work), a)
    return States(tokens, bos, pad)


def _apart(base: Var, state: State, work: Work) -> Placed:
    """BOS or PAD: all combinations of values; a dimension is owned by all variables that it depends on."""

    def rows(names: set[Var], owner: Var) -> tuple[Env, Codes, int]:
        env = pad_rows(state, names, PAD_ROWS, owner)
        return env, env.codes[owner], pad_size(state, owner)

    return Placed(lambda dim, names: joint_of(state, names, base), rows, work=work)
