"""The expressions of RASP: s-ops (sequences of values) and selectors (which key each query looks at).

An expression is immutable and hashes by identity, although `==` on s-ops builds a new expression. Building one
computes nothing; `expr(xs)` runs the interpreter.

>>> from tracr.rasp import rasp
>>> is_x = (rasp.tokens == "x").named("is_x")
>>> prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
>>> frac_prevs = rasp.Aggregate(prevs, is_x)
>>> frac_prevs("xacx")
[True, 0.5, 0.3333333333333333, 0.5]
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from tracr.errors import ExpressionError
from tracr.rasp.annotations import NAME, Annotations
from tracr.rasp.functions import (
    BinaryOperator,
    Composition,
    ConstantOperator,
    Function,
    UnaryOperator,
    function_name,
)
from tracr.rasp.values import Program, Value, as_value, is_number

__all__ = [
    "Aggregate",
    "ConstantSOp",
    "ConstantSelector",
    "Full",
    "Indices",
    "Length",
    "LinearSequenceMap",
    "Map",
    "RASPExpr",
    "SOp",
    "Select",
    "Selector",
    "SelectorAnd",
    "SelectorNot",
    "SelectorOr",
    "SelectorWidth",
    "SequenceMap",
    "Tokens",
    "indices",
    "length",
    "tokens",
]


class RASPExpr(Program, abc.ABC):
    """Base of s-ops and selectors."""

    __slots__ = ("__weakref__", "_explicit", "children")
    default_name: ClassVar[str] = "expr"

    _explicit: Mapping[str, Any]
    children: tuple[RASPExpr, ...]

    def _set(self, *children: RASPExpr, **fields: object) -> None:
        """Fill the fields, once, at construction."""
        for name, value in {"_explicit": {}, "children": children, **fields}.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} is immutable; build a new expression, or use .named(...) / .annotated(...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} is immutable")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __call__(self, xs: Sequence[Value]) -> Any:
        """Evaluate on the input `xs` with the reference interpreter (bidirectional)."""
        from tracr.rasp.interpreter import evaluate

        return evaluate(self, xs)

    @property
    def annotations(self) -> Annotations:
        """What was annotated, with defaults for the rest."""
        return Annotations(self, self._explicit)

    @property
    def name(self) -> str:
        """The name given with `named`, else one for the kind of expression."""
        return str(self.annotations[NAME])

    @property
    def label(self) -> str:
        """The name; the compiler numbers labels that occur twice."""
        return self.name

    def copy(self) -> Self:
        """Another expression that means the same."""
        return self.annotated()

    def named(self, name: str) -> Self:
        """A copy called `name`."""
        return self.annotated(**{NAME: name})

    def annotated(self, **annotations: object) -> Self:
        """A copy with these annotations added."""
        twin = object.__new__(type(self))
        for cls in type(self).__mro__:
            for slot in getattr(cls, "__slots__", ()):
                if not slot.startswith("__"):
                    object.__setattr__(twin, slot, getattr(self, slot))
        object.__setattr__(twin, "_explicit", Annotations(self, {**self._explicit, **annotations}).explicit)
        return twin

    def _details(self) -> list[str]:
        """What stands between the parentheses of `repr`, besides the children."""
        return []

    def __repr__(self) -> str:
        inner = [*self._details(), *(child.name for child in self.children)]
        text = f"{type(self).__name__}({', '.join(inner)})" if inner else self.name
        given = self._explicit.get(NAME)
        return f"{text}.named({given!r})" if given is not None and inner else text


def _checked(expr: object, kind: type[RASPExpr], role: str, owner: str) -> Any:
    if isinstance(expr, kind):
        return expr
    wanted = "an s-op" if kind is SOp else "a selector"
    hint = "wrap a constant as rasp.Full(value)" if kind is SOp else "build one with rasp.Select(keys, queries, pred)"
    if isinstance(expr, RASPExpr):
        hint = (
            "rasp.SelectorWidth(selector) or rasp.Aggregate(selector, sop) turns a selector into an s-op"
            if kind is SOp
            else "rasp.Select(keys, queries, predicate) turns s-ops into a selector"
        )
    raise ExpressionError(f"{role} of {owner} must be {wanted}, not {expr!r}", hint=hint)


def _items(value: Any, owner: str) -> list[Any]:
    try:
        return list(value)
    except TypeError:
        raise ExpressionError(f"{owner} needs a list of values, not {value!r}") from None


def _function(f: object, owner: str) -> Function:
    if not callable(f):
        raise ExpressionError(f"the function of {owner} must be callable, not {f!r}", hint="pass a lambda")
    return f


class SOp(RASPExpr):
    """A sequence operation: from an input to a sequence of values of the same length."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__: ClassVar[None] = None  # numpy leaves `scalar < sop` to us instead of looping over it

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"{self!r} has no truth value: it is a program, not a result",
            hint="combine s-ops with & | ~ instead of and/or/not/in, and write (0 < x) & (x < 5) for 0 < x < 5",
        )

    def _with(self, symbol: str, other: object, *, reflected: bool = False) -> SOp:
        if isinstance(other, SOp):
            return SequenceMap(BinaryOperator(symbol), self, other)
        if isinstance(other, RASPExpr):
            raise ExpressionError(f"{symbol} between the s-op {self!r} and the selector {other!r} has no meaning")
        return Map(ConstantOperator(symbol, as_value(other, where="a constant in an expression"), reflected), self)

    def __lt__(self, other: object) -> SOp:
        return self._with("<", other)

    def __le__(self, other: object) -> SOp:
        return self._with("<=", other)

    def __eq__(self, other: object) -> SOp:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> SOp:  # type: ignore[override]
        return self._with("!=", other)

    def __gt__(self, other: object) -> SOp:
        return self._with(">", other)

    def __ge__(self, other: object) -> SOp:
        return self._with(">=", other)

    def __add__(self, other: object) -> SOp:
        return self._with("+", other)

    def __radd__(self, other: object) -> SOp:
        return self._with("+", other, reflected=True)

    def __sub__(self, other: object) -> SOp:
        return self._with("-", other)

    def __rsub__(self, other: object) -> SOp:
        return self._with("-", other, reflected=True)

    def __mul__(self, other: object) -> SOp:
        return self._with("*", other)

    def __rmul__(self, other: object) -> SOp:
        return self._with("*", other, reflected=True)

    def __truediv__(self, other: object) -> SOp:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> SOp:
        return self._with("/", other, reflected=True)

    def __floordiv__(self, other: object) -> SOp:
        return self._with("//", other)

    def __rfloordiv__(self, other: object) -> SOp:
        return self._with("//", other, reflected=True)

    def __mod__(self, other: object) -> SOp:
        return self._with("%", other)

    def __rmod__(self, other: object) -> SOp:
        return self._with("%", other, reflected=True)

    def __pow__(self, other: object) -> SOp:
        return self._with("**", other)

    def __rpow__(self, other: object) -> SOp:
        return self._with("**", other, reflected=True)

    def __and__(self, other: object) -> SOp:
        return self._with("and", other)

    def __rand__(self, other: object) -> SOp:
        return self._with("and", other, reflected=True)

    def __or__(self, other: object) -> SOp:
        return self._with("or", other)

    def __ror__(self, other: object) -> SOp:
        return self._with("or", other, reflected=True)

    def __invert__(self) -> SOp:
        return Map(UnaryOperator("not"), self)

    def __neg__(self) -> SOp:
        return Map(UnaryOperator("neg"), self)


