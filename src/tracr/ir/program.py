"""The program as data: every s-op with its domain and its table. Later passes call no user function.

`Tabulation` has the fields common to all stages. The frontend makes an `Inferred` (`inferred.py`): it knows which s-ops
compute the same, and has no encodings. `Program` has an encoding for every s-op: later passes lower it, the table
interpreter runs it, and models are checked against it. Values are integer codes (places in a node's domain). `ERROR`
marks a cell where the user's function raises, `UNREACHED` a cell that no input reaches.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from tracr.caching import cached_property
from tracr.errors import Diagnostic, InternalError
from tracr.ir.budget import VALUE
from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import ERROR, Op
from tracr.ir.options import Options
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode, parts_of
from tracr.rasp.annotations import Encoding

__all__ = [
    "InferredNode",
    "Program",
    "SOpNode",
    "Stored",
    "Tables",
    "Tabulation",
]


@dataclass(frozen=True, eq=False)
class InferredNode:
    """An s-op: its operation, the values it can take and the encoding that the user asked for, if any.

    `source` is the expression as text, `origin` where it was written (`file.py:12`).
    """

    id: int
    label: str
    source: str
    origin: str
    op: Op
    domain: Domain
    wish: Encoding | None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The s-ops this one reads at its own position."""
        return self.op.inputs


@dataclass(frozen=True, eq=False)
class SOpNode(InferredNode):
    """An s-op with the encoding that was chosen for it."""

    encoding: Encoding


N = TypeVar("N", bound=InferredNode, covariant=True)


@dataclass(frozen=True, eq=False)
class Tabulation(Generic[N]):
    """All s-ops and selectors that the outputs need, in topological order."""

    options: Options
    sops: dict[int, N]
    selectors: dict[int, Selector]
    outputs: tuple[tuple[str, int], ...]
    lengths: tuple[int, int]

    @cached_property
    def nbytes(self) -> int:
        """About how much memory the values and tables take."""
        domains = {id(node.domain): node.domain.size for node in self.sops.values()}
        tabulated = (*(node.op for node in self.sops.values()), *self.selectors.values())
        return VALUE * sum(domains.values()) + sum(one.nbytes for one in tabulated)

    def children(self, node: InferredNode) -> tuple[int, ...]:
        """Every s-op that `node` depends on directly, those compared by its selector included."""
        selectors = node.op.selectors
        if not selectors:
            return node.inputs
        literals = (part for selector in selectors for part in self.literals(selector))
        compared = dict.fromkeys(side for part in literals for side in (part.keys, part.queries))
        return (*node.inputs, *compared, *node.op.attended)

    def parts(self, number: int) -> list[Selector]:
        """A selector and all selectors it is made of, each once, parts before their combinations."""
        return parts_of(self.selectors, number)

    def literals(self, number: int) -> list[SelectorNode]:
        """The plain selectors (no combinations) that a selector is made of."""
        selector = self.selectors[number]
        if isinstance(selector, SelectorNode):
            return [selector]
        return [part for part in self.parts(number) if isinstance(part, SelectorNode)]

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """The program with only these s-ops and selectors."""
        return replace(
            self,
            sops={number: node for number, node in self.sops.items() if number in sops},
            selectors={number: selector for number, selector in self.selectors.items() if number in selectors},
        )

    def verify(self) -> None:
        """Raise if an invariant is broken: order, table shapes, codes inside the domain."""
        self._verify_selectors()
        seen: set[int] = set()
        for number, node in self.sops.items():
            if number != node.id or any(child not in seen for child in self.children(node)):
                raise InternalError(f"program node {node.label} comes before one of its inputs")
            seen.add(node.id)
            self._verify_table(node)
        for name, output in self.outputs:
            if output not in seen:
                raise InternalError(f"there is no s-op for output {name}")

    def _verify_table(self, node: InferredNode) -> None:
        cells = node.op.cells
        if cells is None:
            return
        if not isinstance(node.domain, Finite) or cells.max(initial=ERROR) >= len(node.domain):
            raise InternalError(f"the table of {node.label} has codes outside its domain")
        sizes = tuple(self.sops[child].domain.size for child in node.inputs)
        shape = node.op.shape(sizes, self.options.max_seq_len)
        if cells.shape != shape:
            raise InternalError(f"the table of {node.label} has shape {cells.shape}, not {shape}")

    def _verify_selectors(self) -> None:
        known: set[int] = set()
        for selector in self.selectors.values():
            match selector:
                case CompositeNode(kind=kind, parts=parts):
                    if not known.issuperset(parts) or len(parts) != (1 if kind == "not" else 2):
                        raise InternalError(f"{selector.label} cannot combine the selectors {parts}")
                case SelectorNode(keys=keys, queries=queries, table=table):
                    shape = (self.sops[queries].domain.size, self.sops[keys].domain.size)
                    if table.shape != shape:
                        raise InternalError(f"the table of {selector.label} has shape {table.shape}, not {shape}")
            known.add(selector.id)

    def show(self) -> str:
        """One line per s-op: its operation and its values."""
        lines = [f"{node.label} = {describe(self, node)} : {self._held(node)}" for node in self.sops.values()]
        combined = [s for s in self.selectors.values() if isinstance(s, CompositeNode)]
        for part in dict.fromkeys(part for composite in combined for part in (*composite.parts, composite.id)):
            lines.append(f"selector {describe_selector(self, part)}")
        for name, output in self.outputs:
            lines.append(f"output {name}: {self.sops[output].label}")
        return "\n".join(lines)

    def _held(self, node: N) -> str:  # type: ignore[misc]  # read only
        return f"{node.domain}"


