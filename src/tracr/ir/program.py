"""The program as data: every s-op with its domain, its encoding and its table. No user function is called from here on.

A `Typed` program is what the later steps translate, what the vectorised interpreter runs, and what a model is checked
against. Values are integer codes (places in a node's domain); `ERROR` marks a cell where the user's function raises,
`UNREACHED` a cell that no input leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracr.errors import Diagnostic, InternalError
from tracr.ir.budget import VALUE
from tracr.ir.domains import Codes, Domain, Finite
from tracr.ir.options import Options
from tracr.rasp.annotations import Encoding
from tracr.values import Value

__all__ = [
    "ERROR",
    "PAIR",
    "UNREACHED",
    "Aggregation",
    "Attention",
    "CompositeNode",
    "Constant",
    "IndicesOp",
    "Kind",
    "LengthOp",
    "Linear",
    "Lookup",
    "Op",
    "PairLookup",
    "Positions",
    "Program",
    "SOpNode",
    "Selector",
    "SelectorNode",
    "Stored",
    "SumLookup",
    "Table",
    "TokensOp",
    "Width",
    "parts_of",
    "table_bytes",
]

ERROR = -1
UNREACHED = -2

Kind = Literal["and", "or", "not"]

PAIR = "pair of values"
"""The function of an s-op that a product space is made of."""


@dataclass(frozen=True, eq=False)
class TokensOp:
    """The input tokens."""


@dataclass(frozen=True, eq=False)
class IndicesOp:
    """The positions."""


@dataclass(frozen=True, eq=False)
class LengthOp:
    """The length of the input."""


@dataclass(frozen=True, eq=False)
class Constant:
    """One value everywhere: code 0."""


@dataclass(frozen=True, eq=False)
class Positions:
    """A code for each position."""

    table: Codes


@dataclass(frozen=True, eq=False)
class Lookup:
    """A function of one s-op: `table[code]`; `function` is its text."""

    inner: int
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class PairLookup:
    """A function of two s-ops: `table[first code, second code]`; `function` is its text."""

    fst: int
    snd: int
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class Linear:
    """`constant` plus a weighted sum of s-ops that hold numbers; `None` if any of them is."""

    terms: tuple[tuple[int, float], ...]
    constant: float


@dataclass(frozen=True, eq=False)
class SumLookup:
    """A function of a weighted sum of s-ops that hold numbers: `table[i]` where the sum is `points.values[i]`.

    The optimiser makes it of other tables (`sums.py`); `function` is their text.
    """

    terms: tuple[tuple[int, float], ...]
    points: Finite
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class Aggregation:
    """The mean of the selected values, or `default`.

    `copies` is true when all selected values are equal (one, mostly), so that nothing is ever averaged; `assumed` when
    that could not be proved but the interpreter would raise otherwise (several strings have no mean).
    """

    selector: int
    value: int
    default: Value
    copies: bool
    assumed: bool


@dataclass(frozen=True, eq=False)
class Width:
    """How many keys are selected."""

    selector: int


Table = Lookup | PairLookup | SumLookup
Attention = Aggregation | Width
Op = TokensOp | IndicesOp | LengthOp | Constant | Positions | Table | Linear | Attention


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
        match self.op:
            case Lookup(inner=inner):
                return (inner,)
            case PairLookup(fst=fst, snd=snd):
                return (fst, snd)
            case Linear(terms=terms) | SumLookup(terms=terms):
                return tuple(node for node, _ in terms)
            case _:
                return ()


@dataclass(frozen=True, eq=False)
class Selects:
    """What every selector has; `counts` are the widths that can occur."""

    id: int
    label: str
    source: str
    origin: str
    counts: tuple[int, ...]

    @property
    def always(self) -> bool:
        """Whether every query selects something."""
        return bool(self.counts) and self.counts[0] > 0

    @property
    def at_most_one(self) -> bool:
        """Whether no query selects two keys."""
        return not self.counts or self.counts[-1] <= 1


@dataclass(frozen=True, eq=False)
class SelectorNode(Selects):
    """A selector: `table[query code, key code]` is 1, 0 or ERROR."""

    keys: int
    queries: int
    table: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class CompositeNode(Selects):
    """A boolean combination of selectors over different s-ops; it raises where any of them does."""

    kind: Kind
    parts: tuple[int, ...]

    def combined(self, sides: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """What it selects, from what its parts do."""
        match self.kind:
            case "not":
                return ~sides[0]
            case "and":
                return sides[0] & sides[1]
            case "or":
                return sides[0] | sides[1]


Selector = SelectorNode | CompositeNode


def table_bytes(op: Op | Selector) -> int:
    """How many bytes the table of an operation, or a selector, takes."""
    table = getattr(op, "table", None)
    return 0 if table is None else int(table.nbytes)


def parts_of(selectors: Mapping[int, Selector], number: int) -> list[Selector]:
    """A selector and all it is made of, each once, what is combined before what combines it."""
    if isinstance(selectors[number], SelectorNode):
        return [selectors[number]]
    found: dict[int, Selector] = {}
    stack = [number]
    while stack:
        selector = selectors[stack[-1]]
        inner = selector.parts if isinstance(selector, CompositeNode) else ()
        waiting = [part for part in inner if part not in found]
        if waiting:
            stack.extend(waiting)
        else:
            found[stack.pop()] = selector
    return list(found.values())


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
        return VALUE * sum(domains.values()) + sum(map(table_bytes, tabulated))

    def children(self, node: SOpNode) -> tuple[int, ...]:
        """Every s-op `node` depends on directly, through its selector too."""
        if isinstance(node.op, Attention):
            compared = (side for part in self.literals(node.op.selector) for side in (part.keys, part.queries))
            value = (node.op.value,) if isinstance(node.op, Aggregation) else ()
            return (*dict.fromkeys(compared), *value)
        return node.inputs

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
            if isinstance(node.op, Table | Positions):
                if not isinstance(node.domain, Finite) or node.op.table.max(initial=ERROR) >= len(node.domain):
                    raise InternalError(f"the table of {node.label} leaves its domain")
                shape = tuple(self.sops[child].domain.size for child in node.inputs) or (self.options.max_seq_len,)
                if isinstance(node.op, SumLookup):
                    shape = (len(node.op.points),)
                if node.op.table.shape != shape:
                    raise InternalError(f"the table of {node.label} has shape {node.op.table.shape}, not {shape}")

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

    def label(number: int) -> str:
        return program.sops[number].label

    match node.op:
        case Lookup(inner=inner, function=function):
            return f"table of {label(inner)} ({function})"
        case PairLookup(fst=fst, snd=snd, function=function):
            return f"table of {label(fst)} and {label(snd)} ({function})"
        case SumLookup(terms=terms, function=function):
            return f"function of {_weighted(program, terms)} ({function})"
        case Linear(terms=terms, constant=constant):
            return f"{_weighted(program, terms)} + {constant:g}" if constant else _weighted(program, terms)
        case Aggregation(selector=selector, value=value, copies=copies, default=default):
            verb = "copy" if copies else "mean"
            assumed = " (assuming one)" if node.op.assumed else ""
            return (
                f"{verb} of {label(value)} where {describe_selector(program, selector)}{assumed}, default {default!r}"
            )
        case Width(selector=selector):
            return f"number of keys where {describe_selector(program, selector)}"
        case Constant() | Positions():
            return "constant"
        case LengthOp():
            return "number of tokens"
        case _:
            return "input"


def _weighted(program: Program, terms: Sequence[tuple[int, float]]) -> str:
    return " + ".join(f"{factor:g}*{program.sops[term].label}" for term, factor in terms)


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