class Tokens(SOp):
    """The input itself."""

    __slots__ = ()
    default_name = "tokens"

    def __init__(self) -> None:
        self._set()


class Indices(SOp):
    """The positions 0, 1, 2, ..."""

    __slots__ = ()
    default_name = "indices"

    def __init__(self) -> None:
        self._set()


class Length(SOp):
    """The length of the input, at every position."""

    __slots__ = ()
    default_name = "length"

    def __init__(self) -> None:
        self._set()


class Full(SOp):
    """The same value at every position.

    >>> Full(7)("ab")
    [7, 7]
    """

    __slots__ = ("fill",)
    default_name = "full"
    fill: Value

    def __init__(self, fill: Value) -> None:
        self._set(fill=as_value(fill, where="the fill of Full"))

    def _details(self) -> list[str]:
        return [repr(self.fill)]


class ConstantSOp(SOp):
    """Fixed values, for inputs of exactly their length (or, with `check_length=False`, of at most it)."""

    __slots__ = ("check_length", "value")
    default_name = "constant_sop"
    value: tuple[Value, ...]
    check_length: bool

    def __init__(self, value: Sequence[Value], check_length: bool = True) -> None:
        values = tuple(as_value(v, where="a value of ConstantSOp") for v in _items(value, "ConstantSOp"))
        self._set(value=values, check_length=check_length)

    def _details(self) -> list[str]:
        return [repr(list(self.value))]


