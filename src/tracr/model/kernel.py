"""The model's weights as the pass in C (`_kernel.c`) takes them: lists of what is not zero.

It is the pass of `forward.py` in float32 for who wants the answers only: no activation is kept or can be changed. Where
the package was installed without a C compiler, and for large models whose weights are mostly not zero, the shared pass
does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.model.outputs import Output
from tracr.model.parameters import LayerParameters, Parameters
from tracr.model.vocabulary import Vocabulary
from tracr.threads import in_threads, processors

try:
    from tracr.model import _kernel
except ImportError:  # installed without a C compiler
    _kernel = None  # type: ignore[assignment]

__all__ = ["Kernel"]

Array = NDArray[Any]
FEW = 50_000  # weights that are not zero: with no more of them the kernel is faster than products of matrices
DENSE = 1 / 8  # with more it is if they are no larger part of all weights
WORTH = 10_000_000  # products that are worth a thread


class Kernel:
    """A model's weights, ready to be run."""

    def __init__(self, parameters: Parameters, vocabulary: Vocabulary, outputs: Sequence[Output], causal: bool) -> None:
        packed = _Packed(parameters, causal)
        self._network = _kernel.load(packed.words, packed.numbers)
        self._size = packed.numbers.size
        self._logits = np.array([(0, parameters.W_U.shape[1], False)], np.int32)
        self._kept = np.array([output.kept for output in outputs], np.int32)
        self._outputs = tuple(outputs)
        self._ends = np.cumsum(
            [1 if largest else last - first for first, last, largest in self._kept.tolist()]
        ).tolist()
        self._known = {token: number for number, token in enumerate(vocabulary.tokens)}
        self._bos = vocabulary.bos_id
        # `answer` is for one output, and inputs of any length that there are positions for.
        self._plain = len(outputs) == 1 == vocabulary.shortest and vocabulary.longest == len(parameters.W_pos) - 1
        self._values, self._middles = outputs[0].ascending

    @staticmethod
    def of(parameters: Parameters, vocabulary: Vocabulary, outputs: Sequence[Output], causal: bool) -> Kernel | None:
        """The kernel of these weights; `None` where there is none, or where products of matrices are faster."""
        arrays = [array for _, array in parameters.named()]
        entries = sum(int(np.count_nonzero(array)) for array in arrays)
        many = entries > max(FEW, DENSE * sum(array.size for array in arrays))
        if _kernel is None or many or not all(np.isfinite(array).all() for array in arrays):
            return None
        return Kernel(parameters, vocabulary, outputs, causal)

    def answer(self, tokens: Any) -> list[Any] | None:
        """The output for plain input: a list of tokens, or lists of one length; `None` if there is more to it."""
        if not self._plain or type(tokens) is not list:
            return None
        parts = self._parts(len(tokens), len(tokens[0])) if tokens and type(tokens[0]) is list else 1
        if parts == 1:
            return self._answer(tokens)
        if set(map(type, tokens)) != {list}:  # a part could be taken for one input
            return None
        cuts = [number * len(tokens) // parts for number in range(parts + 1)]
        answers = in_threads(lambda number: self._answer(tokens[cuts[number] : cuts[number + 1]]), range(parts))
        whole: list[Any] = []
        for answer in answers:
            if answer is None:
                return None
            whole += answer
        return whole

    def _answer(self, tokens: list[Any]) -> list[Any] | None:
        values, middles = self._values, self._middles
        return _kernel.answer(self._network, self._kept, self._known, self._bos, values, middles, tokens)

    def logits(self, ids: Array) -> tuple[Array, bool]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position]; whether all are numbers."""
        return self._run(ids, self._logits, int(self._logits[0, 1]))

    def codes(self, ids: Array) -> tuple[list[Array], bool]:
        """The codes [batch, position] of each output; whether all logits are numbers."""
        kept, numbers = self._run(ids, self._kept, self._ends[-1])
        parts = np.split(kept, self._ends[:-1], axis=-1)
        return [output.codes_of(part) for output, part in zip(self._outputs, parts, strict=True)], numbers

    def _run(self, ids: Array, readings: Array, columns: int) -> tuple[Array, bool]:
        ids = np.ascontiguousarray(ids, np.int64)
        batch, length = ids.shape
        found = np.empty((batch, length, columns), np.float32)
        parts = self._parts(batch, length)
        cuts = [number * batch // parts for number in range(parts + 1)]

        def run(number: int) -> int:
            rows = slice(cuts[number], cuts[number + 1])
            return _kernel.run(self._network, readings, ids[rows], length, found[rows])

        return found, not any(in_threads(run, range(parts)))

    def _parts(self, batch: int, length: int) -> int:
        """Into how many parts to cut a batch, a thread each."""
        return min(processors(), 1 + batch * length * self._size // WORTH, max(1, batch))


class _Packed:
    """Integers and numbers in the order in which `_kernel.c` reads them."""

    def __init__(self, parameters: Parameters, causal: bool) -> None:
        width = parameters.W_E.shape[1]
        self._words: list[Any] = [width, len(parameters.layers), int(causal)]
        self._numbers: list[Array] = []
        self._entries(parameters.W_E)
        self._entries(parameters.W_pos)
        for layer in parameters.layers:
            self._layer(layer, width)
        self._map(parameters.W_U, np.zeros(parameters.W_U.shape[1]))
        self.words = np.hstack(self._words).astype(np.int32)
        self.numbers = np.hstack(self._numbers).astype(np.float32)

    def _layer(self, layer: LayerParameters, width: int) -> None:
        """Attention, if there are heads, and the MLP, if there are neurons."""
        heads, _, d_head = layer.W_Q.shape
        self._words.append(heads)
        if heads:
            for weight, bias in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K), (layer.W_V, layer.b_V)):
                self._map(weight.swapaxes(0, 1).reshape(width, heads * d_head), bias.reshape(-1))
            self._write(layer.W_O.reshape(heads * d_head, width), layer.b_O)
        self._words.append(layer.b_in.size)
        if layer.b_in.size:
            self._map(layer.W_in, layer.b_in)
            self._write(layer.W_out, layer.b_out)

    def _map(self, weight: Array, bias: Array) -> None:
        """`x @ weight + bias`."""
        self._entries(weight.T, np.arange(weight.shape[1]))
        self._numbers.append(bias)

    def _write(self, weight: Array, bias: Array) -> None:
        """`x @ weight + bias` where it goes to the stream: dimensions that it never changes are left out."""
        written = np.flatnonzero((weight != 0).any(axis=0) | (bias != 0))
        self._entries(weight.T[written], written)
        self._numbers.append(bias[written])

    def _entries(self, rows: Array, targets: Array | None = None) -> None:
        """For each row (and where its result goes) the columns that are not zero, and what they hold."""
        row, column = np.nonzero(rows)
        self._words += [len(rows), *([] if targets is None else [targets])]
        self._words += [np.searchsorted(row, np.arange(len(rows) + 1)), column]
        self._numbers.append(rows[row, column])
