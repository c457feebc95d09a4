"""The syntax tree: what was written, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.text.places import Span

__all__ = [
    "Assign",
    "Binary",
    "Builtin",
    "Call",
    "Comprehension",
    "Definition",
    "Dict",
    "Draw",
    "Empty",
    "Examples",
    "Expression",
    "Filtered",
    "FullDisplay",
    "Index",
    "Leave",
    "List",
    "Literal",
    "Load",
    "Loop",
    "Name",
    "Node",
    "Paren",
    "SelectCall",
    "SetExample",
    "ShowExample",
    "Statement",
    "Ternary",
    "Unary",
]


@dataclass(frozen=True)
class Literal:
    """A number or a string."""

    span: Span
    value: int | float | str
    text: str


@dataclass(frozen=True)
class Name:
    """A name that is read."""

    span: Span
    name: str


@dataclass(frozen=True)
class Paren:
    """An expression in parentheses."""

    span: Span
    inner: Node


@dataclass(frozen=True)
class List:
    """`[a, b]`."""

    span: Span
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Dict:
    """`{k: v, ...}`."""

    span: Span
    pairs: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True)
class Comprehension:
    """`[value for names in iterable if condition]`, or with a key, `{key: value for ...}`."""

    span: Span
    key: Node | None
    value: Node
    names: tuple[str, ...]
    iterable: Node
    condition: Node | None


@dataclass(frozen=True)
class Unary:
    """`not`, `-`, `+`, `round` or `indicator` before an operand."""

    span: Span
    symbol: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """An operator between two operands, `in` included."""

    span: Span
    symbol: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Ternary:
    """`then if condition else otherwise`."""

    span: Span
    then: Node
    condition: Node
    otherwise: Node


@dataclass(frozen=True)
class Filtered:
    """`value if condition` without an else: the end of a comprehension, and an error elsewhere."""

    span: Span
    value: Node
    condition: Node


@dataclass(frozen=True)
class Index:
    """`target[index]`."""

    span: Span
    target: Node
    index: Node


@dataclass(frozen=True)
class Call:
    """`target(arguments)`."""

    span: Span
    target: Node
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class SelectCall:
    """`select(keys, queries, comparison)`."""

    span: Span
    keys: Node
    queries: Node
    comparison: str


@dataclass(frozen=True)
class Builtin:
    """`aggregate(...)`, `range(...)`, `zip(...)` or `len(...)`."""

    span: Span
    name: str
    arguments: tuple[Node, ...]


Node = (
    Literal
    | Name
    | Paren
    | List
    | Dict
    | Comprehension
    | Unary
    | Binary
    | Ternary
    | Filtered
    | Index
    | Call
    | SelectCall
    | Builtin
)


@dataclass(frozen=True)
class Expression:
    """`value;`"""

    span: Span
    value: Node


@dataclass(frozen=True)
class Assign:
    """`a, b = x, y;`, or with a symbol, `a += x;`."""

    span: Span
    names: tuple[str, ...]
    values: tuple[Node, ...]
    symbol: str = ""


@dataclass(frozen=True)
class Load:
    """`load "file";`"""

    span: Span
    path: str


@dataclass(frozen=True)
class Draw:
    """`draw(value, input);`"""

    span: Span
    value: Node
    given: Node | None


@dataclass(frozen=True)
class Definition:
    """`def name(parameters) { body return results; }`"""

    span: Span
    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    results: tuple[Node, ...]
    head: Span


@dataclass(frozen=True)
class Loop:
    """`for names in iterable { body }`"""

    span: Span
    names: tuple[str, ...]
    iterable: Node
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class SetExample:
    """`set example value`; `kind` is `s-op`, `selector`, or empty for both, here and below."""

    span: Span
    kind: str
    value: Node


@dataclass(frozen=True)
class ShowExample:
    """`show example`."""

    span: Span
    kind: str


@dataclass(frozen=True)
class Examples:
    """`examples on`."""

    span: Span
    kind: str
    on: bool


@dataclass(frozen=True)
class FullDisplay:
    """`full seq display on`."""

    span: Span
    on: bool


@dataclass(frozen=True)
class Leave:
    """`exit` or `quit`."""

    span: Span


@dataclass(frozen=True)
class Empty:
    """A `;` by itself."""

    span: Span


Statement = (
    Expression
    | Assign
    | Load
    | Draw
    | Definition
    | Loop
    | SetExample
    | ShowExample
    | Examples
    | FullDisplay
    | Leave
    | Empty
)
