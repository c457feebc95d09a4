"""The proof: the embedding, layer after layer, and the logits.

The state after each sub-layer contains every stream that an execution can have there, at token positions by the values
of the program's variables, at BOS, and at PAD by position. The last step compares the logits with the program.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
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

__all__ = ["Block", "Claim", "Weights", "prove"]

PAD_ROWS = 100_000
SMALLEST = 2.0**-100  # of weights
MOST = 2**26  # numbers of all weights
LARGEST = 2**24  # of one matrix
DIGITS = 10  # of a number in hints; many large ones could have one hash, and a dictionary of them takes forever


@dataclass(frozen=True, eq=False)
class Block:
    """The weights of a layer: its heads, their bias, its neurons."""

    heads: list[HeadWeights]
    bias: Array
    neurons: Neurons

    @property
    def w_o(self) -> Array:
        """What all components of all heads write."""
        return np.vstack([np.zeros((0, len(self.bias))), *(one.w_o for one in self.heads)])


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
        need(np.isfinite(found).all(), f"{name} has numbers with no {self.arithmetic.name}, or with two roundings")
        small = (found != 0) & (np.abs(found) < max(SMALLEST, self.arithmetic.stored_tiny))
        need(not small.any() and np.abs(found).max(initial=0.0) < self.arithmetic.largest, f"{name}: extreme numbers")
        return found

    def block(self, name: str) -> Block:
        """The weights of a layer.

        Programs that run networks leave out a sub-layer without heads or neurons, and its bias. So a bias stands beside
        heads or neurons that write something.
        """

        def take(part: str, *shape: int) -> Array:
            return self.take(f"{name}{part}", shape)

        d = self.width
        w_q = take("attn.W_Q", -1, d, -1)
        heads, _, rank = w_q.shape
        w_v = take("attn.W_V", heads, d, -1)
        wide = w_v.shape[2]
        b_q, w_k, b_k = take("attn.b_Q", heads, rank), take("attn.W_K", heads, d, rank), take("attn.b_K", heads, rank)
        b_v, w_o, bias = take("attn.b_V", heads, wide), take("attn.W_O", heads, wide, d), take("attn.b_O", d)
        by_head = [HeadWeights(*arrays) for arrays in zip(w_q, b_q, w_k, b_k, w_v, b_v, w_o, strict=True)]
        w_in = take("mlp.W_in", d, -1)
        hidden = w_in.shape[1]
        neurons = Neurons(w_in, take("mlp.b_in", hidden), take("mlp.W_out", hidden, d), take("mlp.b_out", d))
        for written, constant in ((w_o, bias), (neurons.w_out, neurons.b_out)):
            need(written.any() or not constant.any(), f"a bias in {name[:-1]} that belongs to no heads or neurons")
        return Block(by_head, bias, neurons)

    def readers(self, time: int) -> list[tuple[Array, Array]]:
        """Matrices and biases that read the stream at a time: 2 n for the heads of layer n, 2 n + 1 for its neurons."""
        if time >= 2 * self.layers:
            return []
        block = self.blocks[time // 2]
        if time % 2:
            return [(block.neurons.w_in, block.neurons.b_in)]
        return [pair for one in block.heads for pair in ((one.w_q, one.b_q), (one.w_k, one.b_k), (one.w_v, one.b_v))]

    def writers(self) -> list[Array]:
        """All arrays that are written into the stream; their last axis are its dimensions."""
        found = [self.embed, self.positions]
        for block in self.blocks:
            found += [*(one.w_o for one in block.heads), block.bias, block.neurons.w_out, block.neurons.b_out]
        return found

    def without(self, dims: NDArray[np.bool_]) -> Weights:
        """The same weights, but nothing is written into some dimensions."""
        found = copy.deepcopy(self)
        for array in found.writers():
            array[..., dims] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class Claim:
    """What is to be proved: the program is computed in an arithmetic; each output has a slice of the logits."""

    program: Program
    slices: list[Any]
    hints: Any
    arithmetic: Arithmetic
    padded: bool

    def weights(self, given: Mapping[str, NDArray[Any]]) -> Weights:
        """The weights that it is claimed of."""
        return Weights(given, self.program, int(max(stop for _, _, stop in self.slices)), self.arithmetic)


def prove(claim: Claim, weights: Weights, follower: Follower) -> None:
    """Prove the claim of a network that a follower relates to the weights (`following.py`), or raise `Rejected`."""
    program, hints, a = claim.program, claim.hints, claim.arithmetic
    _check_hints(hints)
    facts = Facts(program)
    define(program, facts, hints["aux"])
    parts = Parts(program, facts, wholes=hints["sums"])
    given, work = Attention(program, facts, parts, a, hints["parts"]), Work()
    states = follower.embedded(_in_range(_embedded(weights, program, a, claim.padded), a))
    need(weights.layers == len(hints["layers"]), "hints for another number of layers")
    for number, (block, hint) in enumerate(zip(weights.blocks, hints["layers"], strict=True)):
        try:
            *owners, mlp = ({int(dim): owner for dim, owner in one.items()} for one in (*hint["heads"], hint["mlp"]))
            after = after_attention(states, block.heads, block.bias, owners, given, number)
            states = follower.attended(number, states, _in_range(after, a))
            parts.prove()
            after = _after_mlp(states, block.neurons, mlp, given, work)
            states = follower.transformed(number, states, _in_range(after, a))
        except Rejected as rejected:
            raise Rejected(rejected.reason, rejected.place or f"layer {number}") from None
    parts.all_proved()
    read = states.tokens, weights.unembed, *follower.logits(states, weights.unembed)
    check_outputs(program, parts, read, claim.slices, a, follower.words)


def _check_hints(hints: Any) -> None:
    """Hints name s-ops and selectors by whole numbers, other variables by names."""
    heads = [one for layer in hints["layers"] for one in (*layer["heads"], layer["mlp"])]
    keys = [text for one in (*heads, hints["aux"], hints["sums"]) for text in one]
    need(all(len(text) <= DIGITS for text in keys), "a number in the hints is too large")
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
    for state in states.kinds.values():
        need(state.sizes.max(initial=0.0) < a.largest, "numbers too large")
    return states


def _embedded(weights: Weights, program: Program, a: Arithmetic, padded: bool) -> States:
    """The stream after the embedding: the sum of a row for the token and a row for the position.

    Positions 1, 2, ... hold tokens 0, 1, ...; position 0 holds BOS. The sum of two numbers is exact if they are
    multiples of a grid and few enough; its error belongs to "1".
    """
    tokens, positions = weights.embed[: program.vocabulary], weights.positions[1:]
    bos = _solo("B", weights.embed[program.vocabulary][None], weights.positions[:1], a)
    row = np.broadcast_to(weights.embed[program.vocabulary + 1], positions.shape)
    pad = _solo("P", row, positions, a) if padded else None
    used = positions[: program.lengths[1]]
    off = _sum_error(tokens, used, a)
    dims = np.flatnonzero(off)
    rest = Boxes(dims, -off[None, dims], off[None, dims], np.zeros((1, len(dims))))
    state = State(weights.width, {"T": exactly(tokens), "I": exactly(used), "1": rest})
    return States(state, bos, pad)


def sum_of_rows(first: Array, second: Array, a: Arithmetic) -> tuple[Array, NDArray[np.bool_]]:
    """The size of any sum of a row of each, and whether it is exact: one of the two is 0, or the sum fits."""
    one, other = (np.abs(rows).max(0) for rows in (first, second))
    grid = np.minimum(grid_of(first).min(0), grid_of(second).min(0))
    return one + other, (one == 0) | (other == 0) | a.stores(one + other, grid)


def _sum_error(first: Array, second: Array, a: Arithmetic) -> Array:
    """The error of any sum of a row of each."""
    size, exact = sum_of_rows(first, second, a)
    return np.where(exact, 0.0, a.stored_unit * size + a.stored_tiny)


def _solo(name: Var, first: Array, second: Array, a: Arithmetic) -> State:
    """A state of one variable: the rows of BOS or PAD, each a sum of two."""
    total, off = first + second, _sum_error(first[None], second[None], a)
    dims = np.arange(total.shape[1])
    boxes = Boxes(dims, total - off, total + off, natural(total - off, total + off, a.stored_bits))
    return State(len(dims), {name: boxes})


def _after_mlp(states: States, neurons: Neurons, owners: Mapping[int, Var], given: Attention, work: Work) -> States:
    """The stream after an MLP, at token positions, BOS and PAD."""
    program = given.program

    def rows(names: set[Var], owner: Var) -> tuple[Env, Codes, int]:
        env = joint_values(program, names | {owner} - {"1"}, states.tokens.dead)
        return (env, np.zeros(env.rows, np.int64), 1) if owner == "1" else (env, env.codes[owner], program.sizes[owner])

    for owner in owners.values():
        need(owner in program.sizes, f"there is no variable {owner!r:.40}")
    hinted = {dim: program.leaf(owner) or owner for dim, owner in owners.items()}
    found = {}
    for kind, state in states.kinds.items():
        placed = Placed(lambda dim, names: hinted.get(dim, "1"), rows, given.parts.improve, work)
        if kind != "tokens":
            placed = _apart({"bos": "B", "pad": "P"}[kind], state, work)
        found[kind] = after_mlp(state, neurons, placed, given.arithmetic)
    return States(**found)


def _apart(base: Var, state: State, work: Work) -> Placed:
    """BOS or PAD: all combinations of values; a dimension is owned by all variables that it depends on."""

    def rows(names: set[Var], owner: Var) -> tuple[Env, Codes, int]:
        env = pad_rows(state, names, PAD_ROWS, owner)
        return env, env.codes[owner], pad_size(state, owner)

    return Placed(lambda dim, names: joint_of(state, names, base), rows, work=work)