class Map(SOp):
    """`f` of every value; `None` stays `None`. A Map of a Map fuses into one when `simplify`.

    >>> Map(lambda x: x.upper(), tokens)("ab")
    ['A', 'B']
    """

    __slots__ = ("f", "inner")
    default_name = "map"
    f: Function
    inner: SOp

    def __init__(self, f: Callable[[Any], Any], inner: SOp, simplify: bool = True) -> None:
        inner = _checked(inner, SOp, "the input", "Map")
        function = _function(f, "Map")
        if simplify and isinstance(inner, Map):
            function, inner = Composition(inner.f, function), inner.inner
        self._set(inner, f=function, inner=inner)

    def _details(self) -> list[str]:
        return [function_name(self.f)]


class SequenceMap(SOp):
    """`f` of the values of two s-ops at the same position; `None` if either is.

    >>> SequenceMap(lambda x, y: x * y, indices, length)("abc")
    [0, 3, 6]
    """

    __slots__ = ("f", "fst", "snd")
    default_name = "sequence_map"
    f: Function
    fst: SOp
    snd: SOp

    def __init__(self, f: Callable[[Any, Any], Any], fst: SOp, snd: SOp) -> None:
        fst = _checked(fst, SOp, "the first input", type(self).__name__)
        snd = _checked(snd, SOp, "the second input", type(self).__name__)
        self._set(fst, snd, f=_function(f, "SequenceMap"), fst=fst, snd=snd)

    def _details(self) -> list[str]:
        return [function_name(self.f)]


class LinearSequenceMap(SequenceMap):
    """`fst_fac * fst + snd_fac * snd`, elementwise.

    >>> LinearSequenceMap(indices, length, 2, -1)("abc")
    [-3, -1, 1]
    """

    __slots__ = ("fst_fac", "snd_fac")
    default_name = "linear_sequence_map"
    fst_fac: float
    snd_fac: float

    def __init__(self, fst: SOp, snd: SOp, fst_fac: float, snd_fac: float) -> None:
        facs = [as_value(fac, where="a factor of LinearSequenceMap") for fac in (fst_fac, snd_fac)]
        if not all(is_number(fac) for fac in facs):
            raise ExpressionError(f"the factors of LinearSequenceMap must be numbers, not {fst_fac!r} and {snd_fac!r}")
        first, second = facs
        super().__init__(lambda x, y: first * x + second * y, fst, snd)
        object.__setattr__(self, "fst_fac", first)
        object.__setattr__(self, "snd_fac", second)

    def _details(self) -> list[str]:
        return [f"{self.fst_fac!r} x + {self.snd_fac!r} y"]


