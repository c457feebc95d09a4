"""An output of the model as logits over one vocabulary.

**One-hot outputs.** The row of a value's word reads its direction, times 32: the right word has logit 32, all others 0,
so that sampling finds it too.

**Numbers with a finite domain** become classes. For values v_j, c the middle of their range, the row of v_j computes
2 (v_j - c)(z - c) - (v_j - c)² = (z - c)² - (z - v_j)², largest for the v_j nearest to z. A neighbour at distance h is
less by h², so everything is multiplied by a power of two s with s h² >= 32, h the smallest gap. The term without z
needs a constant: the bias of the last layer norm puts a 1 into a separate dimension, as the head has no bias. Words
that are not values get -32, and the right one has s (v_j - c)² >= 0. `None` gets k (flag - 1/2): where the flag is 1
the number is 0 and no class has more than s c², where it is 0 the right class has at least 0, so k/2 = s c² + 32 is
enough for both. Rounding to float32 moves a logit by at most 8 * 2**-24 * s * r, r the largest
|2 (v_j - c) z| + |v_j² - c²|; the rows are used if that is below a quarter of s h².

**Other numbers** get a column: the logit of the word `<number>` is the number, that of `None` is 1 where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tracr.adapters.huggingface.tokens import Words
from tracr.craft.numerics import U, power_of_two_above
from tracr.errors import CompileError
from tracr.ir.domains import Finite
from tracr.nearness import nearly_equal
from tracr.rasp.annotations import Encoding
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ir.parameters import Parameters
    from tracr.runtime.outputs import Output
    from tracr.runtime.vocabulary import Vocabulary

__all__ = ["Numbers", "WordHead", "head_of"]

Array = NDArray[Any]
Numbers = Literal["auto", "classes", "column"]
MARGIN = 32.0
MOST = 4096  # classes
COLUMN = "<number>"


@dataclass(frozen=True, eq=False)
class WordHead:
    """Rows [word, d_model] that read the residual stream, and biases [word]; `kind` says how to read the logits."""

    words: Words
    rows: Array
    constants: Array
    kind: Literal["one-hot", "classes", "column"]
    decoded: tuple[tuple[Value, int], ...]
    """Each value of the output, and the id of its word."""


class Unembedded(Protocol):
    """What a head is made from: of a compiled model, or of a trained one with the same tokens and outputs."""

    @property
    def parameters(self) -> Parameters:
        """The weights."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""


def head_of(model: Unembedded, output: Output, numbers: Numbers, margin: float = MARGIN) -> WordHead:
    """The logits of an output; those of one-hot outputs are multiplied by `margin`."""
    columns = model.parameters.W_U[:, output.start : output.stop]
    domain, vocabulary = output.domain, model.vocabulary
    if output.encoding is Encoding.CATEGORICAL:
        assert isinstance(domain, Finite)
        words = Words.of(vocabulary, domain.values)
        ids = [words.id_of(value) for value in domain.values]
        rows = np.zeros((len(words.words), model.d_model))
        rows[ids] = margin * columns.T
        return WordHead(words, rows, np.zeros(len(rows)), "one-hot", tuple(zip(domain.values, ids, strict=True)))
    problem = _not_classes(domain)
    if numbers == "classes" and problem:
        raise CompileError(
            f"the output {output.name} cannot be read as classes: {problem}",
            hint='compile rasp.categorical(program), or pass numbers="column" for a logit that is the number',
        )
    if numbers == "column" or problem:
        nothing: list[Value] = [None] if columns.shape[1] > 1 else []
        words = Words.of(vocabulary, nothing, [COLUMN])
        rows = np.zeros((len(words.words), model.d_model))
        ids = [len(words.words) - 1, *(words.id_of(value) for value in nothing)]
        rows[ids] = columns.T
        return WordHead(words, rows, np.zeros(len(rows)), "column", tuple(zip(nothing, ids[1:], strict=True)))
    assert isinstance(domain, Finite)
    return _classes(model, domain, columns)


def _distinct(domain: Finite) -> list[list[Value]]:
    """The numbers in ascending order, grouped if they differ only by rounding."""
    groups: list[list[Any]] = []
    for code in domain.ascending[0]:
        value: Any = domain.values[code]
        if groups and nearly_equal(value, groups[-1][0]):
            groups[-1].append(value)
        else:
            groups.append([value])
    return groups


def _spread(numbers: Array) -> tuple[float, float, float]:
    """The middle c, the smallest gap h, and the largest term r."""
    middle = float(numbers.min() + numbers.max()) / 2
    gap = float(np.diff(numbers).min()) if len(numbers) > 1 else 1.0
    largest = 2 * np.abs(numbers - middle).max() * np.abs(numbers).max() + np.abs(numbers**2 - middle**2).max()
    return middle, gap, float(largest)


def _not_classes(domain: Any) -> str:
    """Why a number cannot be read as one of several classes; empty if it can."""
    if not isinstance(domain, Finite):
        return f"its values are not listed ({domain.reason})"
    groups = _distinct(domain)
    if len(groups) > MOST:
        return f"it has {len(groups):,} values; at most {MOST:,} are allowed"
    if not groups:
        return ""
    _, gap, largest = _spread(np.array([float(group[0]) for group in groups]))  # type: ignore[arg-type]
    if 8 * U * largest > gap**2 / 4:
        return f"float32 cannot separate squares that differ by {gap**2:.2g} among numbers of this size"
    return ""


def _classes(model: Unembedded, domain: Finite, columns: Array) -> WordHead:
    groups = _distinct(domain)
    nothing: list[Value] = [None] if domain.maybe_none else []
    words = Words.of(model.vocabulary, [*(group[0] for group in groups), *nothing])
    numbers = np.array([float(group[0]) for group in groups])  # type: ignore[arg-type]
    middle, gap, _ = _spread(numbers) if groups else (0.0, 1.0, 0.0)
    scale = power_of_two_above(MARGIN / gap**2)
    rows, constants = np.zeros((len(words.words), model.d_model)), np.full(len(words.words), -MARGIN)
    ids = [words.id_of(group[0]) for group in groups]
    rows[ids] = scale * 2 * (numbers - middle)[:, None] * columns[:, 0]
    constants[ids] = -scale * (numbers**2 - middle**2)
    decoded = [(value, number) for group, number in zip(groups, ids, strict=True) for value in group]
    for value in nothing:
        half = scale * middle**2 + MARGIN
        number = words.id_of(value)
        rows[number], constants[number] = 2 * half * columns[:, 1], -half
        decoded.append((value, number))
    return WordHead(words, rows, constants, "classes", tuple(decoded))
