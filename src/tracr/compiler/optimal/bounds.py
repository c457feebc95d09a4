"""Lower bounds: how small a model made of the chosen components can be, next to the size that was reached.

The bounds are for the chosen components and codes, not over all models of the program. No other schedule, layout or
factorisation of the same functions is smaller than its bound.

Layers. A component comes after its inputs, and sub-layers alternate. The longest chain of components that read each
other therefore decides the number of layers. Earliest placement reaches it.

Live directions. After a sub-layer t, every variable that is written by then and read later occupies its directions. In
every schedule of the same depth these include: the variables written by t even if their writer is as late as possible,
and read later even if their readers are as early as possible. `Placing.fewest` also counts the directions being
cleared. A solver that ran may have proved a higher bound.

Dimensions. Between two sub-layers only the stream carries information from earlier writes to later reads. Stack the
earlier writes (the rows of the embeddings, the output matrices of heads and neurons) into W [m, d], and the later reads
(queries, keys, values, neurons, the unembedding) into R [n, d]. R Wᵀ are the virtual weights from earlier to later
components; the Hankel matrix of a linear system relates its past and future in the same way. A model with these virtual
weights has R' W'ᵀ = R Wᵀ with d' columns each, so d' is at least the rank. At the widest cut this bounds every linear
recoding of the stream: first for the schedule that was reached; then for every schedule of its depth, with only the
writes that must be earlier and the reads that must be later: a submatrix, whose rank is no larger.

Heads. Scores are x Q Kᵀ yᵀ and outputs are y V O, so d_head is at least the rank of Q Kᵀ and that of V O. A constant in
the keys adds the same to all scores of a query, which softmax ignores, and attention sums to 1, so a constant in the
values is a bias of the output: neither counts.

Neurons. An MLP sub-layer is not differentiable on a set of hyperplanes, at most one for every neuron. It has at least
as many neurons as its function has kinks: hyperplanes across which the gradient changes. Apart from the kinks the
function is affine. The part of its linear map that is not along the normals of the kinks comes from neurons on other
hyperplanes, at least two on each (one alone is a kink), and each hyperplane adds a map of rank 1: two more neurons for
every rank. This holds for the function on the whole stream, including values that no input reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tracr.compiler.layers.placing import placing_of
from tracr.craft.grouping import group_rows
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Array, Variable
from tracr.ir.circuit import Circuit, Component
from tracr.ir.compilation import Compilation
from tracr.ir.schedule import Layer

__all__ = ["Bound", "Bounds", "WritesAndReads", "bounds_of", "kinks", "product_rank"]

TINY = 1e-9  # a singular value below this fraction of the largest counts as rounding


@dataclass(frozen=True)
class Bound:
    """One size of a model, its lower bound, and the reason."""

    what: str
    reached: int
    bound: int
    reason: str

    @property
    def optimal(self) -> bool:
        """Whether the size equals its bound."""
        return self.reached == self.bound


@dataclass(frozen=True)
class Bounds:
    """The lower bounds of a model's sizes; prints as a table."""

    layers: Bound
    live: Bound
    dimensions: Bound
    anywhere: Bound
    heads: tuple[Bound, ...]
    neurons: tuple[Bound, ...]
    status: str
    """The result of the solver for the schedule."""

    def __iter__(self) -> Iterator[Bound]:
        yield from (self.layers, self.live, self.dimensions, self.anywhere, *self.heads, *self.neurons)

    def __str__(self) -> str:
        rows = [("", "reached", "bound", "optimal", "because")]
        rows += [
            (one.what, str(one.reached), str(one.bound), "yes" if one.optimal else "open", one.reason) for one in self
        ]
        sizes = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            f"{what:<{sizes[0]}}  {reached:>{sizes[1]}}  {bound:>{sizes[2]}}  {optimal:<{sizes[3]}}  {reason}".rstrip()
            for what, reached, bound, optimal, reason in rows
        ]
        return "\n".join([*lines, f"solver: {self.status or 'not run'}"])

    def as_json(self) -> dict[str, Any]:
        """The rows of the table, and the result of the solver."""
        return {"solver": self.status, "sizes": [{**asdict(one), "optimal": one.optimal} for one in self]}


