"""Reads changed weights back into the program: which component moved, and which cells of its table changed.

Each part of the model (a head, a group of neurons, an embedding, the unembedding) is judged alone: it gets its new
weights, all others keep the compiled ones. It therefore still reads compiled codes, and its answers can be listed as a
table:

- neurons: the values of the variables it reads -> the value it writes;
- heads: the values at a query and at a key -> whether the key is selected; and the value at a key -> the value written
  if the head attends to that key alone (only if it copies values);
- embeddings: the token or the position -> the value of each embedded variable; unembedding: value -> answer.

A written code is read as the nearest code of the variable. A key is selected if it gets at least half the weight of a
selected key. That weight is the largest of the query's keys; for a head that counts, it is the compiled share of BOS.
After training, a component may read variables that are not part of its table. If its answer then depends on them, the
cell has several values after the change, and it is not decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import NUMBER, Number, Variable
from tracr.errors import TracrError, UnknownName
from tracr.ir.domains import Finite
from tracr.ir.parameters import Parameters
from tracr.ir.schedule import PlacedHead, PlacedNeurons
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.verification import chosen_inputs
from tracr.natural.owned_weights import Mask, owned_weights, written_by
from tracr.runtime.forward import forward
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value, value_text

__all__ = ["Cell", "ChangedPart", "ReadBack", "read_back"]

MOST = 2_000  # inputs, if none are given
DIGITS = 6  # of numbers that are not listed
Array = NDArray[Any]


@dataclass(frozen=True)
class Cell:
    """One cell of a part's table: `key` has the values that are read, `before` and `after` the values of `table`."""

    table: str
    key: tuple[tuple[str, Value], ...]
    before: tuple[Value, ...]
    after: tuple[Value, ...]

    @property
    def decided(self) -> bool:
        """Whether the new value depends on nothing but the key."""
        return len(self.after) == 1

    @property
    def changed(self) -> bool:
        """Whether the values before and after differ."""
        return self.before != self.after

    def __str__(self) -> str:
        key = ", ".join(f"{label} = {value_text(value)}" for label, value in self.key)
        before, after = (" or ".join(map(value_text, values)) for values in (self.before, self.after))
        return f"{self.table}({key}): {before} -> {after}"


@dataclass(frozen=True)
class ChangedPart:
    """A part of the model: how far its weights moved, and its table with the new weights.

    `moved` is the norm of the change. `relative` divides it by the norm of the compiled weights.
    """

    name: str
    moved: float
    relative: float
    cells: tuple[Cell, ...] = field(repr=False)

    @property
    def changed(self) -> tuple[Cell, ...]:
        """The cells whose value changed."""
        return tuple(cell for cell in self.cells if cell.changed)


@dataclass(frozen=True, eq=False)
class ReadBack:
    """The parts of a model with changed weights, in the order in which they compute."""

    model: CompiledModel
    weights: Mapping[str, Array] = field(repr=False)
    parts: tuple[ChangedPart, ...]
    owned: Mapping[str, Mask] = field(repr=False)

    def __getitem__(self, name: str) -> ChangedPart:
        for part in self.parts:
            if part.name == name:
                return part
        raise UnknownName(f"the model has no part {name!r}", hint=f"it has {', '.join(self.owned)}")

    def only(self, *names: str) -> DesignedModel:
        """The compiled model with the new weights of these parts only."""
        return self._mixed(self.model.parameters, self.weights, names)

    def without(self, *names: str) -> DesignedModel:
        """The model with all new weights, but with the compiled weights of these parts."""
        return self._mixed(Parameters.of(self.weights), dict(self.model.parameters.named()), names)

    def _mixed(self, base: Parameters, other: Mapping[str, Array], names: Sequence[str]) -> DesignedModel:
        for name in names:
            self[name]
        return self.model.with_weights(_mixed(base, other, [self.owned[name] for name in names]))

    def show(self) -> str:
        """A line for each part that moved, then its changed cells."""
        lines = []
        for part in self.parts:
            if part.moved:
                cells = f"{len(part.changed)} cell{'' if len(part.changed) == 1 else 's'} changed"
                lines.append(f"{part.name}: weights moved by {part.relative:.1%}, {cells}")
                lines += [f"  {cell}" for cell in part.changed]
        return "\n".join(lines) or "no weight moved"

    def __str__(self) -> str:
        return self.show()


