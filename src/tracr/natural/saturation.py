"""Lists the parameters of a compiled model that get no gradient.

A neuron below its threshold and a softmax whose smaller weights are rounded to 0 pass no gradient. A gradient that is
0 for every input leaves the parameter as it is, for any number of training steps and any step size, until another
parameter moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import TracrError
from tracr.model.designed import DesignedModel
from tracr.natural.answers import Answers
from tracr.natural.network import Tree
from tracr.natural.teacher import inputs_of
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output

__all__ = ["Gradients", "MatrixGradient", "gradients"]

SAMPLED_INPUTS = 256  # inputs, if none are given
GRADIENT_NUMBERS = 2**24  # most numbers in the gradients that are computed at the same time


@dataclass(frozen=True)
class MatrixGradient:
    """One weight matrix: the number of its entries, and how many have a gradient of exactly 0 on all inputs."""

    name: str
    entries: int
    without: int

    @property
    def share(self) -> float:
        """The share of entries without gradient; 0 for a matrix without entries."""
        return self.without / self.entries if self.entries else 0.0


@dataclass(frozen=True, eq=False)
class Gradients:
    """The parameters of a model that get no gradient from the loss of the outputs, on a sample of inputs."""

    inputs: int
    """The number of inputs."""
    zero: Mapping[str, NDArray[np.bool_]] = field(repr=False)
    """For each weight matrix, by its TransformerLens name: which entries have a gradient of exactly 0 on all inputs."""

    @property
    def matrices(self) -> tuple[MatrixGradient, ...]:
        """Every weight matrix with its counts."""
        return tuple(MatrixGradient(name, mask.size, int(mask.sum())) for name, mask in self.zero.items())

    @property
    def total(self) -> MatrixGradient:
        """The counts of all matrices together."""
        every = self.matrices
        return MatrixGradient("all", sum(one.entries for one in every), sum(one.without for one in every))

    def show(self) -> str:
        """A table: a line for each weight matrix."""
        rows = [(one.name, f"{one.entries:,}", f"{one.without:,}", f"{one.share:.1%}") for one in self._listed()]
        rows = [("matrix", "entries", "no gradient", "share"), *rows]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3))]).rstrip() for row in rows
        ]
        return "\n".join([f"gradients of the loss on {self.inputs:,} inputs, float32", *lines])

    def _listed(self) -> tuple[MatrixGradient, ...]:
        """The matrices that have entries, and the total."""
        return (*(one for one in self.matrices if one.entries), self.total)

    def __str__(self) -> str:
        return self.show()


def gradients(model: DesignedModel, inputs: Sequence[Sequence[Any]] | None = None, *, seed: int = 0) -> Gradients:
    """Which parameters of a compiled model get no gradient (needs the extra `jax`).

    The loss of an output is the cross-entropy of its right value; for a numerical output it is the number itself,
    because a squared error has no slope at the right answer. The gradient is computed in float32 for every token of
    every input on its own; an entry is listed if its gradient is exactly 0 for all of them. Other inputs and other
    number formats can give other results. An entry whose gradient is only rounding, as in models with layer norms, is
    not listed.

    Args:
        model: a compiled model or a variant of it.
        inputs: the inputs; by default up to 256 random ones on which the program is defined.
        seed: the seed of the random choice of inputs.
    """
    _check(model, inputs)
    ids = inputs_of(model, inputs, seed := whole("seed", seed)).ids
    if inputs is None:
        ids = ids[np.sort(np.random.default_rng(seed).permutation(len(ids))[:SAMPLED_INPUTS])]
    apply, weights = model.to_jax(dtype=np.float32, check=False)
    codes = Answers(model.outputs).read(jnp.asarray(model.plain.logits(ids), dtype=jnp.float32)).codes
    rows, places = np.nonzero((ids != model.vocabulary.pad_id) & (np.arange(ids.shape[1]) > 0))

    def loss(params: Tree, row: Any, place: Any) -> Any:
        return _loss(model.outputs, apply(params, jnp.asarray(ids)[row][None])[0, place], codes[row, place])

    def moves(row: Any, place: Any) -> Any:
        found = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(weights, row, place)
        return {name: (array != 0).any(axis=0) for name, array in found.items()}

    moved = jax.jit(moves)
    size = max(1, GRADIENT_NUMBERS // max(1, model.n_parameters))
    zero = {name: np.ones(array.shape, dtype=bool) for name, array in weights.items()}
    for first in range(0, len(rows), size):
        for name, mask in moved(rows[first : first + size], places[first : first + size]).items():
            zero[name] &= ~np.asarray(mask)
    return Gradients(len(ids), zero)


def _loss(outputs: Sequence[Output], logits: Any, codes: Any) -> Any:
    """The loss of the logits [d_vocab_out] of one token: cross-entropy of the right codes, or the numbers."""
    total = jnp.zeros(())
    for place, output in enumerate(outputs):
        mine = logits[output.start : output.stop]
        categorical = output.encoding is Encoding.CATEGORICAL
        total += -jax.nn.log_softmax(mine)[codes[place]] if categorical else mine.sum()
    return total


def _check(model: object, inputs: object) -> None:
    """Refuse what is not a compiled model, and inputs that are not a list."""
    if not isinstance(model, DesignedModel):
        raise TracrError(
            f"gradients are computed for a compiled model, not for a {type(model).__name__}",
            hint="use tracr.compile(...), or the teacher of a twin: twin.teacher",
        )
    rows = inputs if isinstance(inputs, Sequence) and not isinstance(inputs, str) else ()
    if inputs is not None and (not rows or not all(isinstance(row, Sequence) for row in rows)):
        raise TracrError("the inputs must be a list of inputs", hint='such as ["ab", "ba"], or lists of tokens')
