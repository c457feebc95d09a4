"""The pass `fuse`: composes nested functions into one function.

A table of a table becomes one table of the inner table's inputs. A table of two tables becomes one table of their
inputs, if these are at most two s-ops. The inner s-op stays if others read it.

Three passes remove operations, each with different knowledge:

- `fuse_expressions.py`, before tracing: merges operations written in one expression of the textual language, at every
  level. It sees functions, not values.
- `fuse_tables.py`, this pass: composes tables over values, if the composed table saves neurons. `composition.py`
  computes composed tables, for this pass and for `functions_of_sums.py`.
- `fold.py`, after lowering: multiplies linear maps over directions. It makes no tables.
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
    """For each s-op that can skip one of its inputs, the composed operation."""
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
        """Whether fusing saves an MLP in between and takes no more neurons."""
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
        """Whether an operation needs no neurons even without fusing."""
        return isinstance(op, Lookup) and self.one_hot(op.inner) and self.program.options.on(PassName.FOLD)

    def neurons(self, node: SOpNode, op: Tabulated) -> int:
        """About how many neurons an operation takes: one for each class, or pair of classes, of values."""
        if self.linear(node, op):
            return 0
        if isinstance(op, Lookup):
            return len(np.unique(op.table[op.table >= 0]))
        return pairs_of_classes(op.table)