def bounds_of(compilation: Compilation) -> Bounds:
    """The bounds for the components of a compilation."""
    schedule, placing = compilation.schedule, placing_of(compilation.circuit)
    depth, width = len(schedule.layers), compilation.layout.width
    stream = WritesAndReads(compilation.circuit)
    here, at = stream.widest_cut(schedule.placement.times, schedule.placement.times, depth)
    anywhere, cut = stream.widest_cut(placing.last, placing.first, placing.depth)
    fewest = max(schedule.fewest, placing.fewest)
    heads = [_head(f"d_head of {placed.name}", placed.head) for placed in schedule.heads()]
    neurons = [
        _neurons(f"neurons of blocks.{number}", weights.b_in.size, layer)
        for number, (layer, weights) in enumerate(zip(schedule.layers, compilation.parameters.layers, strict=True))
        if layer.mlps
    ]
    return Bounds(
        Bound("layers", depth, placing.depth, "the longest chain of components that read each other"),
        Bound("live directions", schedule.peak, fewest, "live at the same time in every schedule of this depth"),
        Bound("dimensions", width, here, f"Hankel rank, of later reads × earlier writes, after {_name(at)}"),
        Bound(
            "dimensions, any schedule",
            width,
            anywhere,
            f"of necessarily later reads × earlier writes, after {_name(cut)}",
        ),
        tuple(heads),
        tuple(neurons),
        schedule.status,
    )


def _name(time: int) -> str:
    return "the embedding" if time < 0 else f"{'MLP' if time % 2 else 'attention'} {time // 2}"


def product_rank(left: Array, right: Array) -> int:
    """The rank of left @ right.T.

    >>> product_rank(np.eye(3), np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    1
    """
    left, right = _compact(left), _compact(right)
    if not left.size or not right.size:
        return 0
    values = np.linalg.svd(left @ right.T, compute_uv=False)
    return int((values > TINY * max(1.0, values[0])).sum())


def _compact(rows: Array) -> Array:
    """At most as many rows as columns, with the same rank in products."""
    rows = rows[rows.any(axis=1)]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) > rows.shape[1] else rows


class WritesAndReads:
    """The matrices with which the embedding and the components write, and components and the unembedding read."""

    def __init__(self, circuit: Circuit) -> None:
        self.start: dict[Variable, int] = {}
        self.width = 0
        special = (BOS, PAD, ONE) if circuit.options.level == 0 else (BOS, PAD)
        for variable in (*special, *(source.variable for source in circuit.embedded), *circuit.variables):
            self.start[variable] = self.width
            self.width += variable.size
        self.embedded = self._embedding(circuit)
        self.writes = [self._written(component) for component in circuit.components]
        self.reads = [
            np.concatenate([self._rows(linear.blocks.items()) for linear in component.maps])
            for component in circuit.components
        ]
        self.output = np.concatenate([self._rows(linear.blocks.items()) for linear in circuit.unembedded])

    def _rows(self, blocks: Iterable[tuple[Variable, Array]]) -> Array:
        """Blocks [variable, n] as rows [n, directions]."""
        parts = [(variable, block) for variable, block in blocks if variable in self.start]
        rows = np.zeros((parts[0][1].shape[1] if parts else 0, self.width))
        for variable, block in parts:
            start = self.start[variable]
            rows[:, start : start + variable.size] += block.T
        return rows

    def _written(self, component: Component) -> Array:
        return self._rows((variable, matrix.T) for variable, matrix in component.writes)

    def _embedding(self, circuit: Circuit) -> Array:
        by_token = [(s.variable, s.by_token.T) for s in circuit.embedded if s.by_token is not None]
        by_position = [(s.variable, s.by_position.T) for s in circuit.embedded if s.by_position is not None]
        special = [self._rows([(variable, np.ones((1, 1)))]) for variable in (BOS, PAD, ONE) if variable in self.start]
        return np.concatenate([self._rows(by_token), self._rows(by_position), *special])

    def widest_cut(self, written: Sequence[int], read: Sequence[int], depth: int) -> tuple[int, int]:
        """The largest rank of later reads × earlier writes, and the sub-layer after which it occurs.

        A component counts as earlier from the sub-layer `written` on, and as later before the sub-layer `read`.
        """
        ranks = []
        for time in range(-1, 2 * depth):
            before = [self.embedded, *(rows for rows, at in zip(self.writes, written, strict=True) if at <= time)]
            after = [self.output, *(rows for rows, at in zip(self.reads, read, strict=True) if at > time)]
            w, r = np.concatenate(before), np.concatenate(after)
            both = w.any(axis=0) & r.any(axis=0)
            ranks.append((product_rank(r[:, both], w[:, both]), -time))
        rank, time = max(ranks)
        return rank, -time


