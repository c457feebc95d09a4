"""The operations of a program: each s-op computes one of these from the codes of other s-ops.

Values are integer codes (places in a node's domain). `ERROR` marks a table cell where the user's function raises,
`UNREACHED` a cell that no input reaches.

Each field of an operation has a role (`Role`). The roles determine which s-ops the operation reads, and how it is
renumbered, saved, loaded, compared and shown by the explorer. `kind` is its name in files; `phrase` and `text` describe
it for readers. `docs/extending.md` shows how to add an operation.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, Self, get_args, get_type_hints

from tracr.caching import cached_property
from tracr.errors import InternalError
from tracr.ir.domains import Codes, Domain, Finite
from tracr.values import Value, value_text

__all__ = [
    "ERROR",
    "KINDS",
    "PAIR",
    "UNREACHED",
    "Aggregation",
    "Attention",
    "Constant",
    "IndicesOp",
    "LengthOp",
    "Linear",
    "Lookup",
    "Names",
    "Op",
    "Operation",
    "PairLookup",
    "Positions",
    "Role",
    "SumLookup",
    "Table",
    "TokensOp",
    "Width",
    "formula",
]

ERROR = -1
UNREACHED = -2

PAIR = "pair of values"
"""The text of the function that makes the pairs of a product space; saved programs have it."""


def formula(function: str) -> str:
    """The text of a function as an expression in x and y, or as a name (`rasp/function_text.py`)."""
    return "(x, y)" if function == PAIR else function


class Role(enum.Enum):
    """What a field of an operation holds."""

    INPUT = "the number of an s-op, read at the own position"
    TERMS = "numbers of s-ops, read at the own position, each with a factor"
    ATTENDED = "the number of an s-op, read at the selected positions"
    SELECTOR = "the number of a selector"
    TABLE = "codes"
    POINTS = "the values of a sum"
    NUMBER = "a number"
    DEFAULT = "a value of the program"
    FUNCTION = "the text of a function"
    FLAG = "true or false, found by the compiler"


Input = Annotated[int, Role.INPUT]
Terms = Annotated[tuple[tuple[int, float], ...], Role.TERMS]
Attended = Annotated[int, Role.ATTENDED]
SelectorNumber = Annotated[int, Role.SELECTOR]
Cells = Annotated[Codes, Role.TABLE]
Points = Annotated[Finite, Role.POINTS]
Number = Annotated[float, Role.NUMBER]
Default = Annotated[Value, Role.DEFAULT]
FunctionText = Annotated[str, Role.FUNCTION]
Flag = Annotated[bool, Role.FLAG]


class Names(Protocol):
    """The names that a description uses for s-ops, selectors and functions."""

    def sop(self, number: int) -> str:
        """An s-op."""
        ...

    def selector(self, number: int) -> str:
        """A selector."""
        ...

    def function(self, text: str) -> str:
        """The function of this operation, whose text in the program is `text`."""
        ...


class _FieldNames(NamedTuple):
    """The fields of an operation by their roles."""

    inputs: tuple[str, ...]
    terms: tuple[str, ...]
    attended: tuple[str, ...]
    selectors: tuple[str, ...]
    tables: tuple[str, ...]


class Operation:
    """The base class of all operations."""

    kind: ClassVar[str]
    """The name of the operation in saved programs and in the explorer. It must never change."""

    @classmethod
    @functools.cache
    def roles(cls) -> Mapping[str, Role]:
        """The role of each field, in order."""
        hints, found = get_type_hints(cls, include_extras=True), {}
        for one in fields(cls):  # type: ignore[arg-type]
            role = next((extra for extra in get_args(hints[one.name]) if isinstance(extra, Role)), None)
            if role is None:
                raise InternalError(f"the field {one.name} of the operation {cls.__name__} has no role")
            found[one.name] = role
        return found

    @classmethod
    @functools.cache
    def _names(cls) -> _FieldNames:
        by_role: dict[Role, list[str]] = {role: [] for role in Role}
        for name, role in cls.roles().items():
            by_role[role].append(name)
        read = (Role.INPUT, Role.TERMS, Role.ATTENDED, Role.SELECTOR, Role.TABLE)
        return _FieldNames(*(tuple(by_role[role]) for role in read))

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The s-ops read at the own position."""
        names = self._names()
        terms = [number for name in names.terms for number, _ in getattr(self, name)]
        return (*[getattr(self, name) for name in names.inputs], *terms)

    @property
    def attended(self) -> tuple[int, ...]:
        """The s-ops read at the selected positions."""
        names = self._names().attended
        return tuple([getattr(self, name) for name in names]) if names else ()

    @property
    def selectors(self) -> tuple[int, ...]:
        """The selectors that say which positions are read."""
        names = self._names().selectors
        return tuple([getattr(self, name) for name in names]) if names else ()

    @property
    def cells(self) -> Codes | None:
        """The table of the operation, or `None`."""
        names = self._names().tables
        return getattr(self, names[0]) if names else None

    def renumbered(self, to: Callable[[int], int]) -> Self:
        """The operation with its s-ops and selectors renumbered; itself if no number changes."""
        changed: dict[str, Any] = {}
        for name, role in self.roles().items():
            now = getattr(self, name)
            if role in (Role.INPUT, Role.ATTENDED, Role.SELECTOR):
                changed[name] = to(now)
            elif role is Role.TERMS:
                changed[name] = tuple((to(number), factor) for number, factor in now)
        same = all(getattr(self, name) == new for name, new in changed.items())
        return self if same else replace(self, **changed)  # type: ignore[type-var]

    def shape(self, sizes: tuple[int, ...], positions: int) -> tuple[int, ...]:
        """The shape its table must have, for inputs with `sizes` values and a model with `positions` positions."""
        raise NotImplementedError(f"{type(self).__name__}.shape")

    @property
    def nbytes(self) -> int:
        """The memory its table takes."""
        cells = self.cells
        return 0 if cells is None else cells.nbytes

    def phrase(self, names: Names) -> str:
        """What it computes, in one phrase."""
        raise NotImplementedError(f"{type(self).__name__}.phrase")

    def text(self, names: Names, domain: Domain) -> str:
        """The operation as Python text, for an s-op with this domain."""
        raise NotImplementedError(f"{type(self).__name__}.text")


