"""The forward pass of a model in C (`c/forward.h`).

It computes the same as `forward.py` in float32, for calls that need no activations. `forward.py` is used instead if the
package was installed without a C compiler, and for large models in which many weights are not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import Parameters
from tracr.runtime.kernel.packed import flat, sizes
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary
from tracr.threads import processors

try:
    from tracr.runtime.kernel import _kernel
except ImportError:  # installed without a C compiler
    _kernel = None  # type: ignore[assignment]
if not hasattr(_kernel, "pack"):  # built for an older version
    _kernel = None  # type: ignore[assignment]

__all__ = ["BUILT", "Kernel", "pack"]

BUILT = _kernel is not None

Array = NDArray[Any]
FEW_WEIGHTS = 50_000  # with at most this many nonzero weights the kernel is faster than products of matrices
DENSE = 1 / 8  # with more, the kernel is faster if at most this fraction of all weights is not zero


def pack(
    parameters: Parameters, causal: bool, weights: NDArray[np.float32] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The integers and the numbers of a network, in the order in which `c/unpack.h` reads and checks them."""
    given = flat(parameters) if weights is None else weights
    words, numbers = _kernel.pack(given, sizes(parameters), causal)
    return np.frombuffer(words, np.int32), np.frombuffer(numbers, np.float32)


class Kernel:
    """A model's weights in the kernel's format."""

    def __init__(
        self,
        parameters: Parameters,
        vocabulary: Vocabulary,
        outputs: Sequence[Output],
        causal: bool,
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """`weights` are those of `flat(parameters)`, if they are at hand."""
        ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        words, numbers = pack(parameters, causal, weights)
        self._network = _kernel.load(words, numbers, ids, processors())
        self.finite = bool(np.isfinite(numbers).all())
        self._logits = np.array([(0, parameters.W_U.shape[1], False)], np.int32)
        self._kept = np.array([output.kept for output in outputs], np.int32)
        self._outputs = tuple(outputs)
        self._ends = np.cumsum(
            [1 if largest else last - first for first, last, largest in self._kept.tolist()]
        ).tolist()
        self._bos = vocabulary.bos_id
        # `answer` is for models with one output that take every length up to the number of positions.
        self._plain = len(outputs) == 1 == vocabulary.shortest and vocabulary.longest == len(parameters.W_pos) - 1
        self._values, self._middles = outputs[0].ascending

    @staticmethod
    def of(parameters: Parameters, vocabulary: Vocabulary, outputs: Sequence[Output], causal: bool) -> Kernel | None:
        """The kernel with these weights; `None` if it was not built, or if products of matrices are faster."""
        if _kernel is None:
            return None
        weights = flat(parameters)
        many = np.count_nonzero(weights) > max(FEW_WEIGHTS, DENSE * weights.size)
        if many or not np.isfinite(weights).all():
            return None
        kernel = Kernel(parameters, vocabulary, outputs, causal, weights)
        return kernel if kernel.finite else None

    def answer(self, tokens: Any) -> list[Any] | None:
        """The output for plain input: a string, a list of tokens, or lists of one length; `None` for other input."""
        if not self._plain:
            return None
        return _kernel.answer(self._network, self._kept, self._bos, self._values, self._middles, tokens)

    def logits(self, ids: Array) -> tuple[Array, bool]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position]; and whether no logit is NaN."""
        return self._run(ids, self._logits, int(self._logits[0, 1]))

    def codes(self, ids: Array) -> tuple[list[Array], bool]:
        """The codes [batch, position] of each output; and whether no logit is NaN."""
        kept, numbers = self._run(ids, self._kept, self._ends[-1])
        parts = [kept] if len(self._ends) == 1 else np.split(kept, self._ends[:-1], axis=-1)
        return [output.codes_of(part) for output, part in zip(self._outputs, parts, strict=True)], numbers

    def _run(self, ids: Array, readings: Array, columns: int) -> tuple[Array, bool]:
        ids = np.array(ids, np.int64, order="C")  # a copy, which other threads cannot change after the check
        found = np.empty((*ids.shape, columns), np.float32)
        return found, not _kernel.run(self._network, readings, ids, ids.shape[1], found)
