"""Random small networks in executions that are as bad as their arithmetic allows: every number lies in its box.

The streams of tokens, BOS and PAD after the embedding and after each MLP, and after heads that copy, are computed in
exact fractions by `Machine`. Each number must be between the bounds of the checker's box, and a multiple of its grid.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.certificate.adversary import Machine
from tests.tiers import slow
from tracr_check.additions import Added, added_to, product_error
from tracr_check.aggregate import Reading
from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.boxes import State, exactly, grid_of
from tracr_check.head import States, through
from tracr_check.mlp import Neurons, Placed, Work, after_mlp
from tracr_check.proving import _apart, _embedded, _in_range
from tracr_check.scores import Vectors
from tracr_check.variables import Codes, Env, Var
from tracr_check.verdict import Rejected

Array = NDArray[np.float64]
FORMATS = ("float32", "float64", "float16", "bfloat16")
Place = tuple[str, Mapping[Var, int], list[Fraction]]
"""A kind of position, the codes of its variables, and what the stream holds."""


def number(rng: np.random.Generator) -> float:
    """A number of a kind that rules treat in a way of its own: 0, small integers, powers of two, many bits, any."""
    match int(rng.integers(7)):
        case 0:
            return 0.0
        case 1:
            return float(rng.integers(-8, 9))
        case 2:
            return float(rng.choice([1, -1]) * 2.0 ** rng.integers(-6, 9))
        case 3:
            return float(rng.integers(-(2**24), 2**24)) * 2.0 ** rng.integers(-20, 3)
        case 4:
            return float(rng.normal())
        case 5:
            return float(rng.normal() * 2.0 ** rng.integers(-14, 14))
        case _:
            return float(rng.integers(-40, 41)) / 8


def weights(a: Arithmetic, given: Any) -> Array:
    """Numbers of the format that the checker allows as weights."""
    with np.errstate(over="ignore"):
        found = a.cast(np.array(given, np.float64))
    size = np.abs(found)
    return np.where((size >= max(2.0**-100, a.stored_tiny)) & (size < a.largest), found, 0.0)  # NaN is none


def fractions(numbers: Array) -> list[Fraction]:
    """Floats as fractions."""
    return [Fraction(one) for one in numbers.tolist()]


def embedding(a: Arithmetic, rng: np.random.Generator, width: int, tokens: int, longest: int) -> tuple[Array, Array]:
    """Rows for tokens, BOS and PAD, and for positions; a dimension depends on one, both or none of them."""
    embed, positions = np.zeros((tokens + 2, width)), np.zeros((longest + 1, width))
    for dim in range(width):
        kind = rng.integers(6)
        if kind in (0, 1):
            embed[:tokens, dim] = [number(rng) for _ in range(tokens)]
        if kind in (1, 2):
            positions[1:, dim] = [number(rng) for _ in range(longest)]
        if kind == 3:
            embed[:tokens, dim] = number(rng)
        if kind == 4:
            embed[:tokens, dim] = rng.integers(0, 6, tokens)
        embed[tokens:, dim] = number(rng), number(rng)
    return weights(a, embed), weights(a, positions)


def layer(a: Arithmetic, rng: np.random.Generator, streams: Sequence[list[Fraction]]) -> Neurons:
    """An MLP that clears dimensions, steps near numbers that occur, cancels large constants, or does anything."""
    width = len(streams[0])
    rows: list[tuple[dict[int, float], float, dict[int, float]]] = []
    for _ in range(rng.integers(1, 4)):
        first, second, out = (int(one) for one in rng.integers(width, size=3))
        c = number(rng)
        reads = {first: number(rng), second: number(rng)}
        match int(rng.integers(6)):
            case 0:
                k = float(rng.choice([3.0, 1.0, 0.5, 1.0, 4.0]))
                signs = [
                    sign for sign in (1, -1) if any(row[first] * sign > 0 for row in streams) or rng.random() < 0.2
                ]
                rows += [({first: sign * k}, 0.0, {first: -sign / k}) for sign in signs]
            case 1:
                reads = reads if rng.random() < 0.4 else {first: 2.0 ** rng.integers(0, 8)}
                row = streams[int(rng.integers(len(streams)))]
                at = -sum(w * float(row[dim]) for dim, w in reads.items()) + float(rng.choice([0, 0.5, -0.5, c]))
                rows += [(reads, at, {out: c}), (reads, at - float(rng.choice([1, 2, 0.5])), {out: -c})]
            case 2:
                rows += [({first: sign * k}, 0.0, {out: sign * c}) for k in (number(rng),) for sign in (1, -1)]
            case 3:
                every = {dim: number(rng) for dim in range(width) if rng.random() < 0.6}
                rows.append((every, number(rng), {dim: number(rng) for dim in range(width) if rng.random() < 0.4}))
            case 4:
                large = 2.0 ** rng.integers(0, 24)
                rows.append((reads | {first: large}, -large, {out: float(rng.choice([-1.0, c]))}))
            case _:
                factors = rng.choice([1.0, -1.0, 2.0, 0.5, -4.0, 3.0], 3)
                rows += [({dim: w * f for dim, w in reads.items()}, number(rng), {out: number(rng)}) for f in factors]
    w_in, b_in, w_out = (
        np.zeros((width, len(rows))),
        np.array([bias for _, bias, _ in rows]),
        np.zeros((len(rows), width)),
    )
    for place, (read, _, written) in enumerate(rows):
        w_in[list(read), place] = list(read.values())
        w_out[place, list(written)] = list(written.values())
    b_out = [number(rng) if rng.random() < 0.25 else 0.0 for _ in range(width)]
    return Neurons(*(weights(a, one) for one in (w_in, b_in, w_out, b_out)))


def placed(rng: np.random.Generator, sizes: Mapping[Var, int]) -> Placed:
    """All combinations of the token and the position; owners are drawn, right or wrong."""

    def rows(names: set[Var], owner: Var) -> tuple[Env, Codes, int]:
        wanted = sorted(str(name) for name in {*names, owner} - {"1"})
        grid = (
            np.indices([sizes[name] for name in wanted]).reshape(len(wanted), -1) if wanted else np.zeros((0, 1), int)
        )
        env = Env(grid.shape[1], dict(zip(wanted, grid, strict=True)), tuple(wanted))
        return env, np.zeros(env.rows, np.int64) if owner == "1" else env.codes[owner], sizes[owner]

    def owner(dim: int, names: set[Var]) -> Var:
        right = sorted(str(name) for name in names - {"1"})
        return str(rng.choice(right if right and rng.random() < 0.85 else ["T", "I", "1"]))

    return Placed(owner, rows)


def assert_contained(state: State, place: Place, what: Any) -> None:
    """Each number is between the bounds of its box, and a multiple of its grid."""
    _, codes, stream = place
    assert not any(gone[codes[name]] for name, gone in state.dead.items())
    for dim, x in enumerate(stream):
        parts = [[float(part[codes.get(name, 0)]) for part in found] for name, found in state.column(dim).items()]
        lo, hi = (sum((Fraction(part[end]) for part in parts), Fraction(0)) for end in (0, 1))
        assert lo <= x <= hi, (what, dim, codes, float(lo), float(x), float(hi))
        grid = min((part[2] for part in parts), default=math.inf)
        assert x == 0 if grid == math.inf else not grid or x % Fraction(grid) == 0, (what, dim, codes, float(x), grid)


class Network:
    """A random embedding: the checker's states, and the streams of some executions at every place."""

    def __init__(self, seed: int, runs: int = 2) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.a = a = ARITHMETICS[FORMATS[seed % 4]]
        width, tokens, longest = (int(one) for one in rng.integers((1, 1, 1), (6, 4, 4)))
        self.sizes: dict[Var, int] = {"T": tokens, "I": longest, "1": 1}
        embed, positions = embedding(a, rng, width, tokens, longest)
        given: Any = SimpleNamespace(embed=embed, positions=positions, width=width)
        program: Any = SimpleNamespace(vocabulary=tokens, lengths=(1, longest))
        self.states = _embedded(given, program, a, True)
        self.machines = [Machine(a, np.random.default_rng([seed, run])) for run in range(runs)]
        kinds: list[tuple[str, dict[Var, int], int, int]] = [("bos", {"B": 0}, tokens, 0)]
        kinds += [("pad", {"P": at}, tokens + 1, at + 1) for at in range(longest)]
        kinds += [("tokens", {"T": token, "I": at}, token, at + 1) for token in range(tokens) for at in range(longest)]
        self.places: list[list[Place]] = [
            [
                (
                    kind,
                    codes,
                    [machine.add(*pair) for pair in zip(*map(fractions, (embed[i], positions[j])), strict=True)],
                )
                for kind, codes, i, j in kinds
            ]
            for machine in self.machines
        ]

    def check(self, what: Any) -> None:
        """All places of all executions."""
        for place in (place for places in self.places for place in places):
            assert_contained(getattr(self.states, place[0]), place, (what, self.a.name))

    def mlp(self) -> None:
        """One more MLP; it may be rejected."""
        neurons = layer(self.a, self.rng, [stream for _, _, stream in self.places[0]])
        kept, a = self.states, self.a
        assert kept.pad is not None
        self.states = States(
            after_mlp(kept.tokens, neurons, placed(self.rng, self.sizes), a),
            after_mlp(kept.bos, neurons, _apart("B", kept.bos, Work()), a),
            after_mlp(kept.pad, neurons, _apart("P", kept.pad, Work()), a),
        )
        _in_range(self.states, a)
        w_in, w_out = ([fractions(column) for column in one.T] for one in (neurons.w_in, neurons.w_out))
        exact = w_in, fractions(neurons.b_in), w_out, fractions(neurons.b_out)
        self.places = [
            [(kind, codes, machine.mlp(stream, exact)) for kind, codes, stream in places]
            for machine, places in zip(self.machines, self.places, strict=True)
        ]

    def copy(self) -> None:
        """Some heads that copy a value by the token or the position, and a bias; tokens only."""
        rng, a, width, heads = self.rng, self.a, self.states.tokens.width, []
        for _ in range(rng.integers(1, 4)):
            owner, wide, small = str(rng.choice(["T", "I"])), int(rng.integers(1, 4)), rng.random() < 0.4
            draw = (lambda: float(rng.integers(-4, 5))) if small else (lambda: number(rng))
            w_o = [[draw() * (rng.random() < 0.6) for _ in range(width)] for _ in range(wide)]
            values = [[draw() for _ in range(wide)] for _ in range(self.sizes[owner])]
            heads.append((owner, weights(a, values), weights(a, w_o)))
        bias = weights(a, [number(rng) if rng.random() < 0.3 else 0.0 for _ in range(width)])
        terms = np.sum([(w_o != 0).sum(0) for _, _, w_o in heads], axis=0)
        added = [one for head in heads for one in written(*head, terms, a)]
        self.states = States(added_to(self.states.tokens, added, bias, terms, a, "1"), self.states.bos, None)
        columns = [fractions(np.concatenate([w_o[:, dim] for _, _, w_o in heads])) for dim in range(width)]
        for machine, places in zip(self.machines, self.places, strict=True):
            places[:] = [place for place in places if place[0] == "tokens"]
            for at, (kind, codes, stream) in enumerate(places):
                read = fractions(np.concatenate([values[codes[owner]] for owner, values, _ in heads]))
                more = [machine.dot(read, column, one) for column, one in zip(columns, fractions(bias), strict=True)]
                places[at] = kind, codes, [machine.add(*pair) for pair in zip(stream, more, strict=True)]


