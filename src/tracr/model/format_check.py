"""Checks whether a model is right in a number format, and refuses formats without a proof."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import PrecisionError, TracrWarning
from tracr.model.number_formats import LONG, SHORT, Format, format_of
from tracr.model.rounding import Bounded, bounded_logits
from tracr.model.verification import chosen_inputs, differs, ids_of
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.running import RunnableModel

__all__ = ["BUDGET", "FormatCheck", "check_format", "require_format"]

Array = NDArray[Any]
BUDGET = 2_000  # inputs for which bounds are computed
SAMPLE = 200  # inputs for which bounds are computed, if there are more than the budget
ROWS = 256  # inputs run together


@dataclass(frozen=True)
class FormatCheck:
    """The number of inputs whose output in the format is proved equal to that of float64. True if all those checked.

    `error` is the largest bound on the error of a logit; infinite if some number may be too large for the format.
    `unproved` is the first input without a proof.
    """

    format: str
    inputs: int
    exhaustive: bool
    proved: int
    error: float
    unproved: list[Value] | None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.proved == self.inputs and not self.reason

    def __str__(self) -> str:
        if self.reason:
            return f"{self.format}: {self.reason}"
        scope = "all" if self.exhaustive else "a sample of"
        text = f"{self.format}: proved for {self.proved:,} of {scope} {self.inputs:,} inputs, padded and unpadded; "
        size = f"the error of a logit is at most {self.error:.2g}"
        text += (
            size if np.isfinite(self.error) else f"some number may not fit into {self.format}, or has no error bound"
        )
        return text if self else f"{text}; not proved on {self.unproved!r}"


def check_format(
    model: RunnableModel,
    dtype: Any,
    budget: int = BUDGET,
    *,
    stored: bool = True,
    lengths: Collection[int] | None = None,
) -> FormatCheck:
    """Checks a format by bounds on rounding errors, on all inputs if they are at most `budget`, else on about 200.

    `stored`: activations are rounded to the format, too. Otherwise some may have more bits. `lengths`: only inputs of
    these lengths.
    """
    name = dtype if isinstance(dtype, str) and dtype in SHORT else format_of(dtype)
    if name in LONG:
        return FormatCheck(name, 0, True, 0, 0.0, None)
    if model.norm is not None:
        return FormatCheck(name, 0, False, 0, np.inf, None, "nothing is proved for models with layer norms")
    batches, total = chosen_inputs(model, budget, seed=0)
    if total > budget:
        batches, _ = chosen_inputs(model, min(budget, SAMPLE), seed=0)
    number_format = SHORT[name] if stored else replace(SHORT[name], stored=False)
    inputs = proved = 0
    error, unproved = 0.0, None
    for codes in _in_rows(batches, lengths):
        right, off = _proved(model, number_format, codes)
        inputs, proved, error = inputs + len(right), proved + int(right.sum()), max(error, off)
        if unproved is None and not right.all():
            unproved = [model.options.vocab[code] for code in codes[int(right.argmin())].tolist()]
    return FormatCheck(name, inputs, total <= budget and lengths is None, proved, error, unproved)


def _in_rows(batches: Iterable[Array], lengths: Collection[int] | None) -> Iterator[Array]:
    """The inputs of these lengths, at most `ROWS` together."""
    for batch in batches:
        if lengths is None or batch.shape[1] in lengths:
            yield from (batch[start : start + ROWS] for start in range(0, len(batch), ROWS))


def _proved(model: RunnableModel, number_format: Format, codes: Array) -> tuple[Array, float]:
    """Whether the output is proved for each input of one length, padded and unpadded; and the largest logit error.

    Inputs on which the program raises have no right output; they count as proved.
    """
    length = codes.shape[1]
    right = np.ones(len(codes), dtype=bool)
    meaningless = evaluate_batch(model.program, Batch(codes, np.full(len(codes), length, dtype=np.int32))).errors
    error = 0.0
    for padded in (False, True) if length < model.program.lengths[1] else (False,):
        ids = ids_of(model, codes, padded)
        logits = bounded_logits(model.parameters, ids, number_format, causal=model.options.causal)
        logits = logits.map(lambda array: array[:, 1 : length + 1])
        exact = model.logits(ids, np.float64)[:, 1 : length + 1]
        certain = np.logical_and.reduce([_certain(output, logits, exact).all(axis=1) for output in model.outputs])
        right &= certain | meaningless
        apart = np.abs(logits.value - exact) + logits.error
        error = max(error, float(apart[~meaningless].max(initial=0.0)))
    return right, error


def _certain(output: Output, logits: Bounded, exact: Array) -> Array:
    """Whether all logits within the bounds give the same output as the exact ones, [batch, position]."""
    same = ~differs(output.domain, output.codes(exact), output.codes(logits.value))
    value, error = (array[..., output.start : output.stop] for array in (logits.value, logits.error))
    if output.encoding is Encoding.CATEGORICAL:
        first = value.argmax(axis=-1)[..., None]
        others = value + error
        np.put_along_axis(others, first, -np.inf, axis=-1)
        return np.asarray(same & (np.take_along_axis(value - error, first, axis=-1)[..., 0] > others.max(axis=-1)))
    finite = np.isfinite(error).all(axis=-1)
    error = np.where(np.isfinite(error), error, 0.0)
    middle, low, high = (output.codes_of(number) for number in (value, value - error, value + error))
    return same & finite & ~differs(output.domain, middle, low) & ~differs(output.domain, middle, high)


def require_format(model: RunnableModel, dtype: Any, *, stored: bool = True) -> None:
    """Refuse a format in which the model is not proved to be right; warn if only a sample of inputs was checked.

    The compiler's own weights are right in the format that they were compiled for.
    """
    name = dtype if isinstance(dtype, str) and dtype in SHORT else format_of(dtype)
    if name in LONG or (stored and model.made_for == name):
        return
    found = model.check_format(name, stored=stored)
    if not found:
        raise PrecisionError(
            f"the model is not proved to be right in {found}",
            hint="use float32, or compile the program for the format (tracr.compile's dtype); to study it anyway, pass "
            "check=False to to_torch, to_transformer_lens, to_jax or cast",
        )
    if not found.exhaustive:
        warnings.warn(f"{found}; use float32 to be sure of the others", TracrWarning, stacklevel=3)
