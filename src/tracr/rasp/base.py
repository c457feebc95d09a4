"""The base class of all expressions: they are immutable, have names, and check their parts."""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from tracr.errors import ExpressionError
from tracr.rasp.annotations import DEFAULT_ANNOTATORS, NAME, Annotations
from tracr.rasp.display import notebook_svg
from tracr.rasp.functions import Function
from tracr.values import Computation, Value, short_repr

__all__ = ["RASPExpr", "checked", "checked_function", "expression_of", "items"]

_numbers = itertools.count(1)


class RASPExpr(Computation):
    """Base of s-ops and selectors."""

    __slots__ = ("__number", "__weakref__", "_explicit", "children", "depth", "origin")
    default_name: ClassVar[str] = "expr"
    a_kind: ClassVar[str] = "an expression"  # these three are for error messages
    how_to_make_one: ClassVar[str] = ""
    how_to_turn_into_one: ClassVar[str] = ""

    __number: int
    _explicit: Mapping[str, Any]
    children: tuple[RASPExpr, ...]
    depth: int
    """The length of the longest chain of expressions below this one: 0 if it has no children."""
    origin: str
    """The place where it was written: `file.py:12` or `file.rasp:3:5`; empty if it is not in a file."""

    def _set(self, *children: RASPExpr, **fields: object) -> None:
        """Fill the fields, once, at construction."""
        own = {"_explicit": {}, "children": children, "depth": _depth(children), "origin": _origin(), **fields}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} is immutable; build a new expression, or use .named(...) / .annotated(...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} is immutable")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> str | tuple[Any, ...]:
        from tracr.rasp.pickling import reduced

        return reduced(self)

    def fields(self) -> dict[str, Any]:
        """Its fields, by name."""
        slots = _slots(type(self))  # type: ignore[arg-type]  # mypy looks at the hash of instances
        return {slot: getattr(self, slot) for slot in slots} | getattr(self, "__dict__", {})

    def __call__(self, xs: Sequence[Value]) -> Any:
        """Evaluate on the input `xs` with the reference interpreter (bidirectional)."""
        from tracr.rasp.interpreter import evaluate

        return evaluate(self, xs)

    @property
    def annotations(self) -> Annotations:
        """The annotations, with defaults for those not given."""
        return Annotations(self, self._explicit)

    def annotation(self, key: str) -> Any:
        """The annotation under a key, `None` if there is none."""
        return self._explicit.get(key) if isinstance(key, str) else None

    @property
    def name(self) -> str:
        """The name given with `named`, else the name of the kind of expression."""
        return str(self._explicit[NAME] if NAME in self._explicit else DEFAULT_ANNOTATORS[NAME](self))

    @property
    def unique_id(self) -> int:
        """A number that no other expression of this process has, not even a copy. It is assigned on first use."""
        try:
            return self.__number
        except AttributeError:
            object.__setattr__(self, "_RASPExpr__number", next(_numbers))
            return self.__number

    @property
    def label(self) -> str:
        """The name with the unique id. Models do not use it: they number the names that occur twice."""
        return f"{self.name}_{self.unique_id}"

    def copy(self) -> Self:
        """A copy: another expression with the same meaning."""
        return self.annotated()

    def named(self, name: str) -> Self:
        """A copy called `name`."""
        return self.annotated(**{NAME: name})

    def annotated(self, **annotations: object) -> Self:
        """A copy with these annotations added."""
        return self._twin(_explicit=Annotations(self, {**self._explicit, **annotations}).explicit)

    def written_at(self, origin: str) -> Self:
        """A copy with this place as its origin."""
        return self._twin(origin=origin)

    def reading(self, children: Mapping[RASPExpr, RASPExpr], origin: str | None = None) -> Self:
        """A copy that reads other expressions: `children` maps each child to its replacement. It may have an origin."""
        read = {slot: children[value] for slot, value in self.fields().items() if isinstance(value, RASPExpr)}
        now = tuple(children[child] for child in self.children)
        return self._twin(**read, children=now, depth=_depth(now), origin=self.origin if origin is None else origin)

    def _twin(self, **changed: object) -> Self:
        return expression_of(type(self), {**self.fields(), **changed})

    def _repr_svg_(self) -> str | None:
        """The drawing that notebooks display: the expression computed on an example."""
        return notebook_svg(self)

    def _details(self) -> list[str]:
        """The arguments that `repr` shows after the children."""
        return []

    def __repr__(self) -> str:
        inner = [*self._details(), *(child.name for child in self.children)]
        text = f"{type(self).__name__}({', '.join(inner)})" if inner else self.name
        given = self._explicit.get(NAME)
        return f"{text}.named({given!r})" if given is not None and inner else text


E = TypeVar("E", bound=RASPExpr)


def expression_of(kind: type[E], fields: Mapping[str, object]) -> E:
    """An expression of this kind with these fields."""
    expr = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(expr, name, value)
    return expr


def _depth(children: Sequence[RASPExpr]) -> int:
    return max((child.depth + 1 for child in children), default=0)


@functools.cache
def _slots(kind: type[RASPExpr]) -> tuple[str, ...]:
    """The fields of a kind of expression."""
    slots = [slot for cls in kind.__mro__ for slot in getattr(cls, "__slots__", ())]
    return tuple(slot for slot in slots if not slot.startswith("__"))


def _origin() -> str:
    """The line outside this package that builds the expression; empty if the command line builds it."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        inside, command = _is_own(frame.f_globals.get("__name__"))
        if command:
            return ""
        if not inside:
            break
        frame = frame.f_back
    file = frame.f_code.co_filename
    return "" if file.startswith("<") else f"{os.path.basename(file)}:{frame.f_lineno}"


@functools.cache
def _is_own(module: str | None) -> tuple[bool, bool]:
    """Whether a module belongs to this package, and whether it belongs to the command line."""
    return f"{module}.".startswith("tracr."), f"{module}".startswith("tracr.cli.")


def checked(expr: object, kind: type[RASPExpr], role: str, owner: str) -> Any:
    """`expr`, if it is an expression of that kind; otherwise raises an error that says what to write."""
    if isinstance(expr, kind):
        return expr
    hint = kind.how_to_make_one
    if isinstance(expr, RASPExpr):
        hint = kind.how_to_turn_into_one
    elif callable(expr):
        hint = f"a function comes first in Map and SequenceMap, last in Select; {hint}"
    raise ExpressionError(f"{role} of {owner} must be {kind.a_kind}, not {short_repr(expr)}", hint=hint)


def items(value: Any, owner: str) -> list[Any]:
    """The items of a list of values."""
    try:
        return list(value)
    except TypeError:
        hint = f"write {owner}([...])"
        raise ExpressionError(f"{owner} needs a list of values, not {short_repr(value)}", hint=hint) from None


def checked_function(f: object, owner: str) -> Function:
    """`f`, if it can be called."""
    if not callable(f):
        raise ExpressionError(f"the function of {owner} must be callable, not {short_repr(f)}", hint="pass a lambda")
    return f
