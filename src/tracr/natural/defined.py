"""Checks whether an intervention has a true answer: whether the program is defined on the combined values.

An intervention can cause a state that no input causes: a pair of values without a cell in a function's table, a head
that mixes codes, a count or a mean with a value that it has on no input. The compiled model still answers, but its
answer means nothing. At levels 0 and 1 every variable keeps its dimensions to the end, so the checks read the last
residual stream:

- every variable with finitely many values must hold the code of one of them;
- the two arguments of a function of two s-ops must be a pair in its table.

Codes are learned from runs on a sample of inputs: a code that does not occur in the sample counts as undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.craft.variables import Variable
from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.ir.ops import PairLookup
from tracr.natural.sites import Sites
from tracr.runtime.table_interpreter import evaluate_batch

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Defined", "defined_of"]

Array = Any  # of JAX
CLOSE = 0.05  # the largest error of a coordinate of a one-hot code
PART_OF_DISTANCE = 0.25  # the largest error of a number, as a part of the distance between neighbouring numbers


@dataclass(frozen=True, eq=False)
class VariableCodes:
    """The codes of a variable: one row for each, their dimensions, and the largest error."""

    slots: NDArray[np.intp]
    rows: NDArray[np.float32]
    codes: NDArray[np.int32]
    close: float

    def nearest(self, stream: Array) -> tuple[Array, Array]:
        """The nearest code to a residual stream [..., d_model], and whether it is within the largest error."""
        held = stream[..., self.slots]
        off = jnp.abs(held[..., None, :] - jnp.asarray(self.rows)).max(axis=-1)
        return jnp.asarray(self.codes)[off.argmin(axis=-1)], off.min(axis=-1) <= self.close


@dataclass(frozen=True, eq=False)
class Pair:
    """A function of two s-ops: the number of the MLP that reads them, their codebooks, and the pairs in its table."""

    reader: int
    first: VariableCodes
    second: VariableCodes
    there: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Defined:
    """The checks on the last residual stream."""

    books: tuple[VariableCodes, ...]
    pairs: tuple[Pair, ...]

    def __call__(self, end: Array, seen: Array, change: Array) -> Array:
        """Whether the program is defined, [batch, position].

        `end` is the last residual stream; reader r saw `seen[:, r] * change` in addition.
        """
        fine = jnp.ones(end.shape[:-1], dtype=bool)
        for book in self.books:
            fine &= book.nearest(end)[1]
        for pair in self.pairs:
            view = end + seen[:, pair.reader, None, None] * change
            (first, one), (second, other) = pair.first.nearest(view), pair.second.nearest(view)
            fine &= one & other & jnp.asarray(pair.there)[first, second]
        return fine


def defined_of(model: CompiledModel, sites: Sites, inputs: list[list[Any]], stream: NDArray[Any]) -> Defined:
    """The checks for a model, from its last residual stream on a sample of inputs, [input, position, d_model]."""
    if model.options.level > 1:
        raise TracrError(
            "at level 2 variables share dimensions, so interventions cannot be checked",
            hint="compile the teacher at level 0 or 1",
        )
    evaluation = evaluate_batch(model.program, inputs)
    valid = evaluation.batch.valid & ~evaluation.errors[:, None]
    held = stream[:, 1:][valid]
    books: dict[Variable, VariableCodes] = {}
    for variable, slots in model.layout.slots.items():
        node = model.program.sops.get(variable.node) if variable.node is not None else None
        if node is None or not isinstance(node.domain, Finite) or not (slots >= 0).any():
            continue
        codes = np.broadcast_to(evaluation.codes[node.id], valid.shape)[valid]
        found, first = np.unique(codes, return_index=True)
        rows = held[first][:, slots[slots >= 0]].astype(np.float32)
        books[variable] = VariableCodes(slots[slots >= 0], rows, found.astype(np.int32), _close(rows))
    return Defined(tuple(books.values()), tuple(_pairs(model, sites, books)))


def _close(rows: NDArray[np.float32]) -> float:
    """The largest error of a code: a part of the distance between two different codes."""
    distances = np.abs(rows[:, None] - rows[None]).max(axis=-1)
    apart = distances[distances > 1e-5]
    return min(CLOSE, PART_OF_DISTANCE * float(apart.min())) if len(apart) else CLOSE


def _pairs(model: CompiledModel, sites: Sites, books: dict[Variable, VariableCodes]) -> list[Pair]:
    """The functions of two s-ops whose MLP reads both arguments."""
    found = []
    for number, _, _, part in model.layout.schedule.neurons():
        reader = number * (3 * sites.heads + 1) + 3 * sites.heads
        for variable, _ in part.writes:
            node = model.program.sops.get(variable.node) if variable.node is not None else None
            if node is None or not isinstance(node.op, PairLookup):
                continue
            read = {one.node: books[one] for one in part.reads if one in books}
            if node.op.fst in read and node.op.snd in read:
                there = node.op.table >= 0
                found.append(Pair(reader, read[node.op.fst], read[node.op.snd], there))
    return found
