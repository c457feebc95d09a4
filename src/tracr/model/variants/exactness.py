"""Proves that a change of basis changes no bit, in float32 and for any order of the sums.

Multiples of q whose absolute values add up to at most 2**24 q are added without rounding: every partial sum is a
multiple of q, and float32 holds all multiples of q up to 2**24 q. Therefore the order of a sum, and fused
multiplications, make no difference, and a result that is right in exact arithmetic is right to the last bit.

A label is *exact* if the compiler knows that the stored number is part of a code, or a multiple of some power of two
(`grid`). Other labels hold shares of attention, means, or copies with an error. Let a basis write label j along row j
of `write`. A dimension that holds several labels is *mixed*. The basis is proved to change nothing if

- mixed dimensions hold exact labels only, and the sum of their sizes fits;
- everything written to them fits: W' = W @ write is exact in float32, the factors that W' multiplies (hidden neurons,
  or the values of a head) are multiples of a known power of two, and the sizes of all products and of the earlier
  contents add up to at most 2**24 times the common quantum;
- each column of W' = read @ W that reads them fits in the same way, including its bias, and reads exact labels only.

After its last reader other than the unembedding a dimension is *late*: it need not be exact any more. Instead the
errors of the sums written to it are bounded, by n U for n terms of total size 1, and the unembedding must distinguish
codes (an error of at most 1/4) and give numbers within `OUTPUT_NUMBER`. This allows mixed outputs, including means.

Columns and dimensions that are not mixed hold the same products as in the compiled model. By induction over the
sub-layers every query, key, value, neuron and logit is unchanged. This holds at tokens and at BOS, whose stream is
known. The contents of PAD positions are not known, but no token attends to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.numerics import U, low_bits
from tracr.ir.domains import Finite
from tracr.model.variants.holdings import NEVER, Stream, at_bos, at_tokens, quanta, rough_from
from tracr.rasp.annotations import Encoding

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.variants.variant_model import VariantModel

__all__ = ["BEFORE", "Exactness", "is_exact"]

Array = NDArray[Any]
ROOM = 1 / U  # multiples of a quantum that float32 holds
BEFORE = -2  # a time before the embedding
CODE = 0.25  # the largest error of a code's logit
OUTPUT_NUMBER = 1e-5  # the largest additional error of a number that is an output


def is_exact(model: VariantModel, exactness: Exactness | None = None) -> bool:
    """Whether a variant is proved to compute the same as the compiled model: no noise, and norms that change nothing.

    Its basis must have been proved before. Layer norms change nothing if the stream adds up to 0 without rounding.
    """
    variant = model.variant
    if variant.noise or variant.layer_norm is None:
        return not variant.noise
    return (exactness or Exactness(model.plain)).sums_exactly(variant.basis.write)


@dataclass(frozen=True, eq=False)
class _Write:
    """A matrix [source, slot] that writes; with the sizes and grids of its sources, and whether these are certain."""

    time: int
    matrix: Array
    sizes: Array
    grids: Array
    sure: NDArray[np.bool_]


class Exactness:
    """The possible contents of a model's stream, for each label; `offending` gives the labels a basis could disturb.

    `rough_from` is the first sub-layer after which a slot may hold a number with an error; `exact` says that there is
    none.
    """

    def __init__(self, model: DesignedModel) -> None:
        self.model = model
        self.times = range(-1, 2 * model.n_layers)
        self.rough_from = rough_from(model)
        self.exact = self.rough_from == NEVER
        self.tolerances = _tolerances(model)
        self.readers = list(self._readers())
        self.last_read, self.never = self._unmixable()
        self.streams = at_tokens(model, self.times), at_bos(model, self.times)
        self._writes = [[*self._by_heads(), *self._by_neurons(stream)] for stream in self.streams]

    def offending(self, write: Array, read: Array) -> NDArray[np.bool_]:
        """The labels for which the proof fails in this basis; none if it is proved to change nothing."""
        basis = _InBasis(self, write, read)
        found = basis.mixed_labels & (self.never | (self.rough_from <= basis.last_of_labels))
        for own, writes in zip(self.streams, self._writes, strict=True):
            stream = own.along(write)
            errors = np.zeros(write.shape[1])
            for time in self.times:
                found |= basis.overflowing(stream, time)
            for one in writes:
                found |= basis.miswritten(stream, one)
                errors += basis.late_errors(stream, one)
            for time, matrix, bias in self.readers:
                found |= basis.misread(stream, matrix, bias, time)
            found |= basis.unclear(stream, errors, self.model.parameters.W_U, self.tolerances)
        return np.asarray(found & basis.mixed_labels)

    def _unmixable(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The last sub-layer that reads each label (the unembedding not counted); and the labels no basis may mix.

        A label may not be mixed if it has an error and is read, or if a column reads it together with such a label.
        """
        last = np.full(len(self.exact), BEFORE)
        beside = np.zeros(len(self.exact), bool)
        for time, matrix, _ in self.readers:
            read = matrix != 0
            last[read.any(axis=1)] = time
            beside |= read[:, read[self.rough_from <= time].any(axis=0)].any(axis=1)
        return last, beside | (self.rough_from <= last)

    def sums_exactly(self, write: Array) -> bool:
        """Whether the dimensions of the stream add up without rounding, at tokens and at BOS."""
        ones = np.ones((write.shape[1], 1))
        placed = [stream.along(write) for stream in self.streams]
        return bool(self.exact.all()) and all(
            float(stream.partial_sums(ones, time)[0]) <= ROOM * float(stream.multiples(ones, time)[0])
            for stream in placed
            for time in self.times
        )

    def _readers(self) -> Iterator[tuple[int, Array, Array]]:
        """All readers of the stream except the unembedding: the sub-layer before each, its matrix and its bias."""
        for number, layer in enumerate(self.model.parameters.layers):
            for weight, bias in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K), (layer.W_V, layer.b_V)):
                yield 2 * number - 1, _side_by_side(weight), bias.reshape(-1)
            yield 2 * number, layer.W_in, layer.b_in

    def _by_heads(self) -> Iterator[_Write]:
        """The writes of heads. A value written to exact variables only is an unchanged copy from a key or BOS, or 0."""
        for number, layer in enumerate(self.model.parameters.layers):
            time = 2 * number
            values, bias = _side_by_side(layer.W_V), layer.b_V.reshape(-1)
            matrix = layer.W_O.reshape(-1, len(self.exact))
            sizes, grids = np.zeros(len(bias)), low_bits(bias)
            for seen in self.streams:  # tokens also attend to BOS
                sizes = np.maximum(sizes, seen.partial_sums(values, time - 1) + np.abs(bias))
                grids = np.minimum(grids, seen.multiples(values, time - 1))
            yield _Write(time, matrix, sizes, grids, ~(matrix != 0)[:, ~self.exact].any(axis=1))

    def _by_neurons(self, stream: Stream) -> Iterator[_Write]:
        """The writes of neurons. Hidden values on a grid are exact if float32 holds them."""
        for number, layer in enumerate(self.model.parameters.layers):
            time = 2 * number + 1
            sizes = np.maximum(stream.sums(layer.W_in, time - 1) + layer.b_in, 0.0)
            grids = np.minimum(stream.multiples(layer.W_in, time - 1), low_bits(layer.b_in))
            yield _Write(time, layer.W_out, sizes, grids, (sizes <= ROOM * grids) | (sizes == 0))


