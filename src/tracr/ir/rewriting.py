"""The rewrites of the optimiser before lowering. A model keeps one program and the changes made to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tracr.errors import InternalError
from tracr.ir.ops import Op
from tracr.ir.program import Program
from tracr.ir.selectors import Selector

__all__ = ["Rewriting", "Rewritten", "rewriting_of"]


@dataclass(frozen=True, eq=False)
class Rewriting:
    """The changes from the program of a model to the program that is lowered."""

    kept: frozenset[int]
    """The s-ops that are kept."""
    ops: Mapping[int, Op]
    """The new operations of the s-ops that are computed in another way."""
    selectors: Mapping[int, Selector]
    """The selectors that are kept, over the kept s-ops."""
    outputs: tuple[tuple[str, int], ...]
    absorbed: Mapping[str, str]
    """For each s-op that its dependents no longer read, by label: what became of it."""

    def applied(self, program: Program) -> Program:
        """The program that is lowered."""
        left = program.only(self.kept, self.selectors)
        changed = {number: replace(left.sops[number], op=op) for number, op in self.ops.items()}
        sops, selectors = {**left.sops, **changed}, dict(self.selectors)
        return replace(left, sops=sops, selectors=selectors, outputs=self.outputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rewritten(Program):
    """The `original` program in fewer operations."""

    original: Program
    absorbed: Mapping[str, str]
    """For each s-op of the original that its dependents no longer read: what became of it."""

    def verify(self) -> None:
        """Raise if an invariant is broken: those of programs, and s-ops keep their domains and encodings."""
        super().verify()
        for number, node in self.sops.items():
            before = self.original.sops.get(number)
            if before is None or before.domain is not node.domain or before.encoding is not node.encoding:
                raise InternalError(f"the optimiser changed the domain or the encoding of {node.label}")

    def show(self) -> str:
        """One line per s-op, then what became of the others."""
        return "\n".join([super().show(), *(f"absorbed {label}: {where}" for label, where in self.absorbed.items())])


def rewriting_of(program: Program) -> Rewriting:
    """The changes from a program's original to the program; none if it was not rewritten."""
    original, absorbed = (program.original, program.absorbed) if isinstance(program, Rewritten) else (program, {})
    ops = {number: node.op for number, node in program.sops.items() if node.op is not original.sops[number].op}
    return Rewriting(frozenset(program.sops), ops, program.selectors, program.outputs, absorbed)