def written(owner: Var, values: Array, w_o: Array, terms: NDArray[np.int64], a: Arithmetic) -> list[Added]:
    """What a head adds to each dimension, with its own error, as `head.py` and `aggregate.py` bound it."""
    found = []
    for dim in np.flatnonzero((w_o != 0).any(0)).tolist():
        used = np.flatnonzero(w_o[:, dim])
        column, vectors = w_o[used, dim], Vectors(values[:, used], values[:, used], grid_of(values[:, used]))
        lo, hi, size = through(vectors, column)
        power = len(used) == 1 and abs(column[0]) >= 1 and np.frexp(abs(column[0]))[0] == 0.5
        tail = 0.0 if power else product_error(int(terms[dim]), a)
        gain = float(np.abs(column).sum())
        reading = Reading(lo, hi, size, (0.0, 0.0), 0.0, 0.0, gain, tail, 3, int(terms[dim]), a)
        off = reading.alone(size)
        if size.any():
            found.append(Added(dim, owner, lo - off, hi + off, np.zeros(len(lo), bool)))
    return found


SEEDS = [*range(8), *slow(range(8, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_after_mlps_lie_in_their_boxes(seed: int) -> None:
    """Ten networks of up to three MLPs."""
    layers = 0
    for number_of_network in range(10 * seed, 10 * seed + 10):
        network = Network(number_of_network)
        network.check((number_of_network, "embedding"))
        with contextlib.suppress(Rejected):  # numbers too large
            for _ in range(network.rng.integers(1, 4)):
                network.mlp()
                network.check((number_of_network, layers))
                layers += 1
    assert layers > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_after_copies_lie_in_their_boxes(seed: int) -> None:
    """Twenty networks of a few heads and a bias."""
    found = 0
    for number_of_network in range(20 * seed, 20 * seed + 20):
        network = Network(number_of_network)
        with contextlib.suppress(Rejected):  # numbers too large
            network.copy()
            network.check((number_of_network, "heads"))
            found += 1
    assert found > 10


@pytest.mark.parametrize("name", FORMATS)
def test_what_clearing_leaves(name: str) -> None:
    """x - relu(x) is 0 or x itself, exactly; with one neuron more that writes there, it is a term of a sum."""
    values = np.array([[-(2.0**-12)], [0.0], [0.75]])
    sizes: dict[Var, int] = {"T": 3, "1": 1}
    state = State(1, {"T": exactly(values)})
    for more in (0.0, 0.5):
        weights_of = np.array([[1.0, 0.0]]), np.array([0.0, 1.0]), np.array([[-1.0], [more]]), np.zeros(1)
        after = after_mlp(state, Neurons(*weights_of), placed(np.random.default_rng(0), sizes), ARITHMETICS[name])
        for token in range(3):
            (lo, hi, grid), *_ = after.column(0).values()
            code = token if len(lo) > 1 else 0
            assert lo[code] <= more + min(float(values[token, 0]), 0.0) <= hi[code]
            assert hi[code] - lo[code] <= 2.0**-5
            assert more or (hi[code] == 0.0 and lo[code] == -(2.0**-12) and grid[code] == 2.0**-12)
