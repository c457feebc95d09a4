"""Needles: models that are wrong on one input of 4⁴⁰, made from constructions of every kind.

The rare input is "ab" twenty times: the only one of at most forty tokens with twenty "ab". Every program below is a
function of that count. A needle changes weights that matter only if the count is twenty:

reading   what is read of a dimension that holds something special only then
writing   what a neuron writes that is on only then
pair      the biases of two neurons, moved together: a step between nineteen and twenty is lost
joint     a neuron more, which is on at one stream of the rare input only, and reads up to twelve dimensions of it
component a component more of a head: queries that hold something special only then see other keys
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tracr
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.rasp import programs, rasp

__all__ = ["COUNT", "NEEDLES", "PROGRAMS", "RARE", "SUM_OF_HEADS", "Haystack", "needle"]

Array = NDArray[Any]
LENGTH, RARE = 40, 20

FOUND = programs.detect_pattern(rasp.tokens, "ab").named("found")
COUNT = rasp.SelectorWidth(rasp.Select(FOUND, rasp.Full(True), lambda found, _: found is True)).named("count")
IS_A = rasp.numerical(rasp.Map(lambda token: token == "a", rasp.tokens))
UP_TO = rasp.Select(rasp.indices, COUNT, rasp.Comparison.LT)
SAME = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
BEFORE = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.LT)

AT = rasp.Select(rasp.indices, COUNT, rasp.Comparison.EQ)
AFTER = rasp.Select(rasp.indices, COUNT, lambda key, count: key == count + 1)
IS_A_HERE = rasp.Select(rasp.tokens, rasp.tokens, lambda _, token: token == "a")
NOT_A_HERE = rasp.Select(rasp.tokens, rasp.tokens, lambda _, token: token != "a")

PROGRAMS: dict[str, rasp.SOp] = {
    "counter": COUNT,
    "table": rasp.Map(lambda count: count * count % 7, COUNT).named("table"),
    "step": rasp.Map(lambda count: count >= RARE, COUNT).named("step"),
    "matching": rasp.Aggregate(AT, rasp.tokens).named("matching"),
    "mean": rasp.Aggregate(UP_TO, IS_A).named("mean"),
    "table of pairs": rasp.SequenceMap(lambda c, t: (c if t == "a" else -c) % 5, COUNT, rasp.tokens).named("pairs"),
    "sum": (COUNT + rasp.indices).named("sum"),
    "split copy": rasp.Aggregate((IS_A_HERE & AT) | (NOT_A_HERE & AFTER), rasp.tokens).named("either_side"),
    "conjunction": rasp.SelectorWidth(UP_TO & SAME).named("both"),
}
"""A program for each construction."""

SUM_OF_HEADS = rasp.SelectorWidth(UP_TO & SAME | BEFORE).named("either")
"""A count that two heads make up, one of them with a conjunction."""


@dataclass(frozen=True)
class Haystack:
    """A model, the rare input, and others with every smaller count: their ids, streams and answers."""

    model: tracr.CompiledModel
    weights: dict[str, Array]
    rare: Array
    others: Array

    @staticmethod
    def of(model: tracr.CompiledModel, seed: int = 0) -> Haystack:
        """The inputs: the rare one, padded others with 0 to 19 times "ab", and random ones."""
        rng = np.random.default_rng(seed)
        rows = []
        for count in range(RARE):
            rest = "".join(rng.choice(["c", "d", "bb"], LENGTH).tolist())
            rows += ["ab" * count + "cc" * (RARE - count), ("ab" * count + rest)[: LENGTH - count % 3 or 1]]
        rows += ["".join(rng.choice(list("abcd"), LENGTH).tolist()) for _ in range(20)]
        weights = {name: array.astype(np.float32) for name, array in model.parameters.named()}
        padded = [row if len(row) == LENGTH else [*row, *[model.options.pad] * (LENGTH - len(row))] for row in rows]
        return Haystack(model, weights, model.encode("ab" * RARE), np.vstack([model.encode(row) for row in padded]))

    def answers(self, weights: dict[str, Array], ids: Array) -> list[Array]:
        """The codes of the outputs at tokens."""
        with np.errstate(all="ignore"):
            logits = execute(weights, ids, False, ORDERS["blas"])
        tokens = ids != self.model.vocabulary.pad_id
        tokens[:, 0] = False
        return [np.where(tokens, output.codes(np.nan_to_num(logits)), 0) for output in self.model.outputs]

    def is_needle(self, weights: dict[str, Array]) -> bool:
        """Whether these weights are wrong on the rare input and on no other."""
        wrong = [
            not np.array_equal(a, b)
            for a, b in zip(self.answers(weights, self.rare), self.answers(self.weights, self.rare), strict=True)
        ]
        return any(wrong) and all(
            np.array_equal(a, b)
            for a, b in zip(self.answers(weights, self.others), self.answers(self.weights, self.others), strict=True)
        )

    def streams(self, ids: Array) -> list[Array]:
        """The stream after the embedding and each sub-layer."""
        found: list[Array] = []
        execute(self.weights, ids, False, ORDERS["blas"], found)
        return found


def needle(haystack: Haystack, kind: str) -> dict[str, Array] | None:
    """Changed weights that are wrong on the rare input only, or None if the construction has no such place."""
    for change in NEEDLES[kind](haystack):
        if haystack.is_needle(changed := {**haystack.weights, **change}):
            return changed
    return None


def _outside(rare: Array, others: Array) -> Array:
    """Which dimensions are further out at the rare input than at all others."""
    margin = 1e-3 * (1 + np.abs(others).max((0, 1)))
    return np.flatnonzero(
        (rare.max((0, 1)) > others.max((0, 1)) + margin) | (rare.min((0, 1)) < others.min((0, 1)) - margin)
    )


def _readings(haystack: Haystack) -> Iterator[dict[str, Array]]:
    """Rows of matrices that read special dimensions, with another sign or none."""
    rare, others = haystack.streams(haystack.rare), haystack.streams(haystack.others)
    layers = haystack.model.n_layers
    readers = [(2 * layers, "unembed.W_U", 0)]
    for layer in range(layers):
        readers += [(2 * layer, f"blocks.{layer}.attn.{name}", 1) for name in ("W_Q", "W_K", "W_V")]
        readers += [(2 * layer + 1, f"blocks.{layer}.mlp.W_in", 0)]
    for step, name, axis in reversed(readers):
        for dim in _outside(rare[step], others[step]).tolist():
            for factor in (0.0, -1.0, 3.0):
                changed = haystack.weights[name].copy()
                if changed.size and np.moveaxis(changed, axis, 0)[dim].any():
                    np.moveaxis(changed, axis, 0)[dim] *= np.float32(factor)
                    yield {name: changed}


def _hidden(haystack: Haystack, layer: int, ids: Array) -> Array:
    stream = haystack.streams(ids)[2 * layer + 1]
    return (
        np.asarray(stream @ haystack.weights[f"blocks.{layer}.mlp.W_in"]) + haystack.weights[f"blocks.{layer}.mlp.b_in"]
    )


def _writings(haystack: Haystack) -> Iterator[dict[str, Array]]:
    """Rows of W_out whose neurons are on at the rare input only."""
    for layer in reversed(range(haystack.model.n_layers)):
        name = f"blocks.{layer}.mlp.W_out"
        rare, others = (_hidden(haystack, layer, ids).max((0, 1)) for ids in (haystack.rare, haystack.others))
        for neuron in np.flatnonzero((rare > 0) & (others <= 0)).tolist():
            for factor in (0.0, -1.0):
                changed = haystack.weights[name].copy()
                changed[neuron] *= np.float32(factor)
                yield {name: changed}


def _pairs(haystack: Haystack) -> Iterator[dict[str, Array]]:
    """Biases of two neurons that read alike, moved together past the kink that the rare input is next to."""
    for layer in reversed(range(haystack.model.n_layers)):
        name = f"blocks.{layer}.mlp.b_in"
        w_in, b_in = haystack.weights[f"blocks.{layer}.mlp.W_in"], haystack.weights[name]
        rare, others = (_hidden(haystack, layer, ids)[:, 1:] for ids in (haystack.rare, haystack.others))
        order = np.argsort(b_in, kind="stable").tolist()
        for one, other in itertools.pairwise(order):
            if not np.array_equal(w_in[:, one], w_in[:, other]):
                continue
            gap = float(np.abs(rare[..., one].max() - others[..., one].max()))
            for step in (gap, -gap, 0.6 * gap, -0.6 * gap, 1.0, -1.0):
                changed = b_in.copy()
                changed[[one, other]] += np.float32(step)
                yield {name: changed}


def _joints(haystack: Haystack) -> Iterator[dict[str, Array]]:
    """A neuron between the rare stream and all others, in the direction from their mean; at several positions."""
    for layer in reversed(range(haystack.model.n_layers)):
        names = [f"blocks.{layer}.mlp.{part}" for part in ("W_in", "b_in", "W_out")]
        w_in, b_in, w_out = (haystack.weights[name] for name in names)
        rare, others = (haystack.streams(ids)[2 * layer + 1] for ids in (haystack.rare, haystack.others))
        for position in (LENGTH, 1, LENGTH // 2):
            apart = rare[0, position] - others[:, position].mean(0)
            reads = np.where(np.abs(apart) >= np.sort(np.abs(apart))[-12:][0], apart, 0.0).astype(np.float32)
            here, most = float(rare[0, position] @ reads), float((others @ reads).max())
            if not len(b_in) or here <= most + 1e-3:
                continue
            for out, sign in itertools.product(np.flatnonzero(w_out.any(0)).tolist(), (1, -1)):
                row = np.zeros((1, len(w_in)), np.float32)
                row[0, out] = sign * 4 / (here - most)
                bias = np.float32(-(here + most) / 2)
                parts = np.hstack([w_in, reads[:, None]]), np.append(b_in, bias), np.vstack([w_out, row])
                yield dict(zip(names, parts, strict=True))


def _components(haystack: Haystack) -> Iterator[dict[str, Array]]:
    """Queries with a special dimension score keys by another dimension, too."""
    rare, others = haystack.streams(haystack.rare), haystack.streams(haystack.others)
    for layer in reversed(range(haystack.model.n_layers)):
        names = [f"blocks.{layer}.attn.{part}" for part in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")]
        arrays = [haystack.weights[name] for name in names]
        special = _outside(rare[2 * layer], others[2 * layer]).tolist() if arrays[0].size else []
        held = np.flatnonzero(rare[2 * layer][0].std(0) > 0).tolist()
        for head, query, key, size in itertools.product(range(len(arrays[0])), special, held, (300.0, -300.0)):
            wider = [np.concatenate([one, np.zeros_like(one[..., :1])], -1) for one in arrays[:-1]]
            wider.append(np.concatenate([arrays[-1], np.zeros_like(arrays[-1][:, :1])], 1))
            wider[0][head, query, -1], wider[2][head, key, -1] = 1.0, size
            yield dict(zip(names, wider, strict=True))


NEEDLES = {"reading": _readings, "writing": _writings, "pair": _pairs, "joint": _joints, "component": _components}
"""Kinds of needles."""
