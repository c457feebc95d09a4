"""The directions of the labels in a learned model's residual stream: random, orthogonal or superposed.

Superposed. A label is written along a row of `write` [label, d_model] and read with a column of `read` [d_model,
label]; there may be fewer dimensions than labels. Let the rows of A span everything that the embedding and the parts
can write, and let the columns of B span everything that the parts and the unembedding read. All reads are exact if

    A write read B = A B.

Then the edges hold by construction: if v is anything that a writer can write, and a reader with the matrix M has no
edge from it, then v write read M = v M = 0, whatever the other writers have written. The condition is about each writer
alone, not about streams of inputs: it also holds for patched streams, which no input has.

Let P be the projector onto the row space of A, and U an orthonormal basis of the columns of P B. Then A U Uᵀ B = A B
(`compress/closed.py` has the proof), and with write = [U, N] T and read = T⁻¹ [U, 0]ᵀ all reads are exact, for any N
and any invertible T. A write read B has a rank of at most d_model, so d_model >= rank(A B), the number of columns of U:
with fewer dimensions, some read is not exact.

Parts that are to be superposed are trained to read only what the compiled part reads (`narrow_reads`): not all labels
of its variables, but the combinations of them in the columns of its matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.natural.learned.codes import PartCodes, PartPlace

if TYPE_CHECKING:
    from tracr.ir.parameters import Parameters
    from tracr.model.compiled import CompiledModel

__all__ = [
    "EXACT_READ",
    "LabelDirections",
    "label_errors",
    "narrow_reads",
    "read_error",
    "reading_spaces",
    "rotated_by",
    "superposed_in",
]

Array = NDArray[Any]
ROUNDING = 1e-9  # singular values and rows below this, times the largest, are zero
STRETCHED = 2**0.5  # the largest singular value of T; the smallest is its inverse
EXACT_READ = 1e-5  # of vectors of length 1: the rounding of directions and weights to float32
INPUTS = {"q": "W_Q", "k": "W_K", "v": "W_V"}


@dataclass(frozen=True, eq=False)
class LabelDirections:
    """Labels are written along the rows of `write` [label, d_model], and read with the columns of `read`."""

    write: Array
    read: Array


def rotated_by(labels: int, width: int, seed: int) -> LabelDirections:
    """Random orthonormal directions."""
    square = np.random.default_rng(seed).normal(size=(width, width))
    write = _exact_in_float32(np.linalg.qr(square)[0][:labels])
    return LabelDirections(write, write.T)


def superposed_in(model: CompiledModel, parts: Sequence[PartCodes], width: int | None, seed: int) -> LabelDirections:
    """Random directions that overlap, with which all reads are exact; by default in as few dimensions as possible."""
    written = _span(np.concatenate(list(_written(model, parts))))
    read = _span(np.concatenate(list(_read(model.parameters)), axis=1).T)
    columns, sizes, _ = np.linalg.svd(written.T @ (written @ read.T), full_matrices=False)
    columns = columns[:, sizes > ROUNDING]
    labels, least = columns.shape
    width = least if width is None else width
    if width < least:
        raise TracrError(
            f"the parts tell {least} directions apart, which do not fit into {width} dimensions: a part would read "
            "variables of parts that it has no edge from",
            hint=f"use width={least} or more",
        )
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(width, width)))[0] for _ in "lr")
    stretch = STRETCHED ** rng.uniform(-1, 1, width)
    unread = rng.normal(size=(labels, width - least)) / np.sqrt(max(1, labels))
    write = np.hstack([columns, unread]) @ (left * stretch) @ right
    back = right.T @ (left / stretch).T @ np.hstack([columns, np.zeros_like(unread)]).T
    return LabelDirections(_exact_in_float32(write), _exact_in_float32(back))


def narrow_reads(model: CompiledModel, part: PartCodes) -> PartCodes:
    """The part's training data, with codes projected onto what the compiled part reads of them."""
    spaces = reading_spaces(model, part.where)
    return replace(part, codes={name: array @ spaces[name] for name, array in part.codes.items()})


def reading_spaces(model: CompiledModel, where: PartPlace) -> dict[str, Array]:
    """For each input of a part the projector [dimension, dimension] onto what the compiled part reads."""
    found = {}
    for name, slots in where.reads.items():
        rows = _span(_matrix(model.parameters, where, name)[list(slots)].T)
        found[name] = rows.T @ rows
    return found


def read_error(weights: Parameters, directions: LabelDirections) -> float:
    """The largest error of a read of anything that is written, for writers and readers of length 1."""
    columns = np.concatenate(list(_read(weights)), axis=1).astype(np.float64)
    return float(_errors(weights, directions, _unit(columns.T).T).max(initial=0.0))


def label_errors(weights: Parameters, directions: LabelDirections) -> Array:
    """For each label the largest error with which its coordinate is read, for writers of length 1."""
    return np.asarray(_errors(weights, directions, np.eye(len(directions.write))).max(axis=0, initial=0.0))


def _errors(weights: Parameters, directions: LabelDirections, readers: Array) -> Array:
    rows = [weights.W_E, weights.W_pos]
    for layer in weights.layers:
        rows += [*layer.W_O, layer.b_O[None], layer.W_out, layer.b_out[None]]
    written = _unit(np.concatenate(rows).astype(np.float64))
    return np.asarray(np.abs((written @ directions.write) @ (directions.read @ readers) - written @ readers))


def _written(model: CompiledModel, parts: Sequence[PartCodes]) -> Iterator[Array]:
    """Rows that span what is written: by the embedding, by each part, and by biases that belong to no part.

    A trained part writes in the span of the codes it was trained on, because its last matrix is the solution of least
    squares (`fitting.py`).
    """
    weights = model.parameters
    yield weights.W_E
    yield weights.W_pos
    for part in parts:
        rows = _span(part.wanted.reshape(-1, len(part.writes)))
        wide = np.zeros((len(rows), model.d_model))
        wide[:, list(part.writes)] = rows
        yield wide
    for number, layer in enumerate(weights.layers):
        for heads, bias in ((True, layer.b_O), (False, layer.b_out)):
            rest = bias.astype(np.float64).copy()
            for part in parts:
                if part.where.layer == number and (part.where.span is None) == heads:
                    rest[list(part.writes)] = 0
            yield rest[None]


def _read(weights: Parameters) -> Iterator[Array]:
    """Columns that span what is read."""
    for layer in weights.layers:
        yield from (*layer.W_Q, *layer.W_K, *layer.W_V, layer.W_in)
    yield weights.W_U


def _matrix(weights: Parameters, where: PartPlace, name: str) -> Array:
    layer = weights.layers[where.layer]
    matrix: Array = layer.W_in[:, where.span] if where.span is not None else getattr(layer, INPUTS[name])[where.place]
    return matrix


def _span(rows: Array) -> Array:
    """An orthonormal basis of the span of rows, without rows that are rounding errors."""
    size = np.linalg.norm(rows, axis=1)
    rows = _unit(rows[size > ROUNDING * size.max(initial=0.0)].astype(np.float64))
    if len(rows) > rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(vectors[sizes > ROUNDING * sizes.max(initial=0.0)])


def _unit(rows: Array) -> Array:
    size = np.linalg.norm(rows, axis=1)
    return np.asarray(rows[size > 0] / size[size > 0, None])


def _exact_in_float32(array: Array) -> Array:
    return np.asarray(array.astype(np.float32).astype(np.float64))
