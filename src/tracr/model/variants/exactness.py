"""Where a change of basis leaves every bit as it was, in float32 and in whatever order sums are taken.

Numbers that are multiples of q, with sizes that add up to at most 2**24 q, are added without rounding: every partial
sum is a multiple of q, and float32 holds all of those up to 2**24 q. So the order of a sum, and fused multiplications,
make no difference, and a result that is right in exact arithmetic is right to the last bit.

A label is *exact* if the compiler knows that what is stored is a code, or a multiple of some power of two (`grid`);
others hold shares of attention, means, or copies with an error. Let a basis write label j along row j of `write`, and
`mixed` dimensions hold several labels. The basis is proved to change nothing if

- mixed dimensions hold exact labels alone, and the sum of their sizes fits;
- whatever is written to them fits: W' = W @ write is exact in float32, what it is multiplied with (the hidden neurons,
  or the values of a head) is a multiple of a known power of two, and the sizes of all products and of what was there
  before add up to at most 2**24 times the common quantum;
- each column that reads them, of W' = read @ W, fits in the same way, its bias included, and reads exact labels only.

After its last reader other than the unembedding a dimension is *late*: nothing need be exact there any more. The sums
that are written then are bounded instead, an error of n U for n terms of total size 1, and the unembedding must tell
codes apart (an error of 1/4) and give numbers to `OUTPUT_NUMBER`. So outputs can be mixed, means too.

Columns and dimensions that are not mixed hold the same products as in the compiled model. By induction over the
sub-layers every query, key, value, neuron and logit is what it was. This holds at tokens and at BOS, whose stream is
known. What PAD positions hold is not known; no token attends to them.
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
    from tracr.model.compiled import CompiledModel

__all__ = ["BEFORE", "Exactness", "is_exact"]

Array = NDArray[Any]
ROOM = 1 / U  # multiples of a quantum that float32 holds
BEFORE = -2  # a time before the embedding
CODE = 0.25  # how far a logit of a code may be off
OUTPUT_NUMBER = 1e-5  # how much farther a number that is an output may be off


def is_exact(model: CompiledModel, exactness: Exactness | None = None) -> bool:
    """Whether a variant is proved to read what the compiled model reads: without noise, and with norms that do nothing.

    Its basis must have been proved before; layer norms do nothing if the stream adds up to 0 without rounding.
    """
    variant = model.variant
    if variant is None or variant.noise or variant.layer_norm is None:
        return variant is None or not variant.noise
    return (exactness or Exactness(model.plain)).sums_exactly(variant.basis.write)


@dataclass(frozen=True, eq=False)
class _Write:
    """A matrix [source, slot] that writes; how large the sources are, multiples of what, and whether that is sure."""

    time: int
    matrix: Array
    sizes: Array
    grids: Array
    sure: NDArray[np.bool_]


class Exactness:
    """What a model's stream can hold, label by label; `offending` says which labels a basis could disturb.

    `rough_from` says from which sub-layer on a slot may hold something that has an error, `exact` whether none does.
    """

    def __init__(self, model: CompiledModel) -> None:
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
        """The labels that must not be mixed as they are in this basis; none if it is proved to change nothing."""
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
        """When each label is last read but for the output; and those that no basis may mix.

        These have an error and are read, or are read in one column with such a label.
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
        """Everything that reads the stream but the unembedding: after which sub-layer, the matrix and the bias."""
        for number, layer in enumerate(self.model.parameters.layers):
            for weight, bias in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K), (layer.W_V, layer.b_V)):
                yield 2 * number - 1, _side_by_side(weight), bias.reshape(-1)
            yield 2 * number, layer.W_in, layer.b_in

    def _by_heads(self) -> Iterator[_Write]:
        """What is written to exact variables alone is copied from one key, or from BOS, as it is, or is a 0."""
        for number, layer in enumerate(self.model.parameters.layers):
            time = 2 * number
            values, bias = _side_by_side(layer.W_V), layer.b_V.reshape(-1)
            matrix = layer.W_O.reshape(-1, len(self.exact))
            sizes, grids = np.zeros(len(bias)), low_bits(bias)
            for seen in self.streams:  # tokens attend to BOS, too
                sizes = np.maximum(sizes, seen.partial_sums(values, time - 1) + np.abs(bias))
                grids = np.minimum(grids, seen.multiples(values, time - 1))
            yield _Write(time, matrix, sizes, grids, ~(matrix != 0)[:, ~self.exact].any(axis=1))

    def _by_neurons(self, stream: Stream) -> Iterator[_Write]:
        """Hidden values on a grid are exact if float32 holds them."""
        for number, layer in enumerate(self.model.parameters.layers):
            time = 2 * number + 1
            sizes = np.maximum(stream.sums(layer.W_in, time - 1) + layer.b_in, 0.0)
            grids = np.minimum(stream.multiples(layer.W_in, time - 1), low_bits(layer.b_in))
            yield _Write(time, layer.W_out, sizes, grids, (sizes <= ROOM * grids) | (sizes == 0))