Tables = Tabulation[InferredNode]
"""Any stage, for code that reads only the tables."""


@dataclass(frozen=True)
class Stored:
    """The storage choices of the optimiser (`search/`); the encodings are in the s-ops.

    `split`: the selectors read by several narrow heads instead of one wide head (`splitting.py`). `sums`: the tables
    computed as weighted sums. `few_bits`: variables with few values may be stored in bits, too. `backups`: the s-ops
    that are computed twice (`lower/backups.py`); no pass chooses them.
    """

    split: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    few_bits: bool = False
    backups: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Program(Tabulation[SOpNode]):
    """A tabulated program with an encoding for every s-op."""

    stored: Stored
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[Diagnostic, ...] = ()
    """The assumptions about inputs under which the model is right."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """For each s-op removed by sharing (`share.py`), by label: the equal s-op that is kept."""
    bypassed: Mapping[str, str] = field(default_factory=dict)
    """For each s-op whose parts are compared by a selector in its place: that selector. Empty for a loaded program."""
    written: Tables | None = None
    """The program as it was written, before sharing (`as_written.py`); `None` for a loaded program."""

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """The program with only these s-ops and selectors, and only the choices for them."""
        split = tuple(number for number in self.stored.split if number in selectors)
        sums = tuple(number for number in self.stored.sums if number in sops)
        backups = tuple(number for number in self.stored.backups if number in sops)
        stored = replace(self.stored, split=split, sums=sums, backups=backups)
        return replace(super().only(sops, selectors), stored=stored)

    def verify(self) -> None:
        """Raise if an invariant is broken: order, table shapes, codes inside the domain, encodings possible."""
        super().verify()
        for node in self.sops.values():
            if node.encoding is Encoding.NUMERICAL and not node.domain.numeric:
                raise InternalError(f"{node.label} is numerical but takes the values {node.domain}")
            if node.encoding is Encoding.CATEGORICAL and not isinstance(node.domain, Finite):
                raise InternalError(f"{node.label} is categorical but its values are not listed")
        if not self.sops.keys() >= {*self.stored.sums, *self.stored.backups} or not self.selectors.keys() >= set(
            self.stored.split
        ):
            raise InternalError("a storage choice names an s-op or selector that is not part of the program")

    def show(self) -> str:
        """One line per s-op: its operation, its encoding and its values."""
        notes = [f"split {describe_selector(self, number)}" for number in self.stored.split]
        notes += [f"weighted sum {self.sops[number].label}" for number in self.stored.sums]
        notes += [f"backup of {self.sops[number].label}" for number in self.stored.backups]
        notes += ["bits for variables that are copied and compared"] * self.stored.few_bits
        notes += [f"warning {warning}" for warning in self.warnings]
        notes += [f"assumption {assumption.sentence}" for assumption in self.assumptions]
        return "\n".join([super().show(), *notes])

    def _held(self, node: SOpNode) -> str:
        return f"{node.encoding.value} {node.domain}"


def describe(program: Tables, node: InferredNode) -> str:
    """The operation of an s-op, in one phrase."""

    return node.op.phrase(_Described(program))


@dataclass(frozen=True)
class _Described:
    """The names used in the phrase of an operation: labels, and descriptions of selectors."""

    program: Tables

    def sop(self, number: int) -> str:
        return self.program.sops[number].label

    def selector(self, number: int) -> str:
        return describe_selector(self.program, number)

    def function(self, text: str) -> str:
        return text


def describe_selector(program: Tables, number: int) -> str:
    """A selector in one phrase: keys, queries, and how many keys a query may select."""
    selector = program.selectors[number]
    low, high = (selector.counts[0], selector.counts[-1]) if selector.counts else (0, 0)
    return f"{selector.label}({_compared(program, selector)}, selects {low}..{high})"


def _compared(program: Tables, selector: Selector) -> str:
    if isinstance(selector, SelectorNode):
        return f"keys {program.sops[selector.keys].label}, queries {program.sops[selector.queries].label}"
    labels = [program.selectors[part].label for part in selector.parts]
    return f"not {labels[0]}" if selector.kind == "not" else f" {selector.kind} ".join(labels)
