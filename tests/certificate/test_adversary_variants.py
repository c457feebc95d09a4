"""Variants in executions that are as bad as their arithmetic allows: small random networks without heads.

The streams of tokens, BOS and PAD are computed in exact fractions by `Machine`, with layer norms or rotated. Each
number must be between the bounds of the box that the follower of the proof leaves, and a multiple of its grid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.certificate.adversary import Machine
from tests.certificate.test_adversary import (
    Array,
    assert_contained,
    embedding,
    fractions,
    layer,
    number,
    placed,
    weights,
)
from tests.tiers import slow
from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.boxes import State, exactly, joined, read_state, rounded
from tracr_check.following import Follower
from tracr_check.head import States
from tracr_check.mlp import Neurons, Work, after_mlp
from tracr_check.normed import Normed
from tracr_check.proving import Block, Weights, _apart, _embedded, _in_range
from tracr_check.rotation import exact_product, plain_weights
from tracr_check.turned import Turned
from tracr_check.variables import Env, Var
from tracr_check.verdict import Rejected

SEEDS = [*range(3), *slow(range(3, 60))]
EPSILON = 2.0**80


def network(embed: Array, positions: Array, layers: Sequence[Neurons], unembed: Array) -> Weights:
    """Weights without heads."""
    found = Weights.__new__(Weights)
    found.embed, found.positions, found.unembed, found.width = embed, positions, unembed, embed.shape[1]
    found.blocks, found.layers = [Block([], np.zeros(found.width), one) for one in layers], len(layers)
    return found


class Case:
    """A network without heads and the states that its proof finds, and the places of its streams."""

    def __init__(self, a: Arithmetic, rng: np.random.Generator, proved: Weights, follower: Follower) -> None:
        self.a, self.rng, self.proved, self.follower = a, rng, proved, follower
        tokens, longest = len(proved.embed) - 2, len(proved.positions) - 1
        self.sizes: dict[Var, int] = {"T": tokens, "I": longest, "1": 1}
        program: Any = SimpleNamespace(vocabulary=tokens, lengths=(1, longest))
        self.states = follower.embedded(_in_range(_embedded(proved, program, a, True), a))
        self.places: list[tuple[str, dict[Var, int], int, int]] = [("bos", {"B": 0}, tokens, 0)]
        self.places += [("pad", {"P": at}, tokens + 1, at + 1) for at in range(longest)]
        self.places += [("tokens", {"T": t, "I": i}, t, i + 1) for t in range(tokens) for i in range(longest)]

    def streams(self, machine: Machine, given: Weights) -> list[list[Fraction]]:
        """The streams of an execution after the embedding."""
        return [
            [machine.add(*pair) for pair in zip(fractions(given.embed[i]), fractions(given.positions[j]), strict=True)]
            for _, _, i, j in self.places
        ]

    def step(self, number_of_layer: int) -> None:
        """The states after one layer."""
        a, neurons = self.a, self.proved.blocks[number_of_layer].neurons
        before = self.follower.attended(number_of_layer, self.states, self.states)
        assert before.pad is not None
        after = States(
            after_mlp(before.tokens, neurons, placed(self.rng, self.sizes), a),
            after_mlp(before.bos, neurons, _apart("B", before.bos, Work()), a),
            after_mlp(before.pad, neurons, _apart("P", before.pad, Work()), a),
        )
        self.states = self.follower.transformed(number_of_layer, before, _in_range(after, a))

    def check_logits(self, machine: Machine, seen: Sequence[Sequence[Fraction]], unembed: Array) -> None:
        """What the unembedding computes of what it sees at tokens; the plain one reads the states."""
        column, matrix = fractions(unembed[:, 0]), self.proved.unembed
        bias, errors = self.follower.logits(self.states, matrix)
        reads = read_state(self.states.tokens, matrix, bias)
        for (kind, codes, _, _), stream in zip(self.places, seen, strict=True):
            if kind == "tokens":
                read = joined(reads, Env(1, {name: np.array([code]) for name, code in codes.items() if name in reads}))
                off = rounded(read, self.a) + errors
                lo, hi = (Fraction(end.item()) for end in (read.lo - off, read.hi + off))
                assert lo <= machine.dot(stream, column) <= hi

    def check(self, streams: Sequence[Sequence[Fraction]], what: Any, off: Mapping[str, Array]) -> None:
        """Every stream lies in its box, which is as much wider as dimensions of this kind of position may be off."""
        for (kind, codes, _, _), stream in zip(self.places, streams, strict=True):
            state, place = getattr(self.states, kind), (kind, codes, list(stream))
            if kind in off and off[kind].any():
                for dim, (x, more) in enumerate(zip(stream, fractions(off[kind]), strict=True)):
                    parts = [(lo[codes.get(v, 0)], hi[codes.get(v, 0)]) for v, (lo, hi, _) in state.column(dim).items()]
                    least, most = (sum((Fraction(part[end].item()) for part in parts), Fraction(0)) for end in (0, 1))
                    assert least - more <= x <= most + more, (what, kind, dim)
            else:
                assert_contained(state, place, (what, kind))


def exact(neurons: Neurons) -> Any:
    """The weights of an MLP in fractions, by column."""
    w_in, w_out = ([fractions(column) for column in one.T] for one in (neurons.w_in, neurons.w_out))
    return w_in, fractions(neurons.b_in), w_out, fractions(neurons.b_out)


# Layer norms


def normed(machine: Machine, x: Sequence[Fraction]) -> list[Fraction]:
    """x - m, rounded once, for a mean that is as wrong as it may be; flushed after the division by the root."""
    u, size = Fraction(2) ** -machine.a.sum_bits, len(x)
    off = (size + 8) * u * max(map(abs, x)) * Fraction(float(machine.rng.choice([-1.0, 1.0, machine.rng.random()])))
    m = Fraction(np.float32(float(sum(x) / size + off * Fraction(99, 100))).item())
    root = Fraction(2) ** 40
    return [machine._flushed(machine.operation(one - m) / root, machine.a.tiny) * root for one in x]


def with_balance(rows: Array, a: Arithmetic) -> Array:
    """Rows to write, with the balance and an anchor that is never written."""
    return np.hstack([rows, weights(a, -rows.sum(-1, keepdims=True)), np.zeros((*rows.shape[:-1], 1))])


def with_anchor(matrix: Array, a: Arithmetic) -> Array:
    """Columns that read, nothing of the balance, and the anchor."""
    return np.vstack([matrix, np.zeros((1, matrix.shape[1])), weights(a, -matrix.sum(0, keepdims=True))])


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_of_networks_with_layer_norms_lie_in_their_boxes(seed: int) -> None:
    """Six networks of up to three MLPs; some have a wrong balance or anchor, which makes boxes wide."""
    found = 0
    for case_number in range(6 * seed, 6 * seed + 6):
        rng, a = np.random.default_rng([case_number, 77]), ARITHMETICS["float32"]
        width, tokens, longest = (int(one) for one in rng.integers((1, 1, 1), (6, 4, 4)))
        embed, positions = embedding(a, rng, width, tokens, longest)
        layers = [layer(a, rng, [fractions(embed[0] + positions[1])]) for _ in range(rng.integers(1, 4))]
        wrong = rng.random(2) < 0.1
        embed, positions = (with_balance(one, a) for one in (embed, positions))
        if wrong[0]:
            embed[:, -2] = number(rng)
        neurons = [
            Neurons(
                with_anchor(one.w_in, a),
                one.b_in,
                with_balance(one.w_out, a),
                with_balance(one.b_out[None], a)[0],
            )
            for one in layers
        ]
        if wrong[1]:
            neurons[0].w_in[-1, 0] = number(rng)
        unembed = with_anchor(weights(a, [[number(rng)] for _ in range(width)]), a)
        given = network(embed, positions, neurons, unembed)
        with contextlib.suppress(Rejected):  # numbers too large
            follower = Normed(given, EPSILON, np.zeros(width + 2), a)
            case = Case(a, rng, given.without(follower.balance), follower)
            machines = [Machine(a, np.random.default_rng([case_number, run])) for run in range(3)]
            runs = [case.streams(machine, given) for machine in machines]
            for number_of_layer, one in enumerate(neurons):
                case.step(number_of_layer)
                for run, machine in enumerate(machines):
                    runs[run] = [_after_norm(machine, stream, exact(one)) for stream in runs[run]]
                    hidden = [[x * (not gone) for x, gone in zip(s, follower.balance, strict=True)] for s in runs[run]]
                    case.check(hidden, (case_number, number_of_layer), {})
                    _check_sums(follower, case, runs[run])
                found += 1
            for machine, streams in zip(machines, runs, strict=True):
                case.check_logits(machine, [normed(machine, stream) for stream in streams], unembed)
    assert found > 2


def _after_norm(machine: Machine, stream: Sequence[Fraction], given: Any) -> list[Fraction]:
    w_in, b_in, w_out, b_out = given
    seen = normed(machine, stream)
    hidden = [max(machine.dot(seen, column, bias), Fraction(0)) for column, bias in zip(w_in, b_in, strict=True)]
    written = [machine.dot(hidden, column, bias) for column, bias in zip(w_out, b_out, strict=True)]
    return [machine.add(one, more) for one, more in zip(stream, written, strict=True)]


def _check_sums(follower: Normed, case: Case, streams: Sequence[Sequence[Fraction]]) -> None:
    """Lemma 3: all dimensions together."""
    for (kind, _, _, _), stream in zip(case.places, streams, strict=True):
        assert abs(sum(stream)) <= follower.sums[kind]


# Rotations


def turn(rng: np.random.Generator, width: int) -> Array:
    """A rotation: rounds of groups of four, signs and a permutation."""
    found, four = np.eye(width), np.full((4, 4), 0.5) - np.eye(4)
    for _ in range(rng.integers(1, 3)):
        group = rng.permutation(width)[:4]
        found[:, group] = found[:, group] @ four
    return found[:, rng.permutation(width)] * rng.choice([-1.0, 1.0], width)


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_of_rotated_networks_lie_in_the_boxes_of_the_plain_one(seed: int) -> None:
    """Turned back, up to the errors of dimensions that only the unembedding reads, and those at PAD.

    PAD holds numbers of many bits, whose sums are rounded where those of tokens are exact.
    """
    found = 0
    for case_number in range(40 * seed, 40 * seed + 40):
        rng = np.random.default_rng([case_number, 78])
        a = ARITHMETICS[("float32", "float64", "float16", "bfloat16")[case_number % 4]]
        width, tokens, longest = (int(one) for one in rng.integers((4, 1, 1), (8, 4, 4)))
        rotation, small = turn(rng, width), rng.random() < 0.8
        embed, positions = (_few(rng, one, small) for one in embedding(a, rng, width, tokens, longest))
        if small and rng.random() < 0.7:
            embed[-1] = np.ldexp(rng.integers(-(2**16), 2**16, width), 6 - a.stored_bits)
        layers = [layer(a, rng, [fractions(embed[0] + positions[1])]) for _ in range(rng.integers(0, 3))]
        layers = [Neurons(*(_few(rng, one, small) for one in vars(layer_).values())) for layer_ in layers]
        unembed = _few(rng, np.array([[number(rng)] for _ in range(width)]), small)
        turned = network(
            weights(a, embed @ rotation),
            weights(a, positions @ rotation),
            [
                Neurons(
                    weights(a, rotation.T @ one.w_in),
                    weights(a, one.b_in),
                    weights(a, one.w_out @ rotation),
                    weights(a, one.b_out @ rotation),
                )
                for one in layers
            ],
            weights(a, rotation.T @ unembed),
        )
        with contextlib.suppress(Rejected):  # not exact
            plain = _turned_back(turned, rotation, a)
            follower = Turned(turned, plain, rotation, a)
            case = Case(a, rng, plain, follower)
            machines = [Machine(a, np.random.default_rng([case_number, run])) for run in range(3)]
            runs = [case.streams(machine, turned) for machine in machines]
            for number_of_layer, block in enumerate(turned.blocks):
                case.step(number_of_layer)
                for run, machine in enumerate(machines):
                    runs[run] = [machine.mlp(stream, exact(block.neurons)) for stream in runs[run]]
                rows = [fractions(row) for row in rotation]
                off = {kind: one @ np.abs(rotation.T) for kind, one in follower.errors.items()}
                for streams in runs:
                    case.check([_times(rows, one) for one in streams], (case_number, number_of_layer), off)
                found += 1
            for machine, streams in zip(machines, runs, strict=True):
                case.check_logits(machine, streams, turned.unembed)
    assert found > 3


@pytest.mark.parametrize("seed", SEEDS)
def test_what_readers_of_pad_compute_lies_in_its_bounds(seed: int) -> None:
    """PAD holds c R + e: readers see e, and their sums round the products of the rotated dimensions."""
    found = 0
    for case_number in range(40 * seed, 40 * seed + 40):
        rng = np.random.default_rng([case_number, 79])
        a = ARITHMETICS[("float32", "float64", "float16", "bfloat16")[case_number % 4]]
        width = int(rng.integers(4, 8))
        rotation, held, read = turn(rng, width), *rng.integers(-99, 100, (2, 1, width)) / 8.0
        reader, bias = weights(a, read.T * 2.0 ** rng.integers(-2, 6)), weights(a, [number(rng)])
        none = network(np.zeros((3, width)), np.zeros((2, width)), [], reader)
        follower = Turned(none, none, rotation, a)
        off = np.where(follower.mixed, rng.random(width) * 2.0 ** rng.integers(-30, 0), 0.0)
        follower.errors["pad"] = off
        pad = State(width, {"P": exactly(held)})
        with contextlib.suppress(Rejected):  # not exact
            state = replace(pad, blur=follower._blur(pad))
            seen = joined(read_state(state, exact_product(rotation, reader), bias))
            wide = rounded(seen, a, bias)
            lo, hi = (Fraction(end.item()) for end in (seen.lo - wide, seen.hi + wide))
            for sign in (1, -1):
                e = fractions(off * sign * np.where(reader[:, 0] < 0, -1.0, 1.0))
                x = [one + more for one, more in zip(fractions((held @ rotation)[0]), e, strict=True)]
                machine = Machine(a, np.random.default_rng(case_number))
                assert lo <= machine.dot(x, fractions(reader[:, 0]), fractions(bias)[0]) <= hi
            found += 1
    assert found > 10


def _few(rng: np.random.Generator, array: Array, small: bool) -> Array:
    """Small multiples of 1/4, so that sums are exact; or the same numbers."""
    return np.where(array != 0, rng.integers(-8, 9, array.shape) / 4, 0.0) if small else array


def _times(rows: Sequence[Sequence[Fraction]], stream: Sequence[Fraction]) -> list[Fraction]:
    return [sum((r * x for r, x in zip(row, stream, strict=True)), Fraction(0)) for row in rows]


def _turned_back(turned: Weights, rotation: Array, a: Arithmetic) -> Weights:
    """The plain network of the checker."""
    named = {"W_E": turned.embed, "W_pos": turned.positions, "W_U": turned.unembed}
    for place, block in enumerate(turned.blocks):
        n = block.neurons
        named |= {
            f"{place}.W_in": n.w_in,
            f"{place}.b_in": n.b_in,
            f"{place}.W_out": n.w_out,
            f"{place}.b_out": n.b_out,
        }
    found = plain_weights(named, rotation, a)
    parts = ("W_in", "b_in", "W_out", "b_out")
    layers = [Neurons(*(found[f"{place}.{name}"] for name in parts)) for place in range(turned.layers)]
    return network(found["W_E"], found["W_pos"], layers, found["W_U"])
