"""The pass in C (`c/forward.h`) of a model.

It is the pass of `forward.py` in float32, for calls that need no activations. Where the package was installed without a
C compiler, and for large models whose weights are mostly not zero, the shared pass does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import Parameters
from tracr.runtime.kernel.packed import pack
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary
from tracr.threads import processors

try:
    from tracr.runtime.kernel import _kernel
except ImportError:  # installed without a C compiler
    _kernel = None  # type: ignore[assignment]

__all__ = ["Kernel"]

Array = NDArray[Any]
FEW_WEIGHTS = 50_000  # weights that are not zero: with no more of them the kernel is faster than products of matrices
DENSE = 1 / 8  # with more it is if they are no larger part of all weights


class Kernel:
    """A model's weights, ready to be run."""

    def __init__(self, parameters: Parameters, vocabulary: Vocabulary, outputs: Sequence[Output], causal: bool) -> None:
        ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        words, numbers = pack(parameters, causal)
        self._network = _kernel.load(words, numbers, ids, processors())
        self.finite = bool(np.isfinite(numbers).all())
        self._logits = np.array([(0, parameters.W_U.shape[1], False)], np.int32)
        self._kept = np.array([output.kept for output in outputs], np.int32)
        self._outputs = tuple(outputs)
        self._ends = np.cumsum(
            [1 if largest else last - first for first, last, largest in self._kept.tolist()]
        ).tolist()
        self._bos = vocabulary.bos_id
        # `answer` is for one output, and inputs of any length that there are positions for.
        self._plain = len(outputs) == 1 == vocabulary.shortest and vocabulary.longest == len(parameters.W_pos) - 1
        self._values, self._middles = outputs[0].ascending

    @staticmethod
    def of(parameters: Parameters, vocabulary: Vocabulary, outputs: Sequence[Output], causal: bool) -> Kernel | None:
        """The kernel of these weights; `None` where there is none, or where products of matrices are faster."""
        arrays = [array for _, array in parameters.named()]
        entries = sum(int(np.count_nonzero(array)) for array in arrays)
        many = entries > max(FEW_WEIGHTS, DENSE * sum(array.size for array in arrays))
        if _kernel is None or many or not all(np.isfinite(array).all() for array in arrays):
            return None
        kernel = Kernel(parameters, vocabulary, outputs, causal)
        return kernel if kernel.finite else None

    def answer(self, tokens: Any) -> list[Any] | None:
        """The output for plain input: a string, a list of tokens, or lists of one length; `None` for other input."""
        if not self._plain:
            return None
        return _kernel.answer(self._network, self._kept, self._bos, self._values, self._middles, tokens)

    def logits(self, ids: Array) -> tuple[Array, bool]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position]; whether all are numbers."""
        return self._run(ids, self._logits, int(self._logits[0, 1]))

    def codes(self, ids: Array) -> tuple[list[Array], bool]:
        """The codes [batch, position] of each output; whether all logits are numbers."""
        kept, numbers = self._run(ids, self._kept, self._ends[-1])
        parts = np.split(kept, self._ends[:-1], axis=-1)
        return [output.codes_of(part) for output, part in zip(self._outputs, parts, strict=True)], numbers

    def _run(self, ids: Array, readings: Array, columns: int) -> tuple[Array, bool]:
        ids = np.array(ids, np.int64, order="C")  # a copy: nobody may change ids that were checked
        found = np.empty((*ids.shape, columns), np.float32)
        return found, not _kernel.run(self._network, readings, ids, ids.shape[1], found)
