"""The program as data: every s-op with its domain, its encoding and its table. No user function is called from here on.

A `Typed` program is what the later steps translate, what the vectorised interpreter runs, and what a model is checked
against. Values are integer codes (places in a node's domain); `ERROR` marks a cell where the user's function raises,
`UNREACHED` a cell that no input leads to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tracr.errors import Diagnostic, InternalError
from tracr.ir.budget import VALUE
from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import ERROR, Op
from tracr.ir.options import Options
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode, parts_of
from tracr.rasp.annotations import Encoding

__all__ = [
    "Program",
    "SOpNode",
    "Stored",
]


@dataclass(frozen=True, eq=False)
class SOpNode:
    """An s-op: what it computes, the values it can take and how it is to be stored.

    `source` is the expression as text, `origin` where it was written (`file.py:12`).
    """

    id: int
    label: str
    source: str
    origin: str
    op: Op
    domain: Domain
    wish: Encoding | None
    encoding: Encoding

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The s-ops this one reads at its own position."""
        return self.op.inputs


@dataclass(frozen=True)
class Stored:
    """What the optimiser has chosen, besides the encodings, because it made the model smaller (`smallest.py`).

    `split` are the selectors that more and narrower heads read (`split.py`); `sums` the tables that are computed as
    weighted sums; with `few_bits`, bits are not for very many values only.
    """

    split: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    few_bits: bool = False


@dataclass(frozen=True, eq=False)
class Program:
    """All s-ops and selectors the outputs need, in topological order."""

    options: Options
    sops: dict[int, SOpNode]
    selectors: dict[int, Selector]
    outputs: tuple[tuple[str, int], ...]
    lengths: tuple[int, int]
    warnings: tuple[Diagnostic, ...] = ()
    same: Mapping[int, int] = field(default_factory=dict)
    """For each node of a program that is not yet shared, the first that computes the same."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """S-ops that are computed once with another (`share.py`), by label, and the one that is left."""
    bypassed: Mapping[str, str] = field(default_factory=dict)
    """S-ops whose parts a selector compares in their place (`splitting.py`), and that selector."""
    written: Program | None = None
    """The same before sharing, with selectors as they were written; a loaded program has none (`as_written.py`)."""
    absorbed: Mapping[str, str] = field(default_factory=dict)
    """S-ops that others depend on but do not read any more, and where the optimiser (`rewrite.py`) left them."""
    stored: Stored = Stored()
    assumptions: tuple[Diagnostic, ...] = ()
    """What had to be assumed of the inputs for the program to be compiled."""

    @property
    def nbytes(self) -> int:
        """About how much memory values and tables take."""
        domains = {id(node.domain): node.domain.size for node in self.sops.values()}
        tabulated = (*(node.op for node in self.sops.values()), *self.selectors.values())
        return VALUE * sum(domains.values()) + sum(one.nbytes for one in tabulated)

    def children(self, node: SOpNode) -> tuple[int, ...]:
        """Every s-op `node` depends on directly, through its selector too."""
        if not node.op.selectors:
            return node.inputs
        literals = (part for selector in node.op.selectors for part in self.literals(selector))
        compared = dict.fromkeys(side for part in literals for side in (part.keys, part.queries))
        return (*node.inputs, *compared, *node.op.attended)

    def parts(self, number: int) -> list[Selector]:
        """A selector and all it is made of, each once, what is read before its readers."""
        return parts_of(self.selectors, number)

    def literals(self, number: int) -> list[SelectorNode]:
        """The selectors that are not combinations which a selector is made of."""
        return [part for part in self.parts(number) if isinstance(part, SelectorNode)]

    def verify(self) -> None:
        """Raise if an invariant is broken: order, table shapes, codes inside the domain, encodings possible."""
        self._verify_selectors()
        seen: set[int] = set()
        for node in self.sops.values():
            if any(child not in seen for child in self.children(node)):
                raise InternalError(f"program node {node.label} stands before something it reads")
            seen.add(node.id)
            if node.encoding is Encoding.NUMERICAL and not node.domain.numeric:
                raise InternalError(f"{node.label} is numerical but takes the values {node.domain}")
            if node.encoding is Encoding.CATEGORICAL and not isinstance(node.domain, Finite):
                raise InternalError(f"{node.label} is categorical but its values are not listed")
            self._verify_table(node)

    def _verify_table(self, node: SOpNode) -> None:
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
        """One line per s-op: what it is, its values and its encoding."""
        lines = []
        for node in self.sops.values():
            what = describe(self, node)
            lines.append(f"{node.label} = {what} : {node.encoding.value} {node.domain}")
        combined = [s for s in self.selectors.values() if isinstance(s, CompositeNode)]
        for part in dict.fromkeys(part for composite in combined for part in (*composite.parts, composite.id)):
            lines.append(f"selector {describe_selector(self, part)}")
        for name, output in self.outputs:
            lines.append(f"output {name}: {self.sops[output].label}")
        lines += [f"warning {warning}" for warning in self.warnings]
        lines += [f"assumption {assumption.sentence}" for assumption in self.assumptions]
        return "\n".join(lines)


def describe(program: Program, node: SOpNode) -> str:
    """What an s-op computes, in one phrase."""

    return node.op.phrase(_Described(program))


@dataclass(frozen=True)
class _Described:
    """How an operation names what it reads, in a phrase."""

    program: Program

    def sop(self, number: int) -> str:
        return self.program.sops[number].label

    def selector(self, number: int) -> str:
        return describe_selector(self.program, number)

    def function(self, text: str) -> str:
        return text


def describe_selector(program: Program, number: int) -> str:
    """A selector in one phrase: keys, queries, and how many keys a query may select."""
    selector = program.selectors[number]
    low, high = (selector.counts[0], selector.counts[-1]) if selector.counts else (0, 0)
    return f"{selector.label}({_compared(program, selector)}, selects {low}..{high})"


def _compared(program: Program, selector: Selector) -> str:
    if isinstance(selector, SelectorNode):
        return f"keys {program.sops[selector.keys].label}, queries {program.sops[selector.queries].label}"
    labels = [program.selectors[part].label for part in selector.parts]
    return f"not {labels[0]}" if selector.kind == "not" else f" {selector.kind} ".join(labels)
