"""Hand-made heads in executions that are as bad as their arithmetic allows: every number of the stream lies in its box.

Networks of `one_head.py` with more dimensions, values of several components and biases. Queries, keys, scores, softmax,
values and the stream are computed in fractions by `Machine`, at token positions, BOS and PAD, where no output looks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.certificate.adversary import Machine
from tests.certificate.one_head import FIRST, LONGEST, TOKENS, Made, made
from tests.certificate.test_adversary import assert_contained, fractions, number, weights
from tests.certificate.test_check_lemmas import codes_of_part
from tests.tiers import slow
from tracr.certificate.trials.meaning import Meaning
from tracr_check import groups, head
from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.attention import after_attention
from tracr_check.facts import Facts
from tracr_check.head import Attention, HeadWeights, States
from tracr_check.parts import Parts
from tracr_check.program_file import read_program
from tracr_check.proving import _embedded, _in_range
from tracr_check.variables import Env, Var
from tracr_check.verdict import Rejected

Array = NDArray[Any]
FORMATS = ("float32", "float16", "bfloat16", "float32-leak", "float32-fused")
Vector = list[Fraction]


class Network:
    """A network with hints, and what the checker says of its streams after the heads; `Rejected` if it says nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng([17, seed])
        one, self.a = made(rng), ARITHMETICS[FORMATS[seed % len(FORMATS)]]
        self.causal, self.padded, saved = one.causal, bool(rng.random() < 0.6), one.parts
        self.meaning = Meaning(saved.model, saved.tables)
        self.program = read_program(saved.model, dict(saved.tables))
        facts = Facts(self.program)
        w = {name.rpartition(".")[2]: weights(self.a, array) for name, array in _more(one, rng).items()}
        self.embed, self.places, self.bias = w["W_E"], w["W_pos"], w["b_O"]
        names = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")
        self.heads = [HeadWeights(*arrays) for arrays in zip(*(w[name] for name in names), strict=True)]
        letter = {"width": "c", "copy": "p", "mean": "s"}[one.kind]
        parts = [f"{letter}0.{place}" + ("" if letter == "c" else ".2") for place in range(len(self.heads))]
        self.parts = Parts(self.program, facts, wholes={"3": [parts]} if letter != "s" else {})
        given = Attention(self.program, facts, self.parts, self.a, dict.fromkeys(parts, None if letter == "c" else 2))
        owners: list[dict[int, Var]] = []
        for own, part in zip(self.heads, parts, strict=True):
            owner: Var = 3 if rng.random() < 0.5 else part
            owners.append(dict.fromkeys(np.flatnonzero((own.w_o != 0).any(0)).tolist(), owner))
        embedding: Any = SimpleNamespace(embed=self.embed, positions=self.places, width=self.embed.shape[1])
        states = _in_range(_embedded(embedding, self.program, self.a, self.padded), self.a)
        self.states: States = after_attention(states, self.heads, self.bias, owners, given, 0)
        _in_range(self.states, self.a)
        self.parts.prove()
        self.parts.all_proved()

    def check(self, seed: int) -> int:
        """Some inputs on which the program is defined, each in an execution of its own; how many."""
        rows = [row for n in range(1, LONGEST + 1) for row in itertools.product(range(TOKENS), repeat=n)]
        defined = [(row, found) for row in rows if self.meaning.lengths[0] <= len(row) and (found := self._codes(row))]
        for at in self.rng.permutation(len(defined))[:5].tolist():
            row, env = defined[at]
            width = LONGEST if self.padded and self.rng.random() < 0.5 else len(row)
            ids = [TOKENS, *row, *[TOKENS + 1] * (width - len(row))]
            streams = Execution(self, np.random.default_rng([seed, at])).streams(ids)
            for place, stream in enumerate(streams):
                if place == 0:
                    assert_contained(self.states.bos, ("bos", {"B": 0}, stream), seed)
                elif place <= len(row):
                    codes = {name: int(codes[place - 1]) for name, codes in env.codes.items()}
                    assert_contained(self.states.tokens, ("tokens", codes, stream), (seed, row))
                else:
                    self.at_pad(place - 1, stream, seed)
        return len(defined)

    def _codes(self, row: Sequence[int]) -> Env | None:
        found, n = self.meaning.codes(row), len(row)
        if found is None:
            return None
        codes: dict[Var, Any] = {"T": row, "I": range(n), "L": [n - self.meaning.lengths[0]] * n}
        codes.update(found.items())
        env = Env(n, {name: np.array(list(column), np.int64) for name, column in codes.items()})
        for name in self.parts.masks:
            env.codes[name] = codes_of_part(self.parts, name, env)
        return env

    def at_pad(self, place: int, stream: Vector, what: Any) -> None:
        """Some value of each variable that heads give PAD."""
        assert self.states.pad is not None
        tables = {name: len(boxes.lo) for name, boxes in self.states.pad.tables.items() if name != "P"}
        for values in itertools.product(*map(range, tables.values())):
            codes: dict[Var, int] = {"P": place, **dict(zip(tables, values, strict=True))}
            try:
                return assert_contained(self.states.pad, ("pad", codes, stream), what)
            except AssertionError as error:
                last = error
        raise last


