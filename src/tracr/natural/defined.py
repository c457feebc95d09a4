"""Checks whether an intervention has a true answer: whether the program is defined on the combined values.

An intervention can cause a state that no input causes: a pair of values without a cell in a function's table, a head
that mixes codes, a count or a mean with a value that it has on no input. The compiled model still answers, but its
answer means nothing. At levels 0 and 1 every variable keeps its dimensions to the end, so the checks read the last
residual stream:

- every variable with finitely many values must hold the code of one of them;
- the two arguments of a function of two s-ops must be a pair in its table;
- a query and every key that it is compared with must be a pair on which the predicate does not raise.

The pairs are read from the stream that the MLP or the head sees. Codes are learned from runs on a sample of inputs: a
code that does not occur in the sample counts as undefined. Values that the model stores alike (no component tells them
apart) count as one value, which is defined where one of them is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.craft.variables import Variable
from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.ir.ops import Attention, Constant, PairLookup
from tracr.ir.selectors import SelectorNode, parts_of
from tracr.natural.sites import Sites
from tracr.runtime.table_interpreter import evaluate_batch

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Defined", "defined_of"]

Array = Any  # of JAX
CLOSE = 0.05  # the largest error of a coordinate of a one-hot code
PART_OF_DISTANCE = 0.25  # the largest error of a number, as a part of the distance between neighbouring numbers
SAME = 1e-5  # rows whose coordinates differ by at most this are the same code


@dataclass(frozen=True, eq=False)
class VariableCodes:
    """The different codes of a variable: their dimensions, a row for each, its values, and the largest error."""

    slots: NDArray[np.intp]
    rows: NDArray[np.float32]
    values: tuple[NDArray[np.intp], ...]
    """For each row, the numbers of the values that are stored so."""
    close: float

    def members(self, count: int) -> NDArray[np.float32]:
        """Whether each of `count` values is stored as each row, [row, value]."""
        found = np.zeros((len(self.rows), count), dtype=np.float32)
        for row, values in enumerate(self.values):
            found[row, values] = 1
        return found

    def nearest(self, stream: Array) -> tuple[Array, Array]:
        """The number of the nearest row to a stream [..., d_model], and whether it is within the largest error."""
        held = stream[..., self.slots]
        off = jnp.abs(held[..., None, :] - jnp.asarray(self.rows)).max(axis=-1, initial=0.0)
        return off.argmin(axis=-1), off.min(axis=-1) <= self.close


CONSTANT = VariableCodes(
    np.zeros(0, dtype=np.intp), np.zeros((1, 0), dtype=np.float32), (np.zeros(1, dtype=np.intp),), 0
)
"""The one value of a constant, which has no dimensions."""


@dataclass(frozen=True, eq=False)
class PairCheck:
    """Two s-ops that are read together: the numbers of the two readers, the codes, and the defined pairs of rows.

    A function reads both at its own position. A head compares the first at its own position, the query, with the
    second at every position that it can attend to, the key.
    """

    readers: tuple[int, int]
    first: VariableCodes
    second: VariableCodes
    there: NDArray[np.bool_]
    compared: bool

    @staticmethod
    def of(
        readers: tuple[int, int], first: VariableCodes, second: VariableCodes, table: Any, compared: bool
    ) -> PairCheck:
        """The check for a table over values."""
        there = first.members(table.shape[0]) @ (table >= 0) @ second.members(table.shape[1]).T > 0
        return PairCheck(readers, first, second, there, compared)

    def fine(self, views: tuple[Array, Array], attended: Array) -> Array:
        """Whether it is defined, [batch, position]; `attended` are the keys of each query [batch, query, key]."""
        (first, one), (second, other) = self.first.nearest(views[0]), self.second.nearest(views[1])
        if not self.compared:
            return one & other & jnp.asarray(self.there)[first, second]
        pairs = jnp.asarray(self.there)[first[:, :, None], second[:, None, :]] & other[:, None, :]
        return one & (pairs | ~attended).all(axis=-1)


@dataclass(frozen=True, eq=False)
class Defined:
    """The checks on the last residual stream."""

    books: tuple[VariableCodes, ...]
    pairs: tuple[PairCheck, ...]
    causal: bool

    def __call__(self, end: Array, seen: Array, change: Array, token: Array) -> Array:
        """Whether the program is defined, [batch, position].

        `end` is the last residual stream; reader r saw `seen[:, r] * change` in addition. `token` marks the positions
        that hold a token; at the others the result means nothing.
        """
        fine = jnp.ones(end.shape[:-1], dtype=bool)
        for book in self.books:
            fine &= book.nearest(end)[1]
        attended = jnp.broadcast_to(token[:, None, :], (*token.shape, token.shape[1]))
        attended = jnp.tril(attended) if self.causal else attended
        for pair in self.pairs:
            one, other = (end + seen[:, reader, None, None] * change for reader in pair.readers)
            fine &= pair.fine((one, other), attended)
        return fine


Books = dict[Variable, VariableCodes]


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
    books: Books = {}
    for variable, slots in model.layout.slots.items():
        node = model.program.sops.get(variable.node) if variable.node is not None else None
        if node is None or not isinstance(node.domain, Finite) or not (slots >= 0).any():
            continue
        codes = np.broadcast_to(evaluation.codes[node.id], valid.shape)[valid]
        found, first = np.unique(codes, return_index=True)
        books[variable] = _codes(slots[slots >= 0], held[first][:, slots[slots >= 0]].astype(np.float32), found)
    pairs = (*_functions(model, sites, books), *_comparisons(model, sites, books))
    return Defined(tuple(books.values()), pairs, model.options.causal)


def _codes(slots: NDArray[np.intp], rows: NDArray[np.float32], values: NDArray[Any]) -> VariableCodes:
    """The codes, from a row for each value; the largest error is a part of the distance between two rows."""
    distances = np.abs(rows[:, None] - rows[None]).max(axis=-1)
    like = (distances <= SAME).argmax(axis=1)  # the first value that is stored so
    firsts = np.unique(like)
    apart = distances[distances > SAME]
    close = min(CLOSE, PART_OF_DISTANCE * float(apart.min())) if len(apart) else CLOSE
    return VariableCodes(slots, rows[firsts], tuple(values[like == one].astype(np.intp) for one in firsts), close)


def _functions(model: CompiledModel, sites: Sites, books: Books) -> Iterator[PairCheck]:
    """The functions of two s-ops with cells that no input reaches, each where it is first computed."""
    for number, _, _, part in model.layout.schedule.neurons():
        reader = number * (3 * sites.heads + 1) + 3 * sites.heads
        for variable, _ in part.writes:
            node = model.program.sops.get(variable.node) if variable.node is not None else None
            if node is None or not isinstance(node.op, PairLookup) or (node.op.table >= 0).all():
                continue
            if any(one.node == node.id for one in part.reads):  # the same value, stored in another way
                continue
            first, second = (_book(model, books, part.reads, sop) for sop in (node.op.fst, node.op.snd))
            if first is not None and second is not None:
                yield PairCheck.of((reader, reader), first, second, node.op.table, compared=False)


def _comparisons(model: CompiledModel, sites: Sites, books: Books) -> Iterator[PairCheck]:
    """The selectors that raise on some pairs, for every head that computes one."""
    selectors = model.program.selectors
    for layer, place, head in model.layout.schedule.heads():
        query = layer * (3 * sites.heads + 1) + place
        nodes = [model.program.sops.get(variable.node) for variable, _ in head.writes if variable.node is not None]
        used = [node.op.selector for node in nodes if node is not None and isinstance(node.op, Attention)]
        for selector in {part.id: part for number in used for part in parts_of(selectors, number)}.values():
            if not isinstance(selector, SelectorNode) or (selector.table >= 0).all():
                continue
            first = _book(model, books, tuple(head.query.blocks), selector.queries)
            second = _book(model, books, tuple(head.key.blocks), selector.keys)
            if first is not None and second is not None:
                yield PairCheck.of((query, query + sites.heads), first, second, selector.table, compared=True)


def _book(model: CompiledModel, books: Books, read: Sequence[Variable], sop: int) -> VariableCodes | None:
    """The codes of an s-op, by preference of the variable that is read; `None` if the model does not hold it."""
    if isinstance(model.program.sops[sop].op, Constant):
        return CONSTANT
    return next((books[variable] for variable in (*read, *books) if variable in books and variable.node == sop), None)