def read_back(
    model: CompiledModel, weights: Mapping[str, Any], inputs: Sequence[Sequence[Any]] | None = None, *, seed: int = 0
) -> ReadBack:
    """Reads the changed weights of a compiled model back into its program.

    Args:
        model: a model compiled at level 0 or 1. Level 0 gives most detail: every value has its own neuron. Level 2 and
            variants are refused.
        weights: its weights after training, under the names of `model.parameters.named()`; numpy, torch or JAX.
        inputs: the inputs on which the parts are run; by default all, or about 2,000 random ones. Cells that no input
            reaches are not listed.
        seed: the seed of the random choice of inputs.
    """
    if not isinstance(model, CompiledModel) or model.options.level > 1:
        raise TracrError(
            "weights are read back for a model compiled at level 0 or 1, without variants",
            hint="compile with level=0; for a variant, pass model.plain and the weights of its labelled form",
        )
    new = dict(model.with_weights(weights).parameters.named())
    if {name: array.shape for name, array in new.items()} != {n: a.shape for n, a in model.parameters.named()}:
        raise TracrError("the weights have other shapes than the model's", hint="read back weights of this very model")
    new = {name: _unrounded(new[name], array) for name, array in model.parameters.named()}
    owned = owned_weights(model)
    reader = _Reader(model, _ids(model, inputs, seed))
    parts = [_part(name, mask, model.parameters, new, reader) for name, mask in owned.items()]
    return ReadBack(model, new, tuple(parts), owned)


def _part(name: str, mask: Mask, old: Parameters, new: Mapping[str, Array], reader: _Reader) -> ChangedPart:
    compiled = dict(old.named())
    moved = math.sqrt(sum(float(((new[key] - compiled[key])[own] ** 2).sum()) for key, own in mask.items()))
    norm = math.sqrt(sum(float((compiled[key][own] ** 2).sum()) for key, own in mask.items()))
    cells = tuple(reader.cells(name, Parameters.of(_mixed(old, new, [mask])) if moved else old))
    return ChangedPart(name, moved, moved / norm if norm else math.inf if moved else 0.0, cells)


def _unrounded(new: Array, old: Array) -> Array:
    """The new weights, with the compiled ones where they differ by nothing but the rounding to float32."""
    return np.where(new == old.astype(np.float32), old, new)


def _mixed(base: Parameters, other: Mapping[str, Array], masks: Sequence[Mask]) -> dict[str, Array]:
    """The weights of `base` with the entries of the masks from `other`."""
    made = dict(base.named())
    for mask in masks:
        for name, own in mask.items():
            made[name] = np.where(own, other[name], made[name])
    return made


def _ids(model: CompiledModel, inputs: Sequence[Sequence[Any]] | None, seed: int) -> Array:
    """The ids of the inputs on which the program is defined."""
    if inputs is None:
        vocab, chosen = model.options.vocab, chosen_inputs(model, MOST, seed)[0]
        inputs = [[vocab[code] for code in row] for batch in chosen for row in batch.tolist() if row]
    listed = [list(tokens) for tokens in inputs]
    errors = evaluate_batch(model.program, listed).errors.tolist() if listed else []
    kept = [tokens for tokens, wrong in zip(listed, errors, strict=True) if not wrong]
    if not kept:
        raise TracrError("the program is defined on none of the inputs", hint="pass other inputs")
    return model.vocabulary.encode(kept)[0]


@dataclass(frozen=True, eq=False)
class _Book:
    """The codes of a variable: their dimensions, a row and a value for each."""

    label: str
    slots: NDArray[np.intp]
    rows: Array
    values: tuple[Value, ...]

    def nearest(self, stream: Array) -> Array:
        """The number of the nearest code in a stream [..., d_model]."""
        held = stream[..., self.slots]
        return np.asarray(((held[..., None, :] - self.rows) ** 2).sum(axis=-1).argmin(axis=-1))


