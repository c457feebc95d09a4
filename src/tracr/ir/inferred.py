"""What inference makes of a traced program: tables and domains, and which nodes compute the same. No encodings yet."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Self

from tracr.errors import Diagnostic, InternalError
from tracr.ir.program import InferredNode, Tables, Tabulation

__all__ = ["Inferred"]


@dataclass(frozen=True, eq=False)
class Inferred(Tabulation[InferredNode]):
    """A tabulated program without encodings."""

    same: Mapping[int, int]
    """For each s-op and selector the first that computes the same: itself, mostly, and after sharing always."""
    warnings: tuple[Diagnostic, ...]
    assumptions: tuple[Diagnostic, ...]
    """What had to be assumed of the inputs for the program to be compiled."""
    shared: Mapping[str, str]
    """S-ops that are computed once with another (`share.py`), by label, and the one that is left."""
    bypassed: Mapping[str, str]
    """S-ops whose parts a selector compares in their place, and that selector."""
    written: Tables
    """The program as it was written, before sharing (`as_written.py`)."""

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """Without the others; of nodes that compute the same the first that is left counts as the first."""
        left = super().only(sops, selectors)
        first: dict[int, int] = {}
        same = {number: first.setdefault(self.same[number], number) for number in (*left.sops, *left.selectors)}
        return replace(left, same=same)

    def verify(self) -> None:
        """Raise if an invariant is broken: those of tables, and every node is the same as a node that is there."""
        super().verify()
        for nodes in (self.sops, self.selectors):
            for number in nodes:
                first = self.same.get(number, -1)
                if first not in nodes or self.same[first] != first:
                    raise InternalError(f"{nodes[number].label} is said to be the same as a node that is not there")

    def show(self) -> str:
        """One line per s-op: what it is, and its values."""
        notes = [f"warning {warning}" for warning in self.warnings]
        notes += [f"assumption {assumption.sentence}" for assumption in self.assumptions]
        return "\n".join([super().show(), *notes])
