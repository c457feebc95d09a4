"""A model's weights in the format of the C kernel (`c/`): lists of the nonzero weights.

The rows of the kernel's memory are the used dimensions of the residual stream, followed by the computed numbers.
Constant dimensions become part of biases. Queries, keys and values that depend only on the embedding become tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.grouping import group_rows
from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["pack"]

Array = NDArray[Any]
_Table = tuple[Array, Array]  # the rows for each token, and for each position
FEW_SHARES = 2**16  # the most attention shares in a table
SMALLEST = -87.0  # exp of a smaller number counts as 0, as in `c/vectors.h`
WORTH_SORTING = 8  # a map with at least this many inputs, and outputs of each, is listed by input


def pack(parameters: Parameters, causal: bool) -> tuple[Array, Array]:
    """The integers and the numbers of a network, in the order in which `c/unpack.h` reads and checks them."""
    with np.errstate(all="ignore"):  # the kernel is not used with infinite weights or NaN
        packed = _Packed(parameters, causal)
        words = [np.atleast_1d(word) for word in packed.words]
        return np.concatenate(words).astype(np.int32), np.concatenate(packed.numbers).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Map:
    """An affine map, as a list of nonzero weights with their inputs and outputs, and a bias."""

    inputs: Array
    outputs: Array
    weights: Array
    bias: Array

    @staticmethod
    def of(weight: Array, bias: Array | None = None) -> _Map:
        inputs, outputs = weight.nonzero()
        none = np.zeros(weight.shape[1], np.float32)
        return _Map(inputs, outputs, weight[inputs, outputs], none if bias is None else bias)

    @staticmethod
    def of_all(maps: Sequence[_Map]) -> _Map:
        """One map with the outputs of all, one after another."""
        ends = np.cumsum([0, *(len(own.bias) for own in maps)])
        nothing = np.zeros(0, np.intp)
        return _Map(
            np.concatenate([nothing, *(own.inputs for own in maps)]),
            np.concatenate([nothing, *(own.outputs + start for own, start in zip(maps, ends, strict=False))]),
            np.concatenate([np.zeros(0, np.float32), *(own.weights for own in maps)]),
            np.concatenate([np.zeros(0, np.float32), *(own.bias for own in maps)]),
        )

    @cached_property
    def used(self) -> Array:
        """Whether each output can be other than 0."""
        return np.asarray((np.bincount(self.outputs, minlength=len(self.bias)) > 0) | (self.bias != 0))

    def only(self, kept: Array) -> _Map:
        """The map to the outputs for which `kept` is true, renumbered."""
        if kept.all():
            return self
        own = kept[self.outputs]
        return _Map(self.inputs[own], (kept.cumsum() - 1)[self.outputs[own]], self.weights[own], self.bias[kept])

    def of_rows(self, rows: Array) -> Array:
        """The outputs for some rows of inputs, without the bias."""
        read = np.flatnonzero(np.bincount(self.inputs))
        weight = np.zeros((len(read), len(self.bias)))
        weight[np.searchsorted(read, self.inputs), self.outputs] = self.weights
        return (rows[:, read].astype(np.float64) @ weight).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Head:
    """Queries, keys and values, with tables for those known from the embedding; and the map that writes the values."""

    sides: tuple[_Map, _Map, _Map]
    tables: tuple[_Table | None, ...]
    writes: Array

    @property
    def computed(self) -> list[_Map]:
        """The sides (queries, keys or values) that must be computed."""
        return [side for side, table in zip(self.sides, self.tables, strict=True) if table is None]


@dataclass(frozen=True, eq=False)
class _Layer:
    """The heads and neurons of a layer, with the maps that write to the residual stream."""

    heads: list[_Head]
    attention: _Map
    neurons: _Map
    mlp: _Map


class _Packed:
    """Integers and numbers, one after another."""

    def __init__(self, parameters: Parameters, causal: bool) -> None:
        self.words: list[Any] = []
        self.numbers: list[Array] = [np.zeros(0)]
        self._tokens, self._positions = parameters.W_E, parameters.W_pos
        self._changes = [_changed(layer) for layer in parameters.layers]
        self._fixed, self._constant = _constants(parameters, self._changes)
        layers = self._layers(parameters)
        unembed = self._map(parameters.W_U)
        read = np.zeros(len(self._fixed), bool)
        heads = [head for layer in layers for head in layer.heads]
        computed = [side for head in heads for side in head.computed]
        for reader in (*computed, *(layer.neurons for layer in layers), unembed):
            read[reader.inputs] = True
        self._read, self._row = read, np.cumsum(read) - 1
        writers = [self._tokens.any(axis=0), self._positions.any(axis=0)]
        writers += [writer.used for layer in layers for writer in (layer.attention, layer.mlp)]
        self._written_once = np.sum(writers, axis=0) == 1
        self._stream = self._rows = int(read.sum())
        self._width = 0
        stream = _apart(self._tokens[:, read], self._positions[:, read])
        self._table(stream[0])
        self._table(stream[1])
        self._kinds([stream, *(table for head in heads for table in head.tables if table)], causal)
        for layer in layers:
            self._layer(layer)
        self._unembed(unembed)
        sizes = [self._rows, self._stream, len(layers), len(heads), int(causal), self._width, *range(self._width)]
        self.words.insert(0, sizes)

    def _map(self, weight: Array, bias: Array | None = None) -> _Map:
        """A map of the residual stream; constant dimensions are part of its bias."""
        own = _Map.of(weight, bias)
        fixed = self._fixed[own.inputs]
        if not fixed.any():
            return own
        held = self._constant[own.inputs[fixed]] * own.weights[fixed]
        total = own.bias + np.bincount(own.outputs[fixed], held, len(own.bias))
        return _Map(own.inputs[~fixed], own.outputs[~fixed], own.weights[~fixed], total.astype(np.float32))

    def _layers(self, parameters: Parameters) -> list[_Layer]:
        changed = np.zeros(len(self._fixed), bool)
        layers = []
        for layer, changes in zip(parameters.layers, self._changes, strict=True):
            heads = list(self._heads(layer, changed))
            changed = changed | changes
            b_O, b_out = (
                layer.b_O * bool(len(layer.W_O)),
                layer.b_out * bool(layer.b_in.size),
            )  # 0 without heads or neurons
            attention = _Map.of(np.concatenate([layer.W_out[:0], *(head.writes for head in heads)]), b_O)
            neurons = self._map(layer.W_in, layer.b_in)
            layers.append(_Layer(heads, attention, neurons, _Map.of(layer.W_out, b_out)))
        return layers

    def _heads(self, layer: LayerParameters, changed: Array) -> Iterator[_Head]:
        """The heads that write something, without the parts whose product with other weights is 0."""
        for W_Q, W_K, W_V, W_O, b_Q, b_K, b_V in zip(
            layer.W_Q, layer.W_K, layer.W_V, layer.W_O, layer.b_Q, layer.b_K, layer.b_V, strict=True
        ):
            value = self._map(W_V, b_V)
            read = value.used & W_O.any(axis=1)
            if not read.any():
                continue
            query, key = self._map(W_Q, b_Q), self._map(W_K, b_K)
            compared = query.used & key.used
            sides = query.only(compared), key.only(compared), value.only(read)
            tables = (None if changed[side.inputs].any() else self._tabulated(side) for side in sides)
            yield _Head(sides, tuple(tables), W_O[read])

    def _kinds(self, tables: list[_Table], causal: bool) -> None:
        """The number of kinds of tokens, and the kind of each; 0 if the position of a token makes a difference."""
        if causal or any(positions.any() for _, positions in tables):
            self.words.append(0)
        else:
            first, kind = group_rows(np.hstack([tokens for tokens, _ in tables]))
            self.words += [len(first), kind]

    def _layer(self, layer: _Layer) -> None:
        """Packs a layer; the rows after the residual stream are free again after attention, and after the MLP."""
        self.words.append(len(layer.heads))
        computed = [side for head in layer.heads for side in head.computed]
        free, ends = self._stream, np.cumsum([0, *(len(head.writes) for head in layer.heads)])
        first = free + sum(len(side.bias) for side in computed)
        rows, attention = self._in_place(layer.attention, np.arange(first, first + ends[-1]))
        for head, start, stop in zip(layer.heads, ends, ends[1:], strict=False):
            free = self._head(head, free)
            self.words.append(rows[start:stop])
        self._compute(_Map.of_all(computed), self._stream)
        self._write(attention, rows)
        self._compute(layer.neurons, self._stream)
        self._write(layer.mlp, self._stream + np.arange(len(layer.neurons.bias)))
        self._rows = max(self._rows, first + len(rows), self._stream + len(layer.neurons.bias))

    def _in_place(self, attention: _Map, rows: Array) -> tuple[Array, _Map]:
        """The rows for the results of heads, and the map still to write.

        A result that is the only content of a dimension is stored directly in the row of that dimension.
        """
        alone = (np.bincount(attention.inputs, minlength=len(rows)) == 1)[attention.inputs]
        alone &= (np.bincount(attention.outputs, minlength=len(attention.bias)) == 1)[attention.outputs]
        alone &= (attention.weights == 1) & (attention.bias == 0)[attention.outputs]
        alone &= (self._read & self._written_once)[attention.outputs]
        rows = rows.copy()
        rows[attention.inputs[alone]] = self._row[attention.outputs[alone]]
        left = ~alone
        return rows, _Map(attention.inputs[left], attention.outputs[left], attention.weights[left], attention.bias)

    def _head(self, head: _Head, free: int) -> int:
        """Packs a head, whose computed numbers begin at row `free`; returns the next free row."""
        tables = head.tables
        by_token = [table is not None and not table[1].any() for table in tables]
        classes = []
        for number, (side, table) in enumerate(zip(head.sides, tables, strict=True)):
            self.words.append([len(side.bias), int(table is not None)])
            self._width = max(self._width, len(side.bias))
            if table is None:
                self.words.append(free)
                free += len(side.bias)
                continue
            told_apart = table[0]
            if number > 0 and all(by_token[1:]):  # a token's key and value share a class
                told_apart = np.hstack([other[0] for other in tables[1:] if other])
            first, class_of = group_rows(told_apart)
            classes.append(table[0][first])
            self.words.append(class_of)
            self._table(classes[-1])
            self._table(table[1])
        tabulated = all(by_token[:2]) and len(classes[0]) * len(classes[1]) <= FEW_SHARES
        self.words.append(int(tabulated))
        if tabulated:
            scores = classes[1].astype(np.float64) @ classes[0].T
            scores -= scores.max(axis=0)
            self.numbers.append(np.where(scores < SMALLEST, 0, np.exp(scores)).ravel())
        return free

    def _tabulated(self, side: _Map) -> _Table:
        """The table of a known map for tokens and positions; biases, which BOS and PAD cancel, are in the tokens."""
        return _apart(side.of_rows(self._tokens) + side.bias, side.of_rows(self._positions))

    def _unembed(self, unembed: _Map) -> None:
        """Packs the unembedding; logits that are dimensions of the residual stream are read there."""
        count = len(unembed.bias)
        entries = np.bincount(unembed.outputs, minlength=count)
        row = np.full(count, -1)
        row[unembed.outputs] = np.where(unembed.weights == 1, self._row[unembed.inputs], -1)
        computed = (entries != 1) | (unembed.bias != 0) | (row < 0)
        row[computed] = self._stream + np.arange(computed.sum())
        self._rows = max(self._rows, self._stream + int(computed.sum()))
        self._compute(unembed.only(computed), self._stream)
        self.words += [count, row]

    def _compute(self, reader: _Map, first: int) -> None:
        """A map from the residual stream to the rows from `first` on; by input if many inputs have many outputs."""
        targets = first + np.arange(len(reader.bias))
        inputs = np.flatnonzero(np.bincount(reader.inputs))
        if len(inputs) > WORTH_SORTING and len(reader.inputs) > WORTH_SORTING * len(inputs):
            order = np.argsort(reader.inputs, kind="stable")
            self.words += [len(inputs), self._row[inputs]]
            self._entries(np.searchsorted(inputs, reader.inputs)[order], len(inputs), targets[reader.outputs[order]])
            self.numbers.append(reader.weights[order])
        else:
            self._by_output(reader, self._row[reader.inputs])
        self.words += [len(targets), targets]
        self.numbers.append(reader.bias)

    def _write(self, writer: _Map, rows: Array) -> None:
        """A map from some rows that adds to the residual stream; without dimensions that are constant or never read."""
        kept = writer.used & self._read
        own = writer.only(kept)
        self._by_output(own, rows[own.inputs])
        self.words += [len(own.bias), self._row[kept]]
        self.numbers.append(own.bias)

    def _by_output(self, own: _Map, rows: Array) -> None:
        """The entries of a map that reads these rows, listed by output."""
        order = own.outputs.argsort(kind="stable")
        self.words.append(0)
        self._entries(own.outputs[order], len(own.bias), rows[order])
        self.numbers.append(own.weights[order])

    def _table(self, rows: Array) -> None:
        """For each row the nonzero columns and their values."""
        row, column = rows.nonzero()
        self._entries(row, len(rows), column)
        self.numbers.append(rows[row, column])

    def _entries(self, owner: Array, owners: int, columns: Array) -> None:
        """The start of each owner's entries, which are in the owners' order, and the columns of the entries."""
        self.words += [owners, owner.searchsorted(np.arange(owners + 1)), columns]


def _apart(tokens: Array, positions: Array) -> _Table:
    """The table of tokens and positions; if all positions have the same part, it is moved to the tokens."""
    if (positions == positions[:1]).all():
        return tokens + positions[:1], np.zeros_like(positions)
    return tokens, positions


def _constants(parameters: Parameters, changes: Sequence[Array]) -> tuple[Array, Array]:
    """Whether each dimension of the residual stream holds the same number everywhere, and that number.

    `changes` says for each layer whether it writes to each dimension.
    """
    tokens, positions = parameters.W_E, parameters.W_pos
    fixed = (tokens == tokens[:1]).all(axis=0) & (positions == positions[:1]).all(axis=0)
    for changed in changes:
        fixed &= ~changed
    return fixed, np.where(fixed, tokens[0] + positions[0], 0)


def _changed(layer: LayerParameters) -> Array:
    """Whether a layer writes to each dimension."""
    written = [layer.W_O.any(axis=(0, 1)), layer.b_O != 0, layer.W_out.any(axis=0), layer.b_out != 0]
    return np.asarray(np.any(written, axis=0))