class Selector(RASPExpr):
    """For every query position, the set of key positions it looks at."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ExpressionError(f"{self!r} has no truth value", hint="combine selectors with & | ~")

    def __and__(self, other: Selector) -> Selector:
        return SelectorAnd(self, other)

    def __or__(self, other: Selector) -> Selector:
        return SelectorOr(self, other)

    def __invert__(self) -> Selector:
        return SelectorNot(self)


def _as_sop(value: object, role: str) -> SOp:
    """Keys and queries may be plain constants: they stand for `Full(value)`."""
    if value is None or isinstance(value, str | bytes | int | float | tuple | frozenset | np.generic):
        return Full(value)
    sop: SOp = _checked(value, SOp, role, "Select")
    return sop


class Select(Selector):
    """Position `key` is selected by `query` if `predicate(keys[key], queries[query])`.

    >>> Select(indices, indices, lambda key, query: key < query)("ab")
    [[False, False], [True, False]]
    """

    __slots__ = ("keys", "predicate", "queries")
    default_name = "select"
    keys: SOp
    queries: SOp
    predicate: Function

    def __init__(self, keys: SOp | Value, queries: SOp | Value, predicate: Callable[[Any, Any], Any]) -> None:
        keys, queries = _as_sop(keys, "the keys"), _as_sop(queries, "the queries")
        self._set(keys, queries, keys=keys, queries=queries, predicate=_function(predicate, "Select"))

    def _details(self) -> list[str]:
        return [function_name(self.predicate)]


class ConstantSelector(Selector):
    """A fixed matrix, row = query and column = key, for inputs of exactly its size."""

    __slots__ = ("check_length", "value")
    default_name = "constant_selector"
    value: tuple[tuple[bool, ...], ...]
    check_length: bool

    def __init__(self, value: Sequence[Sequence[bool]], check_length: bool = True) -> None:
        owner = "ConstantSelector"
        rows = tuple(tuple(bool(cell) for cell in _items(row, owner)) for row in _items(value, owner))
        if any(len(row) != len(rows) for row in rows):
            raise ExpressionError(f"ConstantSelector needs a square matrix, got rows of {[len(r) for r in rows]}")
        self._set(value=rows, check_length=check_length)

    def _details(self) -> list[str]:
        return [f"{len(self.value)}x{len(self.value)}"]


class _BinarySelector(Selector):
    __slots__ = ("fst", "snd")
    fst: Selector
    snd: Selector

    def __init__(self, fst: Selector, snd: Selector) -> None:
        fst = _checked(fst, Selector, "the first operand", type(self).__name__)
        snd = _checked(snd, Selector, "the second operand", type(self).__name__)
        self._set(fst, snd, fst=fst, snd=snd)


class SelectorAnd(_BinarySelector):
    """Selected by both."""

    __slots__ = ()
    default_name = "selector_and"


class SelectorOr(_BinarySelector):
    """Selected by either."""

    __slots__ = ()
    default_name = "selector_or"


class SelectorNot(Selector):
    """Selected where `inner` is not."""

    __slots__ = ("inner",)
    default_name = "selector_not"
    inner: Selector

    def __init__(self, inner: Selector) -> None:
        inner = _checked(inner, Selector, "the operand", "SelectorNot")
        self._set(inner, inner=inner)


class Aggregate(SOp):
    """The selected value; the mean of several selected numbers; `default` where nothing is selected.

    >>> Aggregate(Select(indices, indices, lambda key, query: key < query), indices)("abc")
    [None, 0, 0.5]
    """

    __slots__ = ("default", "selector", "sop")
    default_name = "aggregate"
    selector: Selector
    sop: SOp
    default: Value

    def __init__(self, selector: Selector, sop: SOp, default: Value = None) -> None:
        selector = _checked(selector, Selector, "the selector", "Aggregate")
        sop = _checked(sop, SOp, "the s-op", "Aggregate")
        default = as_value(default, where="the default of Aggregate")
        self._set(selector, sop, selector=selector, sop=sop, default=default)

    def _details(self) -> list[str]:
        return [] if self.default is None else [f"default={self.default!r}"]


class SelectorWidth(SOp):
    """How many positions each query selects.

    >>> SelectorWidth(Select(tokens, tokens, lambda key, query: key == query))("aab")
    [2, 2, 1]
    """

    __slots__ = ("selector",)
    default_name = "selector_width"
    selector: Selector

    def __init__(self, selector: Selector) -> None:
        selector = _checked(selector, Selector, "the selector", "SelectorWidth")
        self._set(selector, selector=selector)


tokens = Tokens()
indices = Indices()
length = Length()
