"""S-ops that read one position at a time: the inputs, constants, maps, and operators between s-ops."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tracr.arguments import flag
from tracr.errors import ExpressionError
from tracr.rasp.base import RASPExpr, checked, checked_function, items
from tracr.rasp.functions import (
    BinaryOperator,
    Composition,
    ConstantOperator,
    Function,
    UnaryOperator,
    WeightedSum,
    function_name,
)
from tracr.values import Value, as_value, is_number, short_repr

__all__ = [
    "ConstantSOp",
    "Full",
    "Indices",
    "Length",
    "LinearSequenceMap",
    "Map",
    "SOp",
    "SequenceMap",
    "Tokens",
    "indices",
    "length",
    "tokens",
]

logger = logging.getLogger(__name__)


class SOp(RASPExpr):
    """A sequence operation: from an input to a sequence of values of the same length."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__: ClassVar[None] = None  # numpy leaves `scalar < sop` to this class instead of looping
    a_kind = "an s-op"
    how_to_make_one = "wrap a constant as rasp.Full(value), values by position as rasp.ConstantSOp([...])"
    how_to_turn_into_one = "rasp.SelectorWidth(selector) or rasp.Aggregate(selector, sop) turns a selector into an s-op"

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"{self!r} has no truth value: it is a program, not a result",
            hint="combine s-ops with & | ~ instead of and/or/not/in, and write (0 < x) & (x < 5) for 0 < x < 5",
        )

    def _with(self, symbol: str, other: object, *, reflected: bool = False) -> SOp:
        if isinstance(other, SOp):
            return SequenceMap(BinaryOperator(symbol), self, other)
        if isinstance(other, RASPExpr):
            what = f"{symbol} between the s-op {self!r} and the selector {other!r} has no meaning"
            raise ExpressionError(what, hint=self.how_to_turn_into_one)
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


class _Source(SOp):
    """An s-op that reads no other one. All of one kind mean the same and have the same label.

    `tokens`, `indices` and `length` stay the same objects after pickling.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self._set()

    def __reduce_ex__(self, protocol: object) -> str | tuple[Any, ...]:
        return self.default_name if globals()[self.default_name] is self else super().__reduce_ex__(protocol)

    @property
    def label(self) -> str:
        """The label, the same for every copy."""
        return type(self).default_name


class Tokens(_Source):
    """The input itself."""

    __slots__ = ()
    default_name = "tokens"


class Indices(_Source):
    """The positions 0, 1, 2, ..."""

    __slots__ = ()
    default_name = "indices"


class Length(_Source):
    """The length of the input, at every position."""

    __slots__ = ()
    default_name = "length"


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
    """Fixed values, for inputs of exactly their length.

    With `check_length=False` a shorter input gets the first values, and a longer one gets `None` after the last.
    Models take inputs up to the number of values.
    """

    __slots__ = ("check_length", "value")
    default_name = "constant_sop"
    value: tuple[Value, ...]
    check_length: bool

    def __init__(self, value: Sequence[Value], check_length: bool = True) -> None:
        values = tuple(as_value(v, where="a value of ConstantSOp") for v in items(value, "ConstantSOp"))
        self._set(value=values, check_length=check_length)

    def _details(self) -> list[str]:
        return [repr(list(self.value))]


class Map(SOp):
    """`f` of every value; `None` stays `None`. A Map of a Map becomes one Map if `simplify` is true.

    >>> Map(lambda x: x.upper(), tokens)("ab")
    ['A', 'B']
    """

    __slots__ = ("f", "inner")
    default_name = "map"
    f: Function
    inner: SOp

    def __init__(self, f: Callable[[Any], Any], inner: SOp, simplify: bool = True) -> None:
        inner = checked(inner, SOp, "the input", "Map")
        function = checked_function(f, "Map")
        if flag("simplify", simplify, error=ExpressionError) and isinstance(inner, Map):
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
        fst = checked(fst, SOp, "the first input", type(self).__name__)
        snd = checked(snd, SOp, "the second input", type(self).__name__)
        if fst is snd and not isinstance(f, BinaryOperator):
            _discourage(fst)
        self._set(fst, snd, f=checked_function(f, "SequenceMap"), fst=fst, snd=snd)

    def _details(self) -> list[str]:
        return [function_name(self.f)]


def _discourage(twice: SOp) -> None:
    """Log a warning about a SequenceMap of one s-op with itself, unless this package builds it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if not f"{frame.f_globals.get('__name__')}.".startswith("tracr."):
        logger.warning("this SequenceMap reads %r twice: a Map computes the same with fewer calls", twice)


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
            shown = f"{short_repr(fst_fac)} and {short_repr(snd_fac)}"
            raise ExpressionError(
                f"the factors of LinearSequenceMap must be numbers, not {shown}",
                hint="write rasp.LinearSequenceMap(fst, snd, 2, -1), for example",
            )
        first, second = facs
        super().__init__(WeightedSum(first, second), fst, snd)
        object.__setattr__(self, "fst_fac", first)
        object.__setattr__(self, "snd_fac", second)

    def _details(self) -> list[str]:
        return [str(self.f)]


tokens = Tokens()
indices = Indices()
length = Length()
