"""The pass `fuse`: a function of a function is one function.

A table of a table is one table of what the inner one reads; a table of two tables, one of what those read, as long as
that is two s-ops. The s-op in between stays where others read it.

Three steps take operations away, each with what it knows:

- `fuse_expressions.py`, before tracing: operations that the textual language has in one expression. It sees functions,
  no values, and fuses what was written together at every level.
- `fuse_tables.py`, this pass: tables over values, where the fused table saves neurons. `composition.py` computes tables
  of tables, for this pass and for `functions_of_sums.py`.
- `fold.py`, after lowering: linear maps over directions. Nothing is tabulated; readers multiply two matrices.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tracr.compiler.program.composition import Tabulated, compose, pairs_of_classes, tabulated
from tracr.ir.ops import Lookup, Op, PairLookup
from tracr.ir.program import Program, SOpNode
from tracr.ir.switches import PassName
from tracr.rasp.annotations import Encoding

__all__ = ["fuse_maps"]

MOST_CELLS_FUSED = 65_536  # of a fused table


def fuse_maps(program: Program) -> dict[int, Op | int]:
    """For each s-op that can do without one it reads, the operation that does."""
    fusion = _Fusion(program)
    for node in program.sops.values():
        if isinstance(node.op, Tabulated):
            fusion.visit(node, node.op)
    return fusion.found


class _Fusion:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops: dict[int, Op] = {number: node.op for number, node in program.sops.items()}
        self.found: dict[int, Op | int] = {}
        self.readers = Counter(child for node in program.sops.values() for child in set(program.children(node)))
        self.readers.update(number for _, number in program.outputs)

    def visit(self, node: SOpNode, op: Tabulated) -> None:
        outer = tabulated(op)
        if outer is None:
            return
        nested = [source for source in outer.sources if isinstance(self.ops[source], Tabulated)]
        for inline in [nested, *([source] for source in nested if len(nested) > 1)]:
            composed = compose(self.program, outer, self.ops, inline, MOST_CELLS_FUSED)
            fused = composed.op() if composed is not None else None
            if fused is not None and self.worthwhile(node, op, fused, inline):
                self.ops[node.id] = self.found[node.id] = fused
                return

    def worthwhile(self, node: SOpNode, op: Tabulated, fused: Tabulated, inline: list[int]) -> bool:
        """Whether something is saved: an MLP in between, and no more neurons than it had."""
        inner = [self.ops[source] for source in inline]
        if all(self.linear(self.program.sops[source], self.ops[source]) for source in inline):
            return False
        if isinstance(fused, PairLookup) and not (self.one_hot(fused.fst) and self.one_hot(fused.snd)):
            return isinstance(op, Lookup) and self.readers[op.inner] == 1
        freed = sum(
            self.neurons(self.program.sops[source], step)
            for source, step in zip(inline, inner, strict=True)
            if self.readers[source] == 1 and isinstance(step, Tabulated)
        )
        return self.neurons(node, fused) <= self.neurons(node, op) + freed

    def one_hot(self, number: int) -> bool:
        return self.program.sops[number].encoding is Encoding.CATEGORICAL

    def linear(self, node: SOpNode, op: Op) -> bool:
        """Whether an operation needs no neurons anyway."""
        return isinstance(op, Lookup) and self.one_hot(op.inner) and self.program.options.on(PassName.FOLD)

    def neurons(self, node: SOpNode, op: Tabulated) -> int:
        """About how many neurons an operation takes: one for each class, or pair of classes, of values."""
        if self.linear(node, op):
            return 0
        if isinstance(op, Lookup):
            return len(np.unique(op.table[op.table >= 0]))
        return pairs_of_classes(op.table)
