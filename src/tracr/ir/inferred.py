"""The result of the pass `infer`: tables and domains, and which nodes compute the same. No encodings yet."""

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
    """For each s-op and selector, the first one that computes the same: mostly itself, after sharing always itself."""
    warnings: tuple[Diagnostic, ...]
    assumptions: tuple[Diagnostic, ...]
    """The assumptions about inputs under which the model is right."""
    shared: Mapping[str, str]
    """For each s-op removed by sharing (`share.py`), by label: the equal s-op that is kept."""
    bypassed: Mapping[str, str]
    """For each s-op whose parts are compared by a selector in its place: that selector."""
    written: Tables
    """The program as it was written, before sharing (`as_written.py`)."""

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """The program with only these nodes; of nodes that compute the same, the first one kept is the first."""
        left = super().only(sops, selectors)
        first: dict[int, int] = {}
        same = {number: first.setdefault(self.same[number], number) for number in (*left.sops, *left.selectors)}
        return replace(left, same=same)

    def verify(self) -> None:
        """Raise if an invariant is broken: those of tables, and `same` names existing nodes only."""
        super().verify()
        for nodes in (self.sops, self.selectors):
            for number in nodes:
                first = self.same.get(number, -1)
                if first not in nodes or self.same[first] != first:
                    raise InternalError(f"{nodes[number].label} is the same as a node that does not exist")

    def show(self) -> str:
        """One line per s-op: its operation and its values."""
        notes = [f"warning {warning}" for warning in self.warnings]
        notes += [f"assumption {assumption.sentence}" for assumption in self.assumptions]
        return "\n".join([super().show(), *notes])
