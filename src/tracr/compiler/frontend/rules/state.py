"""The results of `infer` so far. The other files of this package add to them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.rules.counts import Widths
from tracr.compiler.frontend.rules.facts import JOINT_CELLS, SHAPE, TOKENS, Facts, Groups, Pairs, Shape, feasible_pairs
from tracr.compiler.frontend.rules.tabulate import Caller, Reporter
from tracr.compiler.frontend.trace import TracedNode
from tracr.errors import ExpressionError, LimitError
from tracr.ir.budget import MEAN, VALUE, Budget, ValueSizes, size_text
from tracr.ir.domains import Codes, Domain, Finite, Interval
from tracr.ir.ops import Aggregation, Linear, Op
from tracr.ir.options import Options
from tracr.ir.program import InferredNode
from tracr.ir.selectors import Selector
from tracr.rasp.annotations import ENCODING, Encoding
from tracr.rasp.expressions import RASPExpr

__all__ = ["Cells", "Inference", "infer_node"]

LISTED_TO_DECODE = 10_000  # values listed only so that outputs can be rounded to the nearest one
PAIR_BYTES = 16  # two codes, twice while they are made


Means = tuple[Domain, dict[int, Codes] | None]  # all means, and their codes for each number of keys


class Cells:
    """A table as part of a key: equal to a table with the same cells; its hash uses a few cells."""

    def __init__(self, table: NDArray[np.integer]) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.ravel()[:: 1 + self.table.size // 1024].tobytes())


class Inference:
    """The results of `infer` so far, and methods to add to them."""

    def __init__(
        self,
        options: Options,
        lengths: tuple[int, int],
        nodes: int,
        read_nonlinearly: frozenset[int],
        near: float = 0.0,
    ) -> None:
        self.options = options
        self.read_nonlinearly = read_nonlinearly
        self.lengths = lengths
        self.shape = Shape.of(*self.lengths)
        self.reporter = Reporter(options.strict, near)
        self.budget = Budget(options.max_memory)
        self._sizes = ValueSizes()
        self.sops: dict[int, InferredNode] = {}
        self.selectors: dict[int, Selector] = {}
        self.widths: dict[int, Widths] = {}
        self.orders: dict[int, bool] = {}  # whether a selector is a total order of the positions, if this was asked
        self.facts: dict[int, Facts] = {}
        self.canon: dict[int, int] = {}  # the first node that computes the same
        self.same: dict[int, int] = {}  # the node it may be shared with
        self.unmasked: dict[int, NDArray[np.int8]] = {}  # the own tables of selectors that equal the causal mask
        self.bypassed: dict[int, str] = {}  # s-ops whose parts are compared by a selector, and that selector
        self.means: dict[object, Means] = {}  # by the averaged domain and the numbers of keys
        self._decoded: dict[int, int] = {}
        self._numbering: dict[object, int] = {}
        self._pairs: dict[tuple[int, int], Pairs | None] = {}
        self._pair_bytes = self._joint_bytes = 0
        self._next_id = nodes

    def caller(
        self, node: TracedNode, f: Callable[..., Any], *, reachable: bool = False, predicate: bool = False
    ) -> Caller:
        """The user's function, ready to be tabulated for `node`."""
        return Caller(node.expr, f, self.reporter, reachable, predicate, self.budget)

    def fresh_id(self) -> int:
        """An unused id, for a node that is not in the graph."""
        self._next_id += 1
        return self._next_id - 1

    def canonical(self, number: int, key: object) -> int:
        """The first node with this key, which computes the same: value numbering."""
        self.canon[number] = self.same[number] = self._numbering.setdefault(key, number)
        return self.canon[number]

    def add(
        self,
        number: int,
        label: str,
        expr: RASPExpr,
        op: Op,
        domain: Domain,
        *,
        key: object,
        leaves: tuple[int, ...] = (),
        joint: Callable[[], Codes] | None = None,
        groups: Callable[[], Groups | None] = lambda: None,
        distinct: bool = False,
        root: int | None = None,
        determines: frozenset[int] = frozenset(),
    ) -> None:
        """Record an s-op; one without a small `joint` table becomes a leaf itself."""
        large = self._sizes.beyond(domain.values) if isinstance(domain, Finite) else 0
        self.budget.hold(VALUE * domain.size + large + op.nbytes, f"has {domain.size:,} values", expr)
        if joint is not None and not self._keeps_joint(leaves):
            leaves, joint = (), None
        wish = expr.annotation(ENCODING)
        number_by_nature = isinstance(op, Linear) or (isinstance(op, Aggregation) and not op.copies)
        canon = self.canonical(number, (type(op).__name__, key, domain.key()))
        if number_by_nature and wish is Encoding.CATEGORICAL:
            # decoding costs an MLP, and readers of the number must not wait for it: one variable each
            self.same[number] = self._decoded.setdefault(canon, number)
        if joint is None and isinstance(domain, Finite) and len(domain) <= JOINT_CELLS:
            leaves, joint = (canon,), lambda: domain.codes
        own = frozenset() if root is not None else frozenset({canon})
        root = canon if root is None else root
        self.facts[number] = Facts(canon, root, leaves, joint, groups, distinct, determines | own, self.shape)
        self.sops[number] = InferredNode(number, label, repr(expr), expr.origin, op, domain, wish)

    def _keeps_joint(self, leaves: tuple[int, ...]) -> bool:
        """Whether a table over these leaves may be kept: facts may take a quarter of the memory."""
        sizes = {TOKENS: len(self.options.vocab), SHAPE: len(self.shape.positions)}
        cells = math.prod(sizes[leaf] if leaf in sizes else self.sops[leaf].domain.size for leaf in leaves)
        self._joint_bytes += 4 * cells
        return self._joint_bytes <= self.budget.most // 4

    def most_values(self, number: int) -> int:
        """How many values of a node to list: up to the limit if a nonlinear reader needs them, else a few."""
        limit = min(self.options.max_values, self.budget.most // MEAN)
        return limit if number in self.read_nonlinearly else min(limit, LISTED_TO_DECODE)

    def _limit_of_values(self) -> str:
        """The option that limits how many values are listed, with its value."""
        if self.options.max_values <= self.budget.most // MEAN:
            return f"max_values (now {self.options.max_values:,})"
        return f"max_memory (now {size_text(self.budget.most)})"

    def listed(self, number: int, reader: RASPExpr) -> Finite:
        """The finite domain of a node, for a nonlinear reader; a refusal if it is not finite."""
        node = self.sops[number]
        if isinstance(node.domain, Interval):
            raise LimitError(
                f"needs every value of {node.label} = {node.source}, {node.domain.reason}",
                expression=reader,
                hint=f"raise {self._limit_of_values()}, shorten max_seq_len, "
                "or apply only linear operations (+, -, * constant) to it",
            )
        return node.domain

    def count_pairs(self, fst: int, snd: int) -> int:
        """How many pairs of codes of two s-ops can occur at one position."""
        known = self._known_pairs(fst, snd)
        if known is not None:
            return len(known[0])
        rows, columns = self._occurring(fst, snd)
        return len(rows) * len(columns)

    def pairs(self, fst: int, snd: int, reader: RASPExpr | str = "") -> Pairs:
        """The pairs of codes of two s-ops that can occur at one position."""
        known = self._known_pairs(fst, snd)
        if known is None:
            rows, columns = self._occurring(fst, snd)
            count = len(rows) * len(columns)
            self.budget.need(PAIR_BYTES * count, f"needs {count:,} pairs of values", reader)
            known = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
        return known

    def _known_pairs(self, fst: int, snd: int) -> Pairs | None:
        if (fst, snd) not in self._pairs:
            if self._pair_bytes > self.budget.most // 8:
                self._pairs, self._pair_bytes = {}, 0
            sizes = self.sops[fst].domain.size, self.sops[snd].domain.size
            found = self._pairs[fst, snd] = feasible_pairs(self.facts[fst], self.facts[snd], sizes)
            self._pair_bytes += PAIR_BYTES * len(found[0]) if found else 0
        return self._pairs[fst, snd]

    def _occurring(self, *numbers: int) -> list[Codes]:
        """The codes of s-ops that can occur."""
        return [self.facts[number].occurring(self.sops[number].domain.size) for number in numbers]


@functools.singledispatch
def infer_node(expr: RASPExpr, inference: Inference, node: TracedNode) -> None:
    """Infer one expression: dispatched on its type."""
    raise ExpressionError(f"{expr!r} is not an expression the compiler knows", hint="use the classes of tracr.rasp")
