"""The program as data: every s-op with its domain and its table. No user function is called from here on.

`Tabulation` is what every stage of the program has. `Inferred` (`inferred.py`) is what the frontend makes: it knows
which s-ops compute the same, and nothing of encodings. `Program` has an encoding for every s-op: later steps lower it,
the vectorised interpreter runs it, and models are checked against it. Values are integer codes (places in a node's
domain); `ERROR` marks a cell where the user's function raises, `UNREACHED` a cell that no input leads to.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Self, TypeVar

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
    """An s-op: what it computes, the values it can take and the encoding that was asked for, if any.

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
    """An s-op of a program whose encodings are chosen: how it is to be stored, too."""

    encoding: Encoding


N = TypeVar("N", bound=InferredNode, covariant=True)


@dataclass(frozen=True, eq=False)
class Tabulation(Generic[N]):
    """All s-ops and selectors the outputs need, in topological order."""

    options: Options
    sops: dict[int, N]
    selectors: dict[int, Selector]
    outputs: tuple[tuple[str, int], ...]
    lengths: tuple[int, int]

    @cached_property
    def nbytes(self) -> int:
        """About how much memory values and tables take."""
        domains = {id(node.domain): node.domain.size for node in self.sops.values()}
        tabulated = (*(node.op for node in self.sops.values()), *self.selectors.values())
        return VALUE * sum(domains.values()) + sum(one.nbytes for one in tabulated)

    def children(self, node: InferredNode) -> tuple[int, ...]:
        """Every s-op `node` depends on directly, through its selector too."""
        selectors = node.op.selectors
        if not selectors:
            return node.inputs
        literals = (part for selector in selectors for part in self.literals(selector))
        compared = dict.fromkeys(side for part in literals for side in (part.keys, part.queries))
        return (*node.inputs, *compared, *node.op.attended)

    def parts(self, number: int) -> list[Selector]:
        """A selector and all it is made of, each once, what is read before its readers."""
        return parts_of(self.selectors, number)

    def literals(self, number: int) -> list[SelectorNode]:
        """The selectors that are not combinations which a selector is made of."""
        return [part for part in self.parts(number) if isinstance(part, SelectorNode)]

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """Without the others."""
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
                raise InternalError(f"program node {node.label} stands before something it reads")
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
            raise InternalError(f"the table of {node.label} leaves its domain")
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
        """One line per s-op: what it is, and its values."""
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
"""Any of them, for readers of tables alone."""


@dataclass(frozen=True)
class Stored:
    """What the optimiser has chosen, besides the encodings, because it made the model smaller (`search/`).

    `split` are the selectors that more and narrower heads read (`splitting.py`); `sums` the tables that are computed as
    weighted sums; with `few_bits`, bits are not for very many values only.
    """

    split: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    few_bits: bool = False


@dataclass(frozen=True, eq=False)
class Program(Tabulation[SOpNode]):
    """A tabulated program whose encodings are chosen."""

    stored: Stored
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[Diagnostic, ...] = ()
    """What had to be assumed of the inputs for the program to be compiled."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """S-ops that are computed once with another (`share.py`), by label, and the one that is left."""
    bypassed: Mapping[str, str] = field(default_factory=dict)
    """S-ops whose parts a selector compares in their place, and that selector; unknown of a loaded program."""
    written: Tables | None = None
    """The program as it was written, before sharing (`as_written.py`); a loaded program has none."""

    def only(self, sops: Container[int], selectors: Container[int]) -> Self:
        """Without the others, and without the choices for them."""
        split = tuple(number for number in self.stored.split if number in selectors)
        sums = tuple(number for number in self.stored.sums if number in sops)
        return replace(super().only(sops, selectors), stored=replace(self.stored, split=split, sums=sums))

    def verify(self) -> None:
        """Raise if an invariant is broken: order, table shapes, codes inside the domain, encodings possible."""
        super().verify()
        for node in self.sops.values():
            if node.encoding is Encoding.NUMERICAL and not node.domain.numeric:
                raise InternalError(f"{node.label} is numerical but takes the values {node.domain}")
            if node.encoding is Encoding.CATEGORICAL and not isinstance(node.domain, Finite):
                raise InternalError(f"{node.label} is categorical but its values are not listed")
        if not self.sops.keys() >= set(self.stored.sums) or not self.selectors.keys() >= set(self.stored.split):
            raise InternalError("what is stored in another way is no part of the program")

    def show(self) -> str:
        """One line per s-op: what it is, its values and its encoding."""
        notes = [f"split {describe_selector(self, number)}" for number in self.stored.split]
        notes += [f"weighted sum {self.sops[number].label}" for number in self.stored.sums]
        notes += ["bits for what is copied and compared"] * self.stored.few_bits
        notes += [f"warning {warning}" for warning in self.warnings]
        notes += [f"assumption {assumption.sentence}" for assumption in self.assumptions]
        return "\n".join([super().show(), *notes])

    def _held(self, node: SOpNode) -> str:
        return f"{node.encoding.value} {node.domain}"


def describe(program: Tables, node: InferredNode) -> str:
    """What an s-op computes, in one phrase."""

    return node.op.phrase(_Described(program))


@dataclass(frozen=True)
class _Described:
    """How an operation names what it reads, in a phrase."""

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