@dataclass(frozen=True, eq=False)
class TokensOp(Operation):
    """The input tokens."""

    kind = "tokens"

    def phrase(self, names: Names) -> str:
        return "input"

    def text(self, names: Names, domain: Domain) -> str:
        return "the input"


@dataclass(frozen=True, eq=False)
class IndicesOp(Operation):
    """The positions."""

    kind = "indices"

    def phrase(self, names: Names) -> str:
        return "input"

    def text(self, names: Names, domain: Domain) -> str:
        return "the positions"


@dataclass(frozen=True, eq=False)
class LengthOp(Operation):
    """The length of the input."""

    kind = "length"

    def phrase(self, names: Names) -> str:
        return "number of tokens"

    def text(self, names: Names, domain: Domain) -> str:
        return "the number of tokens"


@dataclass(frozen=True, eq=False)
class Constant(Operation):
    """One value everywhere: code 0."""

    kind = "constant"

    def phrase(self, names: Names) -> str:
        return "constant"

    def text(self, names: Names, domain: Domain) -> str:
        assert isinstance(domain, Finite)
        return repr(domain.values[0])


@dataclass(frozen=True, eq=False)
class Positions(Operation):
    """A code for each position."""

    kind = "positions"
    table: Cells

    def shape(self, sizes: tuple[int, ...], positions: int) -> tuple[int, ...]:
        return (positions,)

    def phrase(self, names: Names) -> str:
        return "constant"

    def text(self, names: Names, domain: Domain) -> str:
        return "one value for each position"


@dataclass(frozen=True, eq=False)
class Lookup(Operation):
    """A function of one s-op: `table[code]`; `function` is its text."""

    kind = "lookup"
    inner: Input
    table: Cells
    function: FunctionText

    def shape(self, sizes: tuple[int, ...], positions: int) -> tuple[int, ...]:
        return sizes

    def phrase(self, names: Names) -> str:
        return f"table of {names.sop(self.inner)} ({self.function})"

    def text(self, names: Names, domain: Domain) -> str:
        return f"Map({names.function(self.function)}, {names.sop(self.inner)})"


