"""The reads of a model: at every place, the vectors that read the residual stream and the streams that can be there.

A projection loses nothing if all these reads stay exact. The streams are those of all inputs the model takes. They are
never those of a sample: a stream that no sampled input has could then be read wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention, Mlp, Network, Part, network_of
from tracr.compress.task import Task, all_are_few, task_of
from tracr.model.designed import DesignedModel
from tracr.values import Value

__all__ = ["ReadingPlace", "basis", "possible", "read_error", "readings", "seen"]

Array = NDArray[Any]
RELATIVE = 1e-9  # singular values below this, times the largest, are zero


@dataclass(frozen=True, eq=False)
class ReadingPlace:
    """A reader of the stream: its place, a basis [r, D] of the streams held there, and unit vectors [D, m] it reads."""

    place: str
    held: Array
    reads: Array


def readings(model: DesignedModel, inputs: Sequence[Sequence[Value]] | None = None) -> list[ReadingPlace]:
    """The readers of the model, the unembedding last, with the streams of the given inputs or of every input.

    If the inputs are few, they are all run. Otherwise the streams come from the weights (`possible`).
    """
    if inputs is not None or all_are_few(model):
        return seen(task_of(model, inputs))
    return possible(model)


def seen(task: Task) -> list[ReadingPlace]:
    """The readers, with the streams of the task's inputs. The unembedding is not read at BOS, which has no output."""
    network = task.network
    stream, held = task.embedded[task.place], []
    for part, target in zip(network.parts, task.targets, strict=True):
        held.append(basis(stream[task.real]))
        stream = stream.copy()
        stream[..., part.dims] += target
    held.append(basis(stream[:, 1:][task.real[:, 1:]]))
    return _with_reads(network, held)


def possible(model: DesignedModel) -> list[ReadingPlace]:
    """The readers, with a space that contains the streams of all inputs, found from the weights.

    Before a sub-layer, every stream is a row of `table` (one per pair of token and position) plus a vector of the space
    `free`. An attention head writes a mean of values, so its write is that of any one row plus the image of a vector in
    the span of all differences of streams. A neuron that reads nothing of `free` has one activation per row. Any other
    neuron may have any activation, so its row of W_out joins `free`. Hence each step of the loop keeps the invariant,
    for all inputs, whatever the attention weights are.
    """
    network = network_of(model.parameters, model.options.causal)
    table, free = _embedded(model), np.zeros((0, network.width))
    held = []
    for part in network.parts:
        held.append(_span(table, free))
        if isinstance(part, Attention):
            table, free = _attended(part, table, free)
        else:
            table, free = _activated(part, table, free)
    held.append(_span(table[1:], free))
    return _with_reads(network, held)


def read_error(readers: Sequence[ReadingPlace], write: Array, read: Array) -> float:
    """The largest error of a read, if streams are written through `write` [D, d] and read through `read` [D, d].

    Streams and readers are the unit vectors of `readers`.
    """
    errors = [(one.held @ write) @ (read.T @ one.reads) - one.held @ one.reads for one in readers]
    return max((float(np.abs(error).max(initial=0.0)) for error in errors), default=0.0)


def basis(rows: Array) -> Array:
    """An orthonormal basis [r, D] of the span of rows, which count with equal weight."""
    size = np.linalg.norm(rows, axis=1)
    rows = rows[size > 0] / size[size > 0, None]
    if len(rows) > rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(vectors[values > RELATIVE * values.max(initial=0.0)])


def _embedded(model: DesignedModel) -> Array:
    """The embeddings of BOS and of every token at every position [pair, D], BOS first."""
    parameters, vocabulary = model.parameters, model.vocabulary
    tokens = [i for i in range(len(parameters.W_E)) if i not in (vocabulary.bos_id, vocabulary.pad_id)]
    first = parameters.W_E[vocabulary.bos_id] + parameters.W_pos[0]
    rest = parameters.W_E[tokens][None] + parameters.W_pos[1 : vocabulary.longest + 1][:, None]
    return np.concatenate([first[None], rest.reshape(-1, len(first))])


def _attended(part: Attention, table: Array, free: Array) -> tuple[Array, Array]:
    """The invariant of `possible` after a layer of heads."""
    differences = _span(table - table[0], free)
    table, written = table.copy(), [free]
    start = table[0].copy()
    for W_V, b_V, W_O in zip(part.W_V, part.b_V, part.W_O, strict=True):
        table[:, part.dims] += (start @ W_V + b_V) @ W_O
        written.append(_wide(_cleared(differences @ W_V, W_V) @ W_O, part.dims, table.shape[1]))
    table[:, part.dims] += part.b_O
    return table, basis(np.concatenate(written))


def _activated(part: Mlp, table: Array, free: Array) -> tuple[Array, Array]:
    """The invariant of `possible` after neurons."""
    moved = _cleared(free @ part.W_in, part.W_in).any(axis=0)
    known = np.maximum(table @ part.W_in[:, ~moved] + part.b_in[~moved], 0)
    table = table.copy()
    table[:, part.dims] += known @ part.W_out[~moved] + part.b_out
    return table, basis(np.concatenate([free, _wide(part.W_out[moved], part.dims, table.shape[1])]))


def _cleared(read: Array, matrix: Array) -> Array:
    """Reads of unit vectors through a matrix, with rounding errors set to zero."""
    return np.where(np.abs(read) > RELATIVE * np.linalg.norm(matrix, axis=0), read, 0.0)


def _wide(rows: Array, dims: Array, width: int) -> Array:
    """Rows on some dimensions as rows [n, D]."""
    found = np.zeros((len(rows), width))
    found[:, dims] = rows
    return found


def _span(table: Array, free: Array) -> Array:
    return basis(np.concatenate([basis(table), free]))


def _with_reads(network: Network, held: list[Array]) -> list[ReadingPlace]:
    columns = [*map(_columns, network.parts), network.W_U]
    places = [*(part.name for part in network.parts), "unembed"]
    return [ReadingPlace(place, rows, _unit(read)) for place, rows, read in zip(places, held, columns, strict=True)]


def _columns(part: Part) -> Array:
    """All columns with which a sub-layer reads the stream."""
    if isinstance(part, Mlp):
        return part.W_in
    return np.concatenate([matrix for kind in (part.W_Q, part.W_K, part.W_V) for matrix in kind], axis=1)


def _unit(columns: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    return np.asarray(columns[:, size > 0] / size[size > 0])