class _InBasis:
    """A basis, with the labels of each of its dimensions."""

    def __init__(self, own: Exactness, write: Array, read: Array) -> None:
        self.end, self.write, self.read = own.times[-1], write, read
        seen = read.any(axis=1) & write.any(axis=0)  # other dimensions are not read, or are empty
        self.mixed = seen & ((write != 0).sum(axis=0) > 1)
        self.mixed_labels = self._labels(self.mixed)
        self.last = np.full(len(read), BEFORE)  # the sub-layer before a dimension's last reader but the unembedding
        for time, matrix, _ in own.readers:
            self.last[(read @ matrix).any(axis=1)] = time
        self.last_of_labels = np.where(write != 0, self.last, BEFORE).max(axis=1)

    def _labels(self, dimensions: Array) -> NDArray[np.bool_]:
        """The labels with a part in one of the dimensions."""
        return np.asarray((self.write[:, dimensions] != 0).any(axis=1))

    def overflowing(self, stream: Stream, time: int) -> NDArray[np.bool_]:
        """The labels in mixed dimensions whose sums do not fit."""
        return self._labels(self.mixed & (time <= self.last) & (stream.sizes(time) > ROOM * stream.grid(time)))

    def miswritten(self, stream: Stream, one: _Write) -> NDArray[np.bool_]:
        """The labels that a writer does not write exactly and that are read later."""
        early = self.mixed & (one.time <= self.last)
        written = one.matrix @ self.write[:, early]
        sure = one.sure & (one.grids > 0)
        found = (one.matrix[~sure] != 0).any(axis=0) & self._labels(early)
        there = sure & (one.sizes > 0)
        quantum = quanta(written[there], one.grids[there]).min(axis=0, initial=np.inf)
        quantum = np.minimum(quantum, np.minimum(stream.grid(one.time - 1), stream.grid(one.time))[early])
        sizes, parts = one.sizes[there], written[there]  # partial sums lie between the sums of one sign
        total = np.maximum(sizes @ np.maximum(parts, 0.0), sizes @ np.maximum(-parts, 0.0))
        total += stream.sizes(one.time - 1)[early]
        bad = np.zeros(len(early), bool)
        bad[early] = (total > ROOM * quantum) | (written.astype(np.float32) != written).any(axis=0)
        return np.asarray(found | (self._labels(bad) & (one.matrix != 0).any(axis=0)))

    def late_errors(self, stream: Stream, one: _Write) -> Array:
        """A bound on the error that a writer adds to each late dimension."""
        late = self.mixed & (one.time > self.last)
        written = one.matrix @ self.write[:, late]
        terms = (written != 0).sum(axis=0) + 3  # weights are rounded, and the earlier contents are added
        errors = np.zeros(len(late))
        errors[late] = terms * U * (one.sizes @ np.abs(written) + stream.sizes(one.time)[late])
        return errors

    def misread(self, stream: Stream, matrix: Array, bias: Array, time: int) -> NDArray[np.bool_]:
        """The labels that a reader does not read exactly: in a column that does not fit, those with the lowest bits."""
        weights = self.read @ matrix
        columns = (weights[self.mixed] != 0).any(axis=0)
        weights, matrix, bias = weights[:, columns], matrix[:, columns], bias[columns]
        quantum = np.minimum(stream.multiples(weights, time), low_bits(bias))
        fits = stream.partial_sums(weights, time) + np.abs(bias) <= ROOM * quantum
        fits &= (weights[self.mixed].astype(np.float32) == weights[self.mixed]).all(axis=0)
        lowest = np.where(self.mixed_labels[:, None], low_bits(matrix), np.inf)
        finest = (lowest == lowest.min(axis=0, initial=np.inf)) & ~fits
        return np.asarray(((matrix != 0) & finest).any(axis=1))

    def unclear(self, stream: Stream, errors: Array, matrix: Array, tolerances: Array) -> NDArray[np.bool_]:
        """The labels that the unembedding does not read accurately enough."""
        weights = self.read @ matrix
        terms = (weights != 0).sum(axis=0) + 2
        rounding = terms * U * stream.partial_sums(weights, self.end)
        wrong = errors @ np.abs(weights) + rounding > tolerances
        wrong &= (weights[self.mixed] != 0).any(axis=0)
        return np.asarray((matrix[:, wrong] != 0).any(axis=1))


def _side_by_side(heads: Array) -> Array:
    """Matrices [head, d_model, d_head] as one, [d_model, columns]."""
    return np.moveaxis(heads, 0, 1).reshape(heads.shape[1], -1)


def _tolerances(model: DesignedModel) -> Array:
    """The largest allowed error of each logit: `CODE` for a code; for a number `OUTPUT_NUMBER`, or part of a gap."""
    found: list[float] = []
    for output in model.outputs:
        allowed = [CODE] * (output.stop - output.start)
        if output.encoding is Encoding.NUMERICAL:
            allowed[0] = OUTPUT_NUMBER
            if isinstance(output.domain, Finite) and len(output.domain.ascending[0]) > 1:
                gaps = np.diff(output.domain.numbers[output.domain.ascending[0]])
                allowed[0] = min(OUTPUT_NUMBER, float(gaps.min()) / 8)
        found += allowed
    return np.array(found)
