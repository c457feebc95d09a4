"""What the optimiser changes in a program before it is lowered. A model keeps the changes, and one program."""

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
    """The changes that make the program that is lowered of the program of a model."""

    kept: frozenset[int]
    """The s-ops that are left."""
    ops: Mapping[int, Op]
    """The operations of those that are computed in another way."""
    selectors: Mapping[int, Selector]
    """The selectors that are left, as they compare those."""
    outputs: tuple[tuple[str, int], ...]
    absorbed: Mapping[str, str]
    """S-ops that others depend on but do not read any more, by label, and where they went."""

    def applied(self, program: Program) -> Program:
        """The program that is lowered."""
        left = program.only(self.kept, self.selectors)
        changed = {number: replace(left.sops[number], op=op) for number, op in self.ops.items()}
        sops, selectors = {**left.sops, **changed}, dict(self.selectors)
        return replace(left, sops=sops, selectors=selectors, outputs=self.outputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rewritten(Program):
    """A program in fewer operations than the `original`."""

    original: Program
    absorbed: Mapping[str, str]
    """S-ops of the original that others depend on but do not read any more, and where the optimiser left them."""

    def verify(self) -> None:
        """Raise if an invariant is broken: those of programs, and every s-op holds what it does in the original."""
        super().verify()
        for number, node in self.sops.items():
            before = self.original.sops.get(number)
            if before is None or before.domain is not node.domain or before.encoding is not node.encoding:
                raise InternalError(f"the optimiser changed what {node.label} holds")

    def show(self) -> str:
        """One line per s-op, then where the others went."""
        return "\n".join([super().show(), *(f"absorbed {label}: {where}" for label, where in self.absorbed.items())])


def rewriting_of(program: Program) -> Rewriting:
    """The changes that made a program of its original; none if it is one itself."""
    original, absorbed = (program.original, program.absorbed) if isinstance(program, Rewritten) else (program, {})
    ops = {number: node.op for number, node in program.sops.items() if node.op is not original.sops[number].op}
    return Rewriting(frozenset(program.sops), ops, program.selectors, program.outputs, absorbed)