class _InBasis:
    """A basis, and how the labels lie in it."""

    def __init__(self, own: Exactness, write: Array, read: Array) -> None:
        self.end, self.write, self.read = own.times[-1], write, read
        seen = read.any(axis=1) & write.any(axis=0)  # other dimensions are not read, or hold nothing
        self.mixed = seen & ((write != 0).sum(axis=0) > 1)
        self.mixed_labels = self._labels(self.mixed)
        self.last = np.full(len(read), BEFORE)  # after which sub-layer a dimension is last read but for the output
        for time, matrix, _ in own.readers:
            self.last[(read @ matrix).any(axis=1)] = time
        self.last_of_labels = np.where(write != 0, self.last, BEFORE).max(axis=1)

    def _labels(self, dimensions: Array) -> NDArray[np.bool_]:
        """The labels that lie in some of the dimensions."""
        return np.asarray((self.write[:, dimensions] != 0).any(axis=1))

    def overflowing(self, stream: Stream, time: int) -> NDArray[np.bool_]:
        """Labels in mixed dimensions whose sums do not fit."""
        return self._labels(self.mixed & (time <= self.last) & (stream.sizes(time) > ROOM * stream.grid(time)))

    def miswritten(self, stream: Stream, one: _Write) -> NDArray[np.bool_]:
        """Labels that a writer would not write exactly, and that are read later."""
        early = self.mixed & (one.time <= self.last)
        written = one.matrix @ self.write[:, early]
        sure = one.sure & (one.grids > 0)
        found = (one.matrix[~sure] != 0).any(axis=0) & self._labels(early)
        there = sure & (one.sizes > 0)
        quantum = quanta(written[there], one.grids[there]).min(axis=0, initial=np.inf)
        quantum = np.minimum(quantum, np.minimum(stream.grid(one.time - 1), stream.grid(one.time))[early])
        sizes, parts = one.sizes[there], written[there]  # partial sums lie between the sums of either sign
        total = np.maximum(sizes @ np.maximum(parts, 0.0), sizes @ np.maximum(-parts, 0.0))
        total += stream.sizes(one.time - 1)[early]
        bad = np.zeros(len(early), bool)
        bad[early] = (total > ROOM * quantum) | (written.astype(np.float32) != written).any(axis=0)
        return np.asarray(found | (self._labels(bad) & (one.matrix != 0).any(axis=0)))

    def late_errors(self, stream: Stream, one: _Write) -> Array:
        """A bound on what a writer adds to the error of each dimension that is late."""
        late = self.mixed & (one.time > self.last)
        written = one.matrix @ self.write[:, late]
        terms = (written != 0).sum(axis=0) + 3  # weights are rounded, and what was there is added
        errors = np.zeros(len(late))
        errors[late] = terms * U * (one.sizes @ np.abs(written) + stream.sizes(one.time)[late])
        return errors

    def misread(self, stream: Stream, matrix: Array, bias: Array, time: int) -> NDArray[np.bool_]:
        """Labels that a reader would not read exactly: of a column that does not fit those with the lowest bits."""
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
        """Labels that the unembedding would not read well enough."""
        weights = self.read @ matrix
        terms = (weights != 0).sum(axis=0) + 2
        rounding = terms * U * stream.partial_sums(weights, self.end)
        wrong = errors @ np.abs(weights) + rounding > tolerances
        wrong &= (weights[self.mixed] != 0).any(axis=0)
        return np.asarray((matrix[:, wrong] != 0).any(axis=1))


def _side_by_side(heads: Array) -> Array:
    """Matrices [head, d_model, d_head] as one, [d_model, columns]."""
    return np.moveaxis(heads, 0, 1).reshape(heads.shape[1], -1)


def _tolerances(model: CompiledModel) -> Array:
    """How far each logit may be off: a code by `CODE`; a number by `OUTPUT_NUMBER`, or part of the gap between two."""
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