class _Reader:
    """Runs a model with the new weights of one part, and lists the part's table."""

    def __init__(self, model: CompiledModel, ids: Array) -> None:
        self.model, self.ids = model, ids
        self.real = (ids != model.vocabulary.pad_id) & (np.arange(ids.shape[1]) > 0)
        self.compiled = self.run(model.parameters)
        self.last = self.compiled[f"blocks.{model.n_layers - 1}.hook_resid_post" if model.n_layers else "embedded"]
        self.books = {variable: self.book(variable) for variable in model.layout.slots}
        self.heads = {one.name: one for one in model.schedule.heads()}
        self.neurons = {one.name: one for one in model.schedule.neurons()}

    def run(self, parameters: Parameters) -> dict[str, Array]:
        """All activations, and the sum of the embeddings as `embedded`."""
        seen: dict[str, Array] = {}
        forward(parameters, self.ids, np, causal=self.model.options.causal, hook=seen.__setitem__)
        seen["embedded"] = seen["hook_embed"] + seen["hook_pos_embed"]
        return seen

    def book(self, variable: Variable) -> _Book:
        """The codes of a variable; if its values are not listed, those that the compiled model holds at the end."""
        slots = self.model.layout.slots[variable]
        kept = np.flatnonzero(slots >= 0)
        values = self.listed(variable)
        if values is not None:
            return _Book(variable.label, slots[kept], variable.codes(values)[:, kept], values)
        rows = np.unique(self.last[self.real][:, slots[kept]].round(DIGITS), axis=0)
        held = [[variable.values[place] for place in kept[np.flatnonzero(row)]] for row in rows]
        numbers = rows[:, [variable.values[place] is NUMBER for place in kept]].sum(axis=1).tolist()
        found = tuple(None if None in one else number for one, number in zip(held, numbers, strict=True))
        return _Book(variable.label, slots[kept], rows, found)

    def listed(self, variable: Variable) -> tuple[Value, ...] | None:
        """The values of a variable, if they are listed: in its directions, or in the domain of its s-op."""
        if NUMBER not in variable.index:
            return tuple(value for value in variable.values if not isinstance(value, Number))
        node = None if variable.node is None or variable.scratch else self.model.program.sops.get(variable.node)
        return node.domain.values if node is not None and isinstance(node.domain, Finite) else None

    def cells(self, name: str, parameters: Parameters) -> Iterator[Cell]:
        """The cells of one part."""
        now = self.compiled if parameters is self.model.parameters else self.run(parameters)
        if name in self.neurons:
            yield from self.of_neurons(self.neurons[name], now)
        elif name in self.heads:
            yield from self.selected(self.heads[name], now)
            yield from self.copied(self.heads[name], parameters, now)
        elif name in ("embed", "pos_embed"):
            yield from self.embedded(name, now)
        elif name == "unembed":
            yield from self.answers(now)

    def of_neurons(self, placed: PlacedNeurons, now: Mapping[str, Array]) -> Iterator[Cell]:
        before, after = f"blocks.{placed.layer}.hook_resid_mid", f"blocks.{placed.layer}.hook_resid_post"
        keys = self.keys([placed.group.read], self.compiled[before])
        for variable in written_by(placed.group):
            if variable in self.books:
                book = self.books[variable]
                pair = [book.nearest(one[after])[self.real] for one in (self.compiled, now)]
                yield from _listed(book.label, [(one, codes[self.real]) for one, codes in keys], book.values, *pair)

    def embedded(self, name: str, now: Mapping[str, Array]) -> Iterator[Cell]:
        places = np.broadcast_to(np.arange(self.ids.shape[1]) - 1, self.ids.shape)
        vocab = self.model.options.vocab
        token = _Book("token", np.empty(0, dtype=np.intp), np.empty(0), tuple(vocab))
        position = _Book("position", np.empty(0, dtype=np.intp), np.empty(0), tuple(range(places.max() + 1)))
        key = (token, self.ids[self.real]) if name == "embed" else (position, places[self.real])
        for source in self.model.schedule.embedded:
            mine = source.by_token if name == "embed" else source.by_position
            if mine is not None and source.variable in self.books:
                book = self.books[source.variable]
                pair = [book.nearest(one["embedded"])[self.real] for one in (self.compiled, now)]
                yield from _listed(book.label, [key], book.values, *pair)

    def answers(self, now: Mapping[str, Array]) -> Iterator[Cell]:
        for output, (_, variable) in zip(self.model.outputs, self.model.circuit.outputs, strict=True):
            if isinstance(output.domain, Finite) and variable in self.books and NUMBER not in variable.index:
                book = self.books[variable]
                key = (book, book.nearest(self.last)[self.real])
                span = slice(output.start, output.stop)
                pair = [one["logits"][..., span].argmax(axis=-1)[self.real] for one in (self.compiled, now)]
                yield from _listed(f"answer {output.name}", [key], book.values, *pair)

    def selected(self, placed: PlacedHead, now: Mapping[str, Array]) -> Iterator[Cell]:
        """For every query and key whether the key is selected."""
        stream = self.compiled[f"blocks.{placed.layer}.hook_resid_pre"]
        name = f"blocks.{placed.layer}.attn.hook_attn_scores"
        old, new = (one[name][:, placed.place] for one in (self.compiled, now))
        where = self.real[:, :, None] & self.real[:, None, :] & np.isfinite(old)
        queries = [
            (book, np.broadcast_to(codes[:, :, None], where.shape))
            for book, codes in self.keys([placed.head.query], stream)
        ]
        keys = [
            (book, np.broadcast_to(codes[:, None, :], where.shape))
            for book, codes in self.keys([placed.head.key], stream)
        ]
        named = [(_renamed(book, "query"), codes[where]) for book, codes in queries]
        named += [(_renamed(book, "key"), codes[where]) for book, codes in keys]
        counts = (old - old[:, :, :1])[where].max(initial=-math.inf) <= 0
        level = (old - old[:, :, :1])[where].max(initial=-math.inf) if counts else 0.0
        pair = []
        for scores in (old, new):
            strongest = scores[:, :, :1] if counts else np.where(where, scores, scores[:, :, :1]).max(2, keepdims=True)
            pair.append((scores - strongest >= level - math.log(2))[where].astype(int))
        yield from _listed("selects", named, (False, True), *pair)

    def copied(self, placed: PlacedHead, parameters: Parameters, now: Mapping[str, Array]) -> Iterator[Cell]:
        """For every value that the head reads at a key, the value that it writes if it attends to that key alone."""
        stream = self.compiled[f"blocks.{placed.layer}.hook_resid_pre"]
        keys = [(book, codes[self.real]) for book, codes in self.keys([placed.head.value], stream)]
        for variable in written_by(placed.head):
            if keys and variable in self.books and NUMBER not in variable.index:
                book, pair = self.books[variable], []
                for weights, seen in ((self.model.parameters, self.compiled), (parameters, now)):
                    layer = weights.layers[placed.layer]
                    value = seen[f"blocks.{placed.layer}.attn.hook_v"][:, :, placed.place]
                    pair.append(book.nearest(value @ layer.W_O[placed.place] + layer.b_O)[self.real])
                yield from _listed(book.label, keys, book.values, *pair)

    def keys(self, maps: Sequence[LinearMap], stream: Array) -> list[tuple[_Book, Array]]:
        """The variables that the maps read, each with its codes in the stream."""
        read = dict.fromkeys(variable for one in maps for variable in one.blocks if variable not in (ONE, BOS, PAD))
        return [(self.books[one], self.books[one].nearest(stream)) for one in read if one in self.books]


def _renamed(book: _Book, role: str) -> _Book:
    return _Book(f"{role} {book.label}", book.slots, book.rows, book.values)


def _listed(
    table: str, keys: Sequence[tuple[_Book, Array]], values: Sequence[Value], before: Array, after: Array
) -> Iterator[Cell]:
    """The cells: for every combination of keys the values before and after."""
    rows = np.unique(np.stack([*(codes for _, codes in keys), before, after], axis=-1), axis=0)
    found: dict[tuple[int, ...], tuple[dict[int, None], dict[int, None]]] = {}
    for *key, old, new in rows.tolist():
        ends = found.setdefault(tuple(key), ({}, {}))
        ends[0][old] = ends[1][new] = None
    for key, ends in found.items():
        named = tuple((book.label, book.values[code]) for (book, _), code in zip(keys, key, strict=True))
        yield Cell(table, named, *(tuple(values[code] for code in sorted(one)) for one in ends))