def _head(what: str, head: Head) -> Bound:
    scores = product_rank(_matrix(head.query, constants=True), _matrix(head.key, constants=False))
    written = np.concatenate([matrix.T for _, matrix in head.writes])
    outputs = product_rank(_matrix(head.value, constants=False), written)
    return Bound(what, head.rank, max(scores, outputs), f"rank of W_QK {scores}, of W_OV {outputs}: {head.label}")


def _matrix(linear: LinearMap, *, constants: bool) -> Array:
    """A map as one matrix, with a row for the constant part or without."""
    blocks = [block for variable, block in linear.blocks.items() if constants or variable is not ONE]
    return np.concatenate([np.zeros((0, linear.width)), *blocks])


def _neurons(what: str, reached: int, layer: Layer) -> Bound:
    """The bound on the neurons of a layer, including those that clear slots, taken as one function."""
    read = LinearMap({}, 0)
    for part in layer.mlps:
        read = read.beside(part.read)
    written: dict[Variable, Array] = {}
    start = 0
    for part in layer.mlps:
        for variable, matrix in (*part.writes, *part.clears):
            rows = written.setdefault(variable, np.zeros((read.width, variable.size)))
            rows[start : start + part.read.width] += matrix
        start += part.read.width
    outputs = np.concatenate([np.zeros((read.width, 0)), *written.values()], axis=1)
    bias = read.blocks.get(ONE, np.zeros((1, read.width)))[0]
    turns, linear = kinks(_matrix(read, constants=False), bias, outputs)
    more = f", and a linear part of rank {linear} outside their normals" if linear else ""
    return Bound(what, reached, turns + 2 * linear, f"{turns} kink{'s' if turns != 1 else ''}{more}")


def kinks(read: Array, bias: Array, write: Array) -> tuple[int, int]:
    """How many kinks relu(x @ read + bias) @ write has, and the rank of its linear part outside their normals.

    A neuron c relu(s(n x + b)) with |n| = 1 adds c|s| to the change of gradient across its hyperplane n x + b = 0. If s
    is negative it is c|s| relu(n x + b) - c|s|(n x + b): a reversed neuron plus a linear part.

    >>> kinks(np.array([[1.0, -1.0]]), np.zeros(2), np.array([[1.0], [1.0]]))  # |x|
    (1, 0)
    >>> kinks(np.array([[1.0, -1.0]]), np.zeros(2), np.array([[1.0], [-1.0]]))  # x
    (0, 1)
    """
    sizes = np.linalg.norm(read, axis=0)
    some = sizes > 0  # the others are constants
    if not some.any():
        return 0, 0
    planes = (np.concatenate([read, bias[None, :]])[:, some] / sizes[some]).T
    signs = np.sign(planes[np.arange(len(planes)), np.argmax(np.abs(planes[:, :-1]) > TINY, axis=1)])
    planes *= signs[:, None]
    leaders, plane = group_rows(np.round(planes, 9) + 0.0)
    change = write[some] * sizes[some, None]
    jumps, sums, straight = (np.zeros((len(leaders), write.shape[1])) for _ in range(3))
    np.add.at(jumps, plane, change)
    np.add.at(sums, plane, np.abs(change))
    np.add.at(straight, plane[signs < 0], -change[signs < 0])
    turning = (np.abs(jumps) > TINY * sums).any(axis=1)
    normals = planes[leaders, :-1]
    _, values, basis = np.linalg.svd(normals[turning], full_matrices=False)
    basis = basis[values > TINY]
    beside = normals[~turning] - normals[~turning] @ basis.T @ basis
    beside[np.abs(beside) < TINY] = 0.0
    return int(turning.sum()), product_rank(beside.T, straight[~turning].T)