def _more(one: Made, rng: np.random.Generator) -> dict[str, Array]:
    """Its weights, with two dimensions of numbers that heads read and write in several components."""
    axes = {"W_E": 1, "W_pos": 1, "W_Q": 1, "W_K": 1, "W_V": 1, "W_O": 2, "b_O": 0}
    found: dict[str, Array] = {}
    for name, array in one.parts.weights.items():
        if (axis := axes.get(name.rpartition(".")[2])) is not None:
            more = [(0, 2 if place == axis else 0) for place in range(array.ndim)]
            found[name.rpartition(".")[2]] = np.pad(array.astype(np.float64), more)
        elif ".attn." in name:
            found[name.rpartition(".")[2]] = array.astype(np.float64)
    width = found["W_E"].shape[1]
    for dim in (width - 2, width - 1):
        found["W_E"][:, dim] = [number(rng) for _ in range(TOKENS + 2)]
        found["W_pos"][1:, dim] = [number(rng) if rng.random() < 0.5 else 0.0 for _ in range(LONGEST)]
    for own in range(len(found["W_V"])):
        for component in range(int(rng.integers(3))):
            for dim in range(width):
                found["W_V"][own, dim, component] += number(rng) * (rng.random() < 0.2)
            for dim in range(FIRST, width):
                found["W_O"][own, component, dim] += rng.choice([1.0, -2.0, number(rng)]) * (rng.random() < 0.4)
            found["b_V"][own, component] = number(rng) * (rng.random() < 0.3)
    found["b_O"][FIRST:] = number(rng) * (rng.random() < 0.3)
    return found


class Execution:
    """One execution of the heads."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        self.network, self.rng, self.machine = network, rng, Machine(network.a, rng)
        self.u = Fraction(2) ** -network.a.sum_bits

    def streams(self, ids: Sequence[int]) -> list[Vector]:
        """The stream at each position."""
        one, m = self.network, self.machine
        before = [
            [m.add(x, y) for x, y in zip(fractions(one.embed[token]), fractions(one.places[at]), strict=True)]
            for at, token in enumerate(ids)
        ]
        written: list[Vector] = [[] for _ in ids]
        for own in one.heads:
            sides = (own.w_q, own.b_q), (own.w_k, own.b_k), (own.w_v, own.b_v)
            queries, keys, values = ([self.read(x, *side) for x in before] for side in sides)
            for at, query in enumerate(queries):
                seen = at + 1 if one.causal else len(ids)
                written[at] += self.mean([m.dot(query, key) for key in keys[:seen]], values[:seen])
        w_o = np.vstack([own.w_o for own in one.heads])
        return [
            [m.add(*pair) for pair in zip(x, self.read(more, w_o, one.bias), strict=True)]
            for x, more in zip(before, written, strict=True)
        ]

    def read(self, x: Vector, matrix: Array, bias: Array) -> Vector:
        """What columns of a matrix read."""
        columns = zip(matrix.T, fractions(bias), strict=True)
        return [self.machine.dot(x, fractions(column), one) for column, one in columns]

    def mean(self, scores: Vector, values: list[Vector]) -> Vector:
        """The values, weighted by the softmax of the scores."""
        a, m = self.network.a, self.machine
        powers = [self.power(m.operation(score - max(scores)), a) for score in scores]
        least = Fraction(2.1 * math.exp(-a.apart))
        columns = list(zip(*values, strict=True))
        if sum(one > least for one in powers) == 1:
            copied = [one if one < 1 else 1 + self.error(max(a.copy_error - 1, 0.0)) for one in powers]
            return [
                self.nearest(sum((p * v for p, v in zip(copied, column, strict=True)), Fraction(0)))
                for column in columns
            ]
        total = m._sum([(one, False) for one in powers])  # the sum of a softmax is not stored
        shares = [m.store(one / total * (1 + self.error(3.0))) for one in powers]
        return [m.dot(shares, column) for column in columns]

    def power(self, x: Fraction, a: Arithmetic) -> Fraction:
        """exp of a number that is not positive."""
        if not x:
            return Fraction(1)
        if x <= -a.apart:
            return Fraction(2 * math.exp(max(float(x), -700.0))) * int(self.rng.integers(2)) * a.leaks
        return Fraction(math.exp(float(x))) * (1 + self.error(0.99 * (a.exp_error - float(x))))

    def error(self, units: float) -> Fraction:
        """A relative error of up to so many units; often the largest."""
        return self.u * Fraction(units) * Fraction(float(self.rng.choice([-1, 0, 1, self.rng.uniform(-1, 1)])))

    def nearest(self, x: Fraction) -> Fraction:
        """The number of the sums that is nearest, as stored."""
        if x:
            low, high = self.machine._neighbours(x, self.network.a.sum_bits, self.network.a.tiny)
            x = low if x - low <= high - x else high
        return self.machine.store(x)


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 12))])
def test_streams_after_heads_lie_in_their_boxes(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With classes apart and together; most networks are rejected."""
    monkeypatch.setattr(groups, "FEW_CELLS", few)
    monkeypatch.setattr(head, "FEW_CELLS", few)
    seen: Counter[str] = Counter()
    for place in range(60 * seed, 60 * seed + 60):
        try:
            network = Network(place)
        except (Rejected, LookupError, ValueError):  # `check_folder` rejects them all
            continue
        seen["inputs"] += network.check(place)
        seen["networks"] += 1
    assert seen["networks"] > 3
    assert seen["inputs"] > 50