@dataclass(frozen=True, eq=False)
class PairLookup(Operation):
    """A function of two s-ops: `table[first code, second code]`; `function` is its text."""

    kind = "pair_lookup"
    fst: Input
    snd: Input
    table: Cells
    function: FunctionText

    def shape(self, sizes: tuple[int, ...], positions: int) -> tuple[int, ...]:
        return sizes

    def phrase(self, names: Names) -> str:
        return f"table of {names.sop(self.fst)} and {names.sop(self.snd)} ({self.function})"

    def text(self, names: Names, domain: Domain) -> str:
        return f"SequenceMap({names.function(self.function)}, {names.sop(self.fst)}, {names.sop(self.snd)})"


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """`constant` plus a weighted sum of s-ops that hold numbers; `None` if any of them is `None`."""

    kind = "linear"
    terms: Terms
    constant: Number

    def phrase(self, names: Names) -> str:
        weighted = _weighted(self.terms, names)
        return f"{weighted} + {self.constant:g}" if self.constant else weighted

    def text(self, names: Names, domain: Domain) -> str:
        return _sum([(factor, names.sop(term)) for term, factor in self.terms], self.constant)


@dataclass(frozen=True, eq=False)
class SumLookup(Operation):
    """A function of a weighted sum of s-ops that hold numbers: `table[i]` where the sum is `points.values[i]`.

    The optimiser makes it from other tables (`functions_of_sums.py`); `function` is their text.
    """

    kind = "sum_lookup"
    terms: Terms
    points: Points
    table: Cells
    function: FunctionText

    def shape(self, sizes: tuple[int, ...], positions: int) -> tuple[int, ...]:
        return (len(self.points),)

    def phrase(self, names: Names) -> str:
        return f"function of {_weighted(self.terms, names)} ({self.function})"

    def text(self, names: Names, domain: Domain) -> str:
        return f"Map({self.function}, {_sum([(factor, names.sop(term)) for term, factor in self.terms], 0)})"


@dataclass(frozen=True, eq=False)
class Aggregation(Operation):
    """The mean of the selected values, or `default`.

    `copies` is true if all selected values are equal (mostly there is only one): then no average is needed. `assumed`
    is true if the compiler could not prove that, but the interpreter would raise otherwise (strings have no mean).
    """

    kind = "aggregation"
    selector: SelectorNumber
    value: Attended
    default: Default
    copies: Flag
    assumed: Flag

    def phrase(self, names: Names) -> str:
        verb = "copy" if self.copies else "mean"
        assumed = " (assuming one)" if self.assumed else ""
        where = names.selector(self.selector)
        return f"{verb} of {names.sop(self.value)} where {where}{assumed}, default {self.default!r}"

    def text(self, names: Names, domain: Domain) -> str:
        rest = "" if self.default is None else f", default={value_text(self.default)}"
        return f"Aggregate({names.selector(self.selector)}, {names.sop(self.value)}{rest})"


@dataclass(frozen=True, eq=False)
class Width(Operation):
    """How many keys are selected."""

    kind = "width"
    selector: SelectorNumber

    def phrase(self, names: Names) -> str:
        return f"number of keys where {names.selector(self.selector)}"

    def text(self, names: Names, domain: Domain) -> str:
        return f"SelectorWidth({names.selector(self.selector)})"


Table = Lookup | PairLookup | SumLookup
Attention = Aggregation | Width
Op = TokensOp | IndicesOp | LengthOp | Constant | Positions | Table | Linear | Attention

KINDS: Mapping[str, type[Op]] = {op.kind: op for op in get_args(Op)}
"""Every operation by its name in saved programs."""


def _weighted(terms: Terms, names: Names) -> str:
    return " + ".join(f"{factor:g}*{names.sop(term)}" for term, factor in terms)


def _sum(terms: list[tuple[float, str]], constant: float) -> str:
    """A weighted sum as text.

    >>> _sum([(1, "a"), (-1, "b"), (0.5, "c")], -2)
    'a - b + 0.5 * c - 2'
    """
    parts = [(factor < 0, label if abs(factor) == 1 else f"{abs(factor):g} * {label}") for factor, label in terms]
    parts += [(constant < 0, f"{abs(constant):g}")] if constant or not terms else []
    text = " ".join(f"{'-' if minus else '+'} {part}" for minus, part in parts)
    return text.removeprefix("+ ").replace("- ", "-", 1) if text.startswith("- ") else text.removeprefix("+ ")
